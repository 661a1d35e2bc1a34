"""Whoever runs the units, in whatever order and however often: the same tree, bit for bit."""

import numpy as np
import pytest
from helpers.checks import assert_same
from helpers.engines import Hostile, exploring_with
from helpers.seeds import seeds

import bestk
from bestk import Advanced
from bestk.base.threads import Workers
from bestk.subtrees.engines import Serial, Threads, engine_for
from bestk.subtrees.explore import explore

SIZES = [1, 2, 3, 4, 5, 32]
IN_FLIGHT = [1, 3, 64]
KINDS = (
    "plain", "box", "signs", "include", "exclude", "intercept", "weights", "no penalty",
    "duplicates", "more features than rows", "collinear", "depth-first", "breadth-first",
)  # fmt: skip


def question(seed):
    """(kind, data, options) of a problem that takes some tens of nodes."""
    rng = np.random.default_rng([seed, 12])
    kind = KINDS[seed % len(KINDS)]
    p, k = int(rng.integers(18, 25)), int(rng.integers(5, 8))
    n = p + int(rng.integers(4, 10))
    if kind == "more features than rows":
        n = p - 3
    # Each column resembles the one before, and more are at work than may be chosen.
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] += rng.choice([0.5, 1.5]) * X[:, j - 1]
    X /= np.linalg.norm(X, axis=0)
    y = 2.0 * X[:, : 2 * k] @ (1.0 + rng.random(2 * k)) + rng.standard_normal(n)
    options = {"alpha": 0.01}
    if kind == "box":
        options["bounds"] = (-1.0, 2.0)
    elif kind == "signs":
        options["bounds"] = (0.0, np.inf)
    elif kind == "include":
        options["include"] = [p - 1, 0]
    elif kind == "exclude":
        options["exclude"] = [1, 4]
    elif kind == "intercept":
        X, y, options["fit_intercept"] = X + 3.0, y - 5.0, True
    elif kind == "weights":
        options["sample_weight"] = rng.uniform(0.1, 2.0, n)
    elif kind == "no penalty":
        options["alpha"] = 0.0
    elif kind == "duplicates":
        X[:, 3], X[:, 5] = X[:, 0], -2.0 * X[:, 1]
    elif kind == "collinear":
        X[:, 3] = X[:, 0] + X[:, 1] + 1e-3 * rng.standard_normal(n)
    elif kind in ("depth-first", "breadth-first"):
        options["search"] = kind
    return kind, (X, y, k), options


def answered(question, settings, engine=None, n_threads=1):
    _, (X, y, k), options = question
    if engine is None:
        return bestk.solve(X, y, k, **options, **settings, n_threads=n_threads)
    with exploring_with(engine):
        return bestk.solve(X, y, k, **options, **settings, n_threads=n_threads)


def assert_same_answer(ours, theirs):
    assert (ours.status, ours.n_nodes) == (theirs.status, theirs.n_nodes)
    assert (ours.objective, ours.lower_bound) == (theirs.objective, theirs.lower_bound)
    assert_same(ours.coef, theirs.coef)
    assert_same(ours.support, theirs.support)
    assert_same(ours.certificate, theirs.certificate)
    for column in ("nodes", "incumbent", "bound"):
        np.testing.assert_array_equal(ours.history[column], theirs.history[column])


@seeds(78, chunk=13)
def test_every_engine_grows_the_same_tree(seed, force):
    rng = np.random.default_rng([seed, 13])
    closing = float(rng.choice([0.0, 1e-5]))
    force.units(nodes=int(rng.choice(SIZES)), in_flight=int(rng.choice(IN_FLIGHT)), close=closing)
    force.closed_in_units_only()
    if rng.random() < 0.5:
        force.own_charges()
    elif rng.random() < 0.5:
        force.shared_charges()
    asked = question(seed)
    settings = {"gap_tol": float(rng.choice([0.0, 1e-4]))}
    settings["advanced"] = Advanced(
        enumeration=closing > 0.0, fixing=bool(rng.random() < 0.8), rebuild=bool(rng.random() < 0.5)
    )
    expected = answered(asked, settings)
    X, y, _ = asked[1]
    assert expected.certificate.verify(X, y, asked[2].get("sample_weight"))
    hostile = Hostile(seed)
    assert_same_answer(answered(asked, settings, hostile), expected)
    for n_threads in (2, 3):
        assert_same_answer(answered(asked, settings, n_threads=n_threads), expected)


def test_the_problems_have_units_to_run(force):
    """Else the test above would test little: most of them have many, all kinds have some."""
    force.units(nodes=3, in_flight=3, close=0.0)
    force.closed_in_units_only()
    units, hostiles = {}, []
    for seed in range(26):
        asked, hostile = question(seed), Hostile(seed)
        answered(asked, {"advanced": Advanced(enumeration=False)}, hostile)
        units[asked[0]] = units.get(asked[0], 0) + hostile.n_units
        hostiles.append(hostile)
    assert min(units.values()) > 0, units
    assert np.median(list(units.values())) > 20, units
    assert max(h.most_in_flight for h in hostiles) >= 3
    assert sum(h.n_repeated for h in hostiles) > 100
    assert sum(h.n_lost for h in hostiles) > 100


def units_of(seed, force):
    """(subproblem, units) that were in flight together."""
    force.units(nodes=5, in_flight=64, close=0.0)
    force.closed_in_units_only()
    kept = []

    class Keeping(Hostile):
        def get(self, stop):
            kept.append(list(self._units))
            return super().get(stop)

    answered(question(seed), {"advanced": Advanced(enumeration=False)}, Keeping(0))
    return max(kept, key=len)


def assert_same_outcome(ours, theirs):
    for field in ("parent", "feature", "fate", "bounds", "open_nodes"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
    np.testing.assert_array_equal(ours.duals.values, theirs.duals.values)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_outcomes_come_in_the_order_of_the_units(n_threads, force):
    units = units_of(20, force)
    assert len(units) > 3
    with Workers(n_threads) as workers:
        engine = engine_for(workers)
        assert isinstance(engine, Serial if n_threads == 1 else Threads)
        for subproblem, unit in units:
            engine.put(subproblem, unit)
        for subproblem, unit in units:
            assert_same_outcome(engine.get(lambda: False), explore(subproblem, unit))
        assert engine.end() == []


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_an_engine_that_ends_leaves_outcomes_whole_or_none(n_threads, force):
    units = units_of(20, force)
    expected = [explore(*each) for each in units]
    with Workers(n_threads) as workers:
        engine = engine_for(workers)
        for each in units:
            engine.put(*each)
        first = engine.get(lambda: False)
        assert_same_outcome(first, expected[0])
        left = engine.end()
        assert len(left) == len(units) - 1
        for outcome, whole in zip(left, expected[1:], strict=True):
            if outcome is not None:
                assert_same_outcome(outcome, whole)
        if n_threads == 1:
            assert left == [None] * len(left)
        # It can be used again, and what was given up is forgotten.
        engine.put(*units[2])
        assert_same_outcome(engine.get(lambda: False), expected[2])
        engine.put(*units[0])
        assert n_threads > 1 or engine.get(lambda: True) is None
        assert len(engine.end()) == 1


def test_errors_in_a_unit_reach_the_caller(force):
    force.units(nodes=5, in_flight=64, close=0.0)
    force.closed_in_units_only()

    class Failing(Threads):
        def put(self, subproblem, unit):
            super().put(subproblem, unit._replace(dual=unit.dual[:1]))

    with Workers(2) as workers, pytest.raises((IndexError, ValueError)):
        answered(question(0), {"advanced": Advanced(enumeration=False)}, Failing(workers))
