"""Lists of near-optimal models, checked against all supports."""

from itertools import chain, combinations

import pytest

from helpers import instances


def supports_of(instance):
    """All admissible supports of at most k features."""
    options, p = instance.options, instance.X.shape[1]
    include = set(options.get("include", ()))
    allowed = [j for j in range(p) if j not in set(options.get("exclude", ()))]
    sizes = range(len(include), min(instance.k, len(allowed)) + 1)
    every = chain.from_iterable(combinations(allowed, size) for size in sizes)
    return [support for support in every if include <= set(support)]


def doubt(instance, threshold):
    """What rounding may move an objective by."""
    y, weight = instance.y.astype(float), instance.options.get("sample_weight", 1.0)
    yy = float((weight * y * y).sum())
    return instances.tolerance(instance, threshold, yy) + 3e-9 * threshold + 3e-12 * yy


def check_list(instance, found):
    """Whatever is below the threshold is on the list, and nothing else."""
    include = set(instance.options.get("include", ()))
    slack = doubt(instance, found.threshold)
    limit = found.complete_below
    losses = {support: instance.loss(support) for support in supports_of(instance)}
    for support, loss in losses.items():
        if loss < limit - slack:
            assert found.contains(list(support)), (support, loss, limit)
        if found.contains(list(support)):
            assert loss <= found.threshold + slack
    for model in found.models:
        support = tuple(model.support.tolist())
        assert model.objective == pytest.approx(losses[support], rel=1e-6, abs=slack)
        for j in set(support) - include:
            smaller = tuple(i for i in support if i != j)
            assert losses[smaller] > found.threshold - slack, "it could be smaller"
    chosen = [set(model.support.tolist()) for model in found.models]
    assert not any(a < b for a in chosen for b in chosen)
    assert [m.objective for m in found.models] == sorted(m.objective for m in found.models)
