"""Enumeration: what is not listed is proven no better, near-collinear features included."""

from itertools import combinations

import numpy as np
import pytest
from helpers.forcing import forced
from helpers.forms import is_by_rows
from helpers.instances import Instance, make_node, node_values, standard_form, tolerance
from helpers.seeds import seeds

from bestk import Problem
from bestk.base.constants import FREE, IN
from bestk.base.threads import Workers
from bestk.form.presolve import Presolved
from bestk.form.standard_form import StandardForm
from bestk.supports import enumeration as closure
from bestk.supports.enumeration import Remainder, hits


def listed(form, state, k, value, threads=1):
    """Supports of a node that may have an objective below `value`, sorted."""
    inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    with Workers(threads) as workers:
        found = closure.hits(form, Remainder(inside, free, k - len(inside)), value, workers)
    return None if found is None else [tuple(sorted(map(int, support))) for support in found]


def best_of(instance, form, supports):
    losses = [instance.loss(form.features[list(S)]) for S in supports]
    return min(losses, default=np.inf) / form.problem.yy


@seeds(600, chunk=100)
def test_best_support_of_a_tiny_node_is_listed(seed):
    case = make_node(seed)
    if case is None:
        return
    rng = np.random.default_rng([seed, 4])
    spread = np.ptp(list(case.values.values()))
    value = case.optimum + rng.choice([0.0, 1e-3, 0.5, 2.0]) * spread + 2 * case.slack + 1e-12
    supports = listed(case.form, case.state, case.k, value)
    if supports is None:
        # Left to branching, only where features within boxes depend on each other.
        assert case.form.is_boxed
        return
    assert best_of(case.instance, case.form, supports) <= case.optimum + case.slack


def collinear_instance(seed):
    """p <= 14, k <= 5; pairs that differ by 1e-2 ... 1e-8, and y that needs their difference."""
    rng = np.random.default_rng(seed)
    p, k = int(rng.integers(8, 15)), int(rng.integers(1, 6))
    n = int(rng.integers(p, 30))
    X = rng.standard_normal((n, p))
    y = rng.standard_normal(n) + X[:, 5]
    for a, b in ((0, 1), (2, 3))[: rng.integers(0, 3)]:
        difference = rng.standard_normal(n)
        X[:, a] = X[:, b] + 10.0 ** -rng.integers(2, 9) * difference
        y = y + 2.0 * difference
    if rng.random() < 0.3:
        X[:, 4] = -2.0 * X[:, 5]
    if rng.random() < 0.3:
        X[:, 6] = X[:, 0] + X[:, 7]
    options = {"alpha": 1e-3} if rng.random() < 0.3 else {}
    return Instance(regime="near_collinear", X=X, y=y, k=k, options=options)


@pytest.mark.parametrize("seed", range(150))
def test_best_support_is_listed_among_near_collinear_features(seed):
    instance = collinear_instance(seed)
    form = standard_form(instance)
    state = np.zeros(form.p, dtype=np.int8)
    state[np.random.default_rng(seed).permutation(form.p)[: seed % min(3, instance.k + 1)]] = IN
    values = node_values(instance, form, state, instance.k)
    optimum = min(values.values())
    slack = tolerance(instance, optimum, 1.0)
    for value in (optimum + 2 * slack, optimum + 0.02):
        supports = listed(form, state, instance.k, value)
        assert best_of(instance, form, supports) <= optimum + slack


@pytest.mark.parametrize("size", [0.3, 2.0])
@pytest.mark.parametrize("copies", [2, 3, 4])
@pytest.mark.parametrize("inside", [0, 1, 2])
def test_copies_within_boxes_are_listed_together(copies, size, inside):
    """Copies of one feature add nothing to a span, but something to what a box allows."""
    rng = np.random.default_rng(copies)
    x, z, w = rng.standard_normal((3, 20))
    X = np.column_stack([x] * copies + [z, w])
    bounds = (-size / copies, size / copies)
    instance = Instance(
        regime="duplicate", X=X, y=x + 0.1 * z, k=copies, options={"bounds": bounds}
    )
    form = standard_form(instance)
    state = np.zeros(form.p, dtype=np.int8)
    state[:inside] = IN
    optimum = min(node_values(instance, form, state, copies).values())
    supports = listed(form, state, copies, optimum + 0.05)
    if copies > 2:  # too many that depend on each other: the node has to be branched
        assert supports is None
    else:
        assert best_of(instance, form, supports) <= optimum + 1e-9


