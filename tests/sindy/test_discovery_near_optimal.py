"""Which terms of an equation are certain? All models that are nearly as good."""

import pickle
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from bestk import Status
from bestk.sindy import discover
from bestk.sindy.discovery import Discovery


def test_lists_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    t = np.arange(0, 4, 0.02)
    x = np.c_[np.cos(2 * t), np.sin(2 * t)] + 0.01 * rng.standard_normal((len(t), 2))
    found = discover(x, t, degree=2, names=["u", "v"], ks=[2], alphas=[0.1])
    lists = found.near_optimal(within=0.5)
    assert list(lists) == ["u", "v"]
    problems = found.model.optimizer.problems_
    for near, problem, result in zip(lists.values(), problems, found.results, strict=True):
        assert near.complete
        assert near.names == found.terms
        assert (near.k, near.alpha) == (result.k, result.alpha)
        assert near.best.objective == pytest.approx(result.objective, rel=1e-9)
        for size in range(result.k + 1):
            for support in combinations(range(len(found.terms)), size):
                objective = problem.fit(np.array(support, dtype=int))[1]
                assert near.contains(list(support)) == (objective <= near.threshold)


def test_terms_of_lorenz(found):
    lists = found.near_optimal(within=0.2)
    assert all(near.complete for near in lists.values())
    names = {state: [near.names[j] for j in near.necessary] for state, near in lists.items()}
    assert names["x"] == ["x", "y"]
    assert names["z"] == ["z", "x y"]
    for near, result in zip(lists.values(), found.results, strict=True):
        assert near.contains(result.support)
        assert near.certificate.verify(near.problem.rows.X, near.problem.rows.y)


def test_a_margin_is_what_a_rival_needs(found):
    """Below the distance to the runner-up, all terms of an equation are certain."""
    for state, result, margin in zip(found.states, found.results, found.margins, strict=True):
        near = found.near_optimal(within=0.999 * margin)[state]
        assert near.necessary.tolist() == result.support.tolist()
        near = found.near_optimal(within=1.001 * margin)[state]
        assert len(near.necessary) < len(result.support)


def test_lists_are_kept(found, monkeypatch):
    lists = found.near_optimal(0.1)
    copy = pickle.loads(pickle.dumps(found))
    monkeypatch.setattr(Discovery, "_problems", property(lambda self: pytest.fail("searched")))
    assert found.near_optimal(0.1) is lists
    assert list(copy.near_optimal(0.1)) == list(lists)


def test_options_and_limits(found):
    assert all(len(near) == 3 for near in found.near_optimal(n_best=3).values())
    limited = found.near_optimal(0.3, node_limit=0)
    assert {near.status for near in limited.values()} == {Status.NODE_LIMIT}
    assert all(near.complete for near in found.near_optimal(0.3, time_limit=None).values())
    with pytest.raises(ValueError, match="within"):
        found.near_optimal(-1.0)


def test_after_ctrl_c_the_others_give_what_they_can(found):
    limits = []

    class Stubborn:
        """Interrupted in the first equation."""

        def near_optimal(self, k, *, time_limit, **options):
            limits.append(time_limit)
            status = Status.INTERRUPTED if len(limits) == 1 else Status.TIME_LIMIT
            return SimpleNamespace(status=status)

    optimizer = SimpleNamespace(problems_=[Stubborn()] * 3, constraint_lhs=None)
    fake = replace(found, model=SimpleNamespace(optimizer=optimizer))
    fake.near_optimal()
    assert limits == [30.0, 0.0, 0.0]
    fake.near_optimal()
    assert len(limits) == 6  # what was interrupted is not kept
