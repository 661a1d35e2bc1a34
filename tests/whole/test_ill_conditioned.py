"""Ill-conditioned libraries, judged in extended precision.

Short trajectories give libraries with condition numbers of 1e13 and beyond, so products of columns
say nothing about many models. Every support is fitted here in extended precision (64 bits).
"""

from itertools import combinations

import numpy as np
import pytest
from helpers.extended import DEPENDENT, KINDS, Case, Long, Reference, make, needs_extended, verdict
from helpers.seeds import seeds

from bestk import Problem, Status
from bestk.base.threads import Workers
from bestk.form.standard_form import StandardForm
from bestk.supports import enumeration as closure


@seeds(400, chunk=40)
@needs_extended
def test_supports_and_bounds_of_ill_conditioned_libraries(seed):
    case = make(seed)
    reference = Reference.of(case)
    truth = verdict(case, reference)
    result = case.solve()
    loss, _, size = reference.fits(result.support[None])
    ours, error = float(loss[0]), reference.error(size[0])
    if result.status is not Status.OPTIMAL:  # terms so large that their rounding shows
        assert result.status is Status.NUMERICAL_LIMIT
        assert truth.size > 1e4 * np.sqrt(reference.yy)
    assert ours <= truth.optimum + truth.tolerance
    # The objective of the reported coefficients, which carry the rounding of the fit.
    assert np.sqrt(result.objective) >= np.sqrt(ours) * (1 - 1e-9) - error
    assert result.lower_bound <= truth.optimum * (1 + 1e-8)


# The last ones have a best model with large multiples of nearly dependent features.
@needs_extended
@pytest.mark.parametrize("seed", [*range(412, 424), 13, 28, 94, 123, 213])
def test_what_enumeration_passes_over_is_worse(seed):
    """Whatever the value to beat, every support below it is listed: no rounding is forgiven."""
    case = make(seed)
    problem = Problem.from_data(case.X, case.y, **case.options)
    form = StandardForm.of(problem, np.flatnonzero(problem.gram.diagonal() > 0.0))
    supports = np.array(list(combinations(range(form.p), case.k)))
    losses, distances, sizes = Reference.of(case).fits(form.features[supports])
    values = (losses / Long(problem.yy)).astype(float)
    certain = np.flatnonzero(distances > DEPENDENT)
    best = certain[np.argsort(values[certain])[:3]]
    largest = certain[np.argsort(-sizes[certain])[:3]]
    for value in values[[*best, *largest, *certain[:: len(certain) // 3 + 1]]]:
        everything, nothing = np.arange(form.p), np.zeros(0, dtype=np.intp)
        value_to_beat = value * (1.0 + 1e-9) + 1e-30
        with Workers(1) as workers:
            node = closure.Remainder(nothing, everything, case.k)
            hits = closure.hits(form, node, value_to_beat, workers)
        if hits is None:
            continue  # too many: left to branching
        listed = {tuple(sorted(hit.tolist())) for hit in hits}
        for support in supports[certain[values[certain] <= value]]:
            # A shorter hit stands for itself and features that add nothing to it.
            parts = (part for part in listed if len(part) < case.k)
            shorter = any(set(part) <= set(support.tolist()) for part in parts)
            assert tuple(support.tolist()) in listed or shorter


@needs_extended
@pytest.mark.parametrize("kind", KINDS)
def test_cases_are_ill_conditioned(kind):
    """Some of each kind are beyond what a Gram matrix can judge; some fits are perfect."""
    cases = [make(seed) for seed in range(KINDS.index(kind), 150, len(KINDS))]
    lengths = [case.X / np.linalg.norm(case.X, axis=0) for case in cases]
    assert max(np.linalg.cond(X) for X in lengths) > 1e10
    objectives = [case.solve().objective / (case.y @ case.y) for case in cases]
    assert min(objectives) < 1e-20
    assert max(objectives) > 1e-4


@needs_extended
def test_near_copies_are_told_apart_where_coefficients_are_moderate():
    """The pair that is closest in angle is the best model, and by far; no Gram matrix shows it."""
    rng = np.random.default_rng(7)
    for exponent in range(6, 12):
        X = rng.standard_normal((40, 8))
        difference = rng.standard_normal(40)
        X[:, 5] = X[:, 2] + 10.0**-exponent * difference
        y = difference + 1e-3 * rng.standard_normal(40)
        case = Case(X=X, y=y, k=2)
        assert case.solve().support.tolist() == [2, 5]