def plain_instance(seed, p=12, k=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, p)) + 0.5 * rng.standard_normal((40, 1))
    return Instance(regime="plain", X=X, y=rng.standard_normal(40) + X[:, 0], k=k)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_listed_are_exactly_the_supports_below_the_value(k):
    instance = plain_instance(k, p=10, k=k)
    form = standard_form(instance)
    state = np.zeros(form.p, dtype=np.int8)
    values = node_values(instance, form, state, k)
    ranked = sorted(values.values())
    for count in (0, 1, 5, len(ranked) // 2):
        value = 0.5 * (ranked[count - 1] + ranked[count]) if count else ranked[0] * (1 - 1e-9)
        below = [S for S, loss in values.items() if loss < value]
        assert sorted(listed(form, state, k, value)) == sorted(below)


@pytest.mark.parametrize("exponent", [0, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_gram_matrix_alone_lists_the_best_support(seed, exponent):
    rng = np.random.default_rng([seed, exponent])
    X = rng.standard_normal((40, 10))
    X[:, 0] = X[:, 1] + 10.0**-exponent * rng.standard_normal(40)
    X[:, 2] = X[:, 3]
    y = rng.standard_normal(40) + 10.0**exponent * (X[:, 0] - X[:, 1])
    k = 2 + seed % 3
    problem = Problem.from_gram(X.T @ X, X.T @ y, y @ y, 40)
    form = StandardForm.of(problem, np.arange(10))
    instance = Instance(regime="plain", X=X, y=y, k=k)
    state = np.zeros(10, dtype=np.int8)
    optimum = min(node_values(instance, form, state, k).values())
    supports = listed(form, state, k, optimum + 1e-6)
    assert best_of(instance, form, supports) <= optimum + 1e-9


@pytest.mark.parametrize("k", [2, 3, 5])
def test_list_does_not_depend_on_the_number_of_threads(k, force):
    force.enumeration(per_support=1e-5)  # many pieces although the scan is short
    instance = collinear_instance(17)
    form = standard_form(instance)
    state = np.zeros(form.p, dtype=np.int8)
    lists = [listed(form, state, k, 0.7, threads) for threads in (1, 2, 3)]
    assert lists[0]
    assert lists[0] == lists[1] == lists[2]


def test_too_many_hits_are_not_listed():
    form = standard_form(plain_instance(0))
    state = np.zeros(form.p, dtype=np.int8)
    assert len(listed(form, state, 4, 1.0)) > 10
    for limit in ("max_hits", "worth_fitting"):
        with forced() as force:
            force.enumeration(**{limit: 10})
            assert listed(form, state, 4, 1.0) is None


def test_enumeration_can_be_stopped():
    form = standard_form(plain_instance(0))
    nothing, everything = np.zeros(0, dtype=np.intp), np.arange(form.p)
    with Workers(1) as workers, pytest.raises(closure.LimitReached):
        closure.hits(form, Remainder(nothing, everything, 4), 0.9, workers, lambda: True)


def test_cost_grows_with_the_number_of_supports():
    costs = [closure.closing_cost(n, 0, 3) for n in (5, 50, 500, 5000)]
    assert costs == sorted(costs)
    assert costs[-1] > 1e4 * costs[1]
    assert closure.closing_cost(100_000, 0, 50_000) == np.inf


@pytest.mark.parametrize("exponent", [3, 5, 7, 9])
@pytest.mark.parametrize("seed", range(5))
def test_nearly_perfect_fits_are_told_apart(seed, exponent):
    """Objectives of 1e-18 y'y: the best of many supports that contain the truth."""
    rng = np.random.default_rng([seed, exponent])
    X = rng.standard_normal((40, 14)) + rng.standard_normal((40, 1))
    y = X[:, 2] - 2.0 * X[:, 7] + 10.0**-exponent * rng.standard_normal(40)
    result = Problem.from_data(X, y).solve(5, gap_tol=0.0)
    best = min(
        float(np.linalg.lstsq(X[:, S], y, rcond=None)[1][0]) for S in combinations(range(14), 5)
    )
    assert result.gap == 0.0
    assert result.objective == pytest.approx(best, rel=1e-5)


def test_hits_are_screened_on_the_data(force):
    """With rounding allowed for, products cannot rule out what the data can."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 12))
    y = X[:, 2] - 2.0 * X[:, 7] + 1e-7 * rng.standard_normal(40)
    form = StandardForm.of(Problem.from_data(X, y), np.arange(12))
    state = np.zeros(12, dtype=np.int8)
    best = min(Problem.from_data(X, y).fit(S)[1] for S in combinations(range(12), 5))
    value = best / form.problem.yy * (1 + 1e-6)
    few = listed(form, state, 5, value)
    force.enumeration(few=10**6)
    many = listed(form, state, 5, value)
    assert len(few) == 1
    assert len(many) > 50
    assert set(few) <= set(many)


ONE = Workers(1)


def test_one_more_feature_is_found_without_their_products(force):
    rng = np.random.default_rng(0)
    n, p = 12, 60
    X = rng.standard_normal((n, p))
    X[:, 7] = X[:, 3]  # a copy of a feature that is in
    y = X[:, 3] - 0.5 * X[:, 20] + 0.2 * rng.standard_normal(n)
    stored = Presolved.of(Problem.from_data(X, y, alpha=0.1)).form
    force.wide_search()
    force.enumeration(most_free=5)
    form = Presolved.of(Problem.from_data(X, y, alpha=0.1)).form
    assert is_by_rows(form)
    for inside in ([], [3], [3, 50]):
        chosen, free = np.array(inside, dtype=np.intp), np.setdiff1d(np.arange(p), inside)
        problem = form.problem
        values = {j: problem.fit(np.append(chosen, j))[1] / problem.yy for j in free}
        for value in (min(values.values()) * 1.0001, np.median(list(values.values()))):
            found = hits(form, Remainder(chosen, free, 1), value, ONE)
            again = hits(stored, Remainder(chosen, free, 1), value, ONE)
            below = {j for j in free if values[j] < value}
            assert below <= {int(support[-1]) for support in found}
            assert len(found) <= len(again) + 1
