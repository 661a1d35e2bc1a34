"""Compiled kernels of the bounds against NumPy twins."""

import numpy as np
import pytest
from helpers.forms import boxes, random_form, random_states, uniform_split
from helpers.nodes import concluded
from helpers.relaxations import bound_value, descended, relaxed_value

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.candidates import missing_rows
from bestk.bounds.kernels.conclude import Charges, Known, conclude_rows, proven
from bestk.bounds.kernels.gains import gain_of, largest_first, sum_largest
from bestk.bounds.kernels.relaxation import Effort, Relaxed, descend_rows
from bestk.form.dense import residual, slope_errors, slope_rows


@pytest.mark.parametrize("t", [-1e-14, 0.0, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize(
    ("lo", "hi"),
    [(-np.inf, np.inf), (-1.0, 2.0), (0.0, np.inf), (-np.inf, 0.0), (-0.5, 0.0), (0.0, 0.0)],
)
def test_gain_is_the_largest_value_on_the_interval(lo, hi, t):
    for u in (-3.0, -0.01, 0.0, 0.02, 1.0):
        value = gain_of(u, t, lo, hi)
        towards = hi if u > 0 else lo
        unbounded = np.isinf(towards) if t == 0.0 else np.isinf([lo, hi]).any()
        if (t == 0.0 and u != 0.0 and unbounded) or (t < 0.0 and unbounded):
            assert value == np.inf
            continue
        # Concave: the maximum is at an end or where the slope 2 u - 2 t v vanishes.
        ends = [v for v in (lo, hi, 0.0) if np.isfinite(v)]
        candidates = np.array([*ends, np.clip(u / t, lo, hi) if t > 0 else 0.0])
        assert value == pytest.approx((2 * u * candidates - t * candidates**2).max(), abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_sum_largest_equals_sorting(seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 30))
    values = rng.integers(0, 6, length).astype(float) if seed % 2 else rng.random(length)
    for used in {0, 1, length // 2, length}:
        for r in {0, 1, used // 2, used, used + 3}:
            expected = np.sort(values[:used])[::-1][:r].sum()
            assert sum_largest(values.copy(), used, r) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_largest_first_keeps_all_values_and_splits_them(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 5, 15).astype(float)
    values[rng.integers(15)] = np.inf
    for r in range(16):
        a = values.copy()
        largest_first(a, 15, r)
        assert sorted(a) == sorted(values)
        assert r in (0, 15) or a[:r].min() >= a[r:].max()


def test_residual_is_c_minus_qg():
    rng, A, c = random_form(0)
    t, g, u = rng.random(8), rng.standard_normal(8) * (rng.random(8) < 0.5), np.empty(8)
    residual(A, c, t, g, u)
    np.testing.assert_allclose(u, c - (A - np.diag(t)) @ g, atol=1e-14)


def test_slope_rows_are_the_formula_with_honest_errors():
    rng, A, c = random_form(2)
    t, eps = rng.random(8), 1e-15
    duals = rng.standard_normal((6, 8)) * (rng.random((6, 8)) < 0.6)
    rows = np.array([4, 0, 5, 2])
    u, quadratic, error, lost = np.zeros((6, 8)), np.zeros(6), np.zeros(6), np.zeros(6)
    slope_rows(A, c, t, eps, rows, duals[rows], u, quadratic, error, lost)
    long_A, long_g = (A - np.diag(t)).astype(np.longdouble), duals.astype(np.longdouble)
    for row in rows:
        exact = c - long_A @ long_g[row]
        assert (np.abs(u[row] - exact) <= error[row]).all()
        assert abs(quadratic[row] - long_g[row] @ long_A @ long_g[row]) <= lost[row]
        g1, terms = np.abs(duals[row]).sum(), np.count_nonzero(duals[row]) + 6
        rounding = terms * 2.0**-53
        assert error[row] == pytest.approx(rounding * (1 + 2 * g1) + eps * (1 + g1), rel=1e-12)
        assert slope_errors(terms, g1, eps) == pytest.approx((error[row], lost[row]), rel=1e-12)
    assert not u[[1, 3]].any()


@pytest.mark.parametrize("kind", ["none", "box", "sign"])
def test_conclusion_equals_numpy_up_to_its_allowance(kind):
    rng, A, c = random_form(3)
    lo, hi = boxes(rng, 8, kind)
    t = uniform_split(A).t * (0.5 + 0.5 * rng.random(8))
    states = random_states(rng, 12, 8)
    remaining = rng.integers(0, 5, 12)
    duals = rng.standard_normal((12, 8)) * (rng.random((12, 8)) < 0.7)
    bounds, after = concluded(A, c, t, lo, hi, states, remaining, duals, 1e-15, 5, np.inf, False)
    for i in range(12):
        expected = bound_value(A, c, t, lo, hi, states[i], remaining[i], duals[i])
        assert expected - 1e-10 * abs(expected) <= bounds[i] <= expected
    np.testing.assert_array_equal(after, states)


def fixed_by_numpy(gains, state, r, bound, cutoff):
    """States after (fix-out) and (fix-in), from gains and a bound that are taken as exact."""
    after, free = state.copy(), np.flatnonzero(state == FREE)
    ranked = np.sort(gains[free])[::-1]
    if r == 0 or bound >= cutoff:
        return after
    last = ranked[min(r, len(ranked)) - 1] if len(ranked) else np.inf
    next_ = ranked[r] if r < len(ranked) else 0.0
    for j in free:
        if r < len(free) and gains[j] <= next_ and bound + last - gains[j] >= cutoff:
            after[j] = OUT
        elif gains[j] > next_ and bound + gains[j] - next_ >= cutoff:
            after[j] = IN
    return after


@pytest.mark.parametrize("kind", ["none", "box", "sign"])
@pytest.mark.parametrize("seed", range(10))
def test_conclusion_fixes_what_numpy_fixes(seed, kind):
    rng, A, c = random_form(seed + 40)
    lo, hi = boxes(rng, 8, kind)
    t = uniform_split(A).t
    states, remaining = random_states(rng, 12, 8), rng.integers(0, 5, 12)
    duals = 0.2 * rng.standard_normal((12, 8))
    u = c - duals @ A + t * duals
    v = np.clip(u / t, lo, hi)
    gains = v * (2 * u - t * v)
    plain = [
        bound_value(A, c, t, lo, hi, *row) for row in zip(states, remaining, duals, strict=True)
    ]
    cutoff = float(np.median(plain)) + 0.02
    _, after = concluded(A, c, t, lo, hi, states, remaining, duals, 0.0, 5, cutoff, True)
    for i in range(12):
        expected = fixed_by_numpy(gains[i], states[i], remaining[i], plain[i], cutoff)
        np.testing.assert_array_equal(after[i], expected)
    untouched = concluded(A, c, t, lo, hi, states, remaining, duals, 0.0, 5, cutoff, False)[1]
    np.testing.assert_array_equal(untouched, states)


@pytest.mark.parametrize("fix", [True, False])
def test_conclusion_treats_rows_alone(fix):
    rng, A, c = random_form(4)
    free = np.full(8, np.inf)
    t = uniform_split(A).t
    states, duals = random_states(rng, 6, 8), 0.2 * rng.standard_normal((6, 8))
    options = 1e-15, 5, 0.5, fix
    bounds, together = concluded(A, c, t, -free, free, states, np.full(6, 2), duals, *options)
    for i in range(6):
        one = slice(i, i + 1)
        (bound,), (state,) = concluded(
            A, c, t, -free, free, states[one], np.full(1, 2), duals[one], *options
        )
        assert bound == bounds[i]
        np.testing.assert_array_equal(state, together[i])


@pytest.mark.parametrize("kind", ["none", "box", "sign"])
def test_larger_errors_prove_less(kind):
    rng, A, c = random_form(5)
    lo, hi = boxes(rng, 8, kind)
    t = uniform_split(A).t
    states, remaining = random_states(rng, 12, 8), rng.integers(0, 5, 12)
    duals = 0.2 * rng.standard_normal((12, 8))
    u = c - duals @ A + t * duals
    quadratic = ((c - u) * duals).sum(axis=1)
    found = []
    for error in (1e-15, 1e-3):
        known, bounds = Known(u, quadratic, np.full(12, error), np.full(12, error)), np.empty(12)
        conclude_rows(
            known, Charges(t, lo, hi), np.arange(12), states.copy(), remaining,
            1e-15, 5, np.inf, False, bounds,
        )  # fmt: skip
        found.append(bounds)
    expected, _ = concluded(A, c, t, lo, hi, states, remaining, duals, 1e-15, 5, np.inf, False)
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    assert (found[1] < found[0]).all()


def test_what_is_proven_is_the_formula_less_every_error():
    """Of one node, and of many at once as for clusters."""
    gains = np.array([0.0, 0.3, 7.0])
    allowance = 1e-9 + 2e-10 + (4 + 12) * 2.0**-53 * (4.0 + gains)
    np.testing.assert_allclose(
        proven(0.2, gains, 1e-9, 1e-10, 4), 0.8 - gains - allowance, atol=1e-15
    )
    assert proven(0.2, 0.3, 1e-9, 1e-10, 4) == proven(0.2, gains, 1e-9, 1e-10, 4)[1]


@pytest.mark.parametrize("seed", range(20))
def test_missing_rows_finds_what_a_sort_finds(seed):
    rng = np.random.default_rng(seed)
    lo, hi = boxes(rng, 12, ["none", "box", "sign"][seed % 3])
    t = np.full(12, 0.2)
    states, remaining = random_states(rng, 9, 12), rng.integers(0, 4, 9)
    U, levels = rng.standard_normal((9, 12)), rng.random(9)
    listed, most = rng.random(12) < 0.5, int(rng.integers(1, 4))
    entrants = np.zeros(12, dtype=bool)
    totals, missed, incomplete = np.empty(9), np.empty(9), np.empty(9, dtype=bool)
    missing_rows(
        U, Charges(t, lo, hi), states, remaining, levels, listed, most, entrants, totals, missed,
        incomplete,
    )  # fmt: skip
    v = np.clip(U / t, lo, hi)
    phi = v * (2 * U - t * v)
    expected = np.zeros(12, dtype=bool)
    for i, r in enumerate(remaining):
        free = states[i] == FREE
        largest = np.sort(phi[i, free])[::-1][:r].sum()
        inner = np.sort(phi[i, free & listed])[::-1][:r].sum()
        assert totals[i] == pytest.approx(largest + phi[i, states[i] == IN].sum(), abs=1e-12)
        assert missed[i] == pytest.approx(largest - inner, abs=1e-12)
        outside = np.flatnonzero(free & ~listed & (phi[i] > 0.0) & (phi[i] >= levels[i] ** 2))
        outside = outside[np.argsort(-phi[i, outside])][: most if r > 0 else 0]
        assert incomplete[i] == (len(outside) > 0)
        expected[outside] = True
    np.testing.assert_array_equal(entrants, expected)


@pytest.mark.parametrize("kind", ["none", "box", "sign"])
@pytest.mark.parametrize("seed", range(10))
def test_descend_never_loses_what_it_started_with(seed, kind):
    rng, A, c = random_form(seed)
    lo, hi = boxes(rng, 8, kind)
    t, state = uniform_split(A).t, random_states(rng, 1, 8)[0]
    r = int(rng.integers(1, 4))
    start = np.where(state == OUT, 0.0, np.clip(0.1 * rng.standard_normal(8), lo, hi))
    b, level, multiplies = descended(A, c, t, lo, hi, state, r, start)
    before = bound_value(A, c, t, lo, hi, state, r, start)
    assert bound_value(A, c, t, lo, hi, state, r, b) >= before - 1e-12
    assert (b[state == OUT] == 0.0).all()
    assert (lo <= b).all()
    assert (b <= hi).all()
    assert level >= 0.0
    assert multiplies > 0.0


@pytest.mark.parametrize("seed", range(10))
def test_descend_is_the_ridge_fit_where_nothing_is_left_to_choose(seed):
    """IN features only: the relaxation is exact, and so is the bound."""
    rng, A, c = random_form(seed)
    lo, hi = boxes(rng, 8, "none")
    state = rng.choice(np.array([IN, OUT], dtype=np.int8), 8)
    inside = np.flatnonzero(state == IN)
    b, _, _ = descended(A, c, uniform_split(A).t, lo, hi, state, 0, np.zeros(8), closeness=1e-9)
    expected = np.linalg.solve(A[np.ix_(inside, inside)], c[inside])
    np.testing.assert_allclose(b[inside], expected, atol=1e-4)


@pytest.mark.parametrize("start", ["cold", "far away"])
@pytest.mark.parametrize(("copies", "closeness"), [(False, 1e-5), (True, 0.2)])
@pytest.mark.parametrize("seed", range(8))
def test_descend_solves_the_relaxation_by_growing_its_working_set(seed, copies, closeness, start):
    """Primal and dual value of its b agree, with many more features than enter at once."""
    p, r = 120, 5
    rng, A, c = random_form(seed, p=p, rows=150)
    if copies:  # ties at the entrance
        half = np.arange(p) % (p // 2)
        A, c = 0.95 * A[np.ix_(half, half)] + 0.05 * np.eye(p), c[half]
    lo, hi = boxes(rng, p, "none")
    t, state = uniform_split(A).t, np.zeros(p, dtype=np.int8)
    state[rng.permutation(p)[:6]] = [IN, IN, OUT, OUT, OUT, OUT]
    b = np.where(state == OUT, 0.0, rng.standard_normal(p)) if start == "far away" else np.zeros(p)
    b, _, _ = descended(A, c, t, lo, hi, state, r, b, closeness=closeness, sweeps=20000)
    bound = bound_value(A, c, t, lo, hi, state, r, b)
    value = relaxed_value(A, c, t, state, r, b)
    assert np.count_nonzero(b) > 16
    assert bound <= value + 1e-12
    assert value - bound <= 1.1 * closeness  # the promise is about the last b, this is the best


def test_descend_stops_once_the_cutoff_is_reached():
    rng, A, c = random_form(1, p=30, rows=60)
    lo, hi = boxes(rng, 30, "none")
    t, state = uniform_split(A).t, np.zeros(30, dtype=np.int8)
    best, _, long = descended(A, c, t, lo, hi, state, 4, np.zeros(30))
    reached = bound_value(A, c, t, lo, hi, state, 4, best)
    start = bound_value(A, c, t, lo, hi, state, 4, np.zeros(30))
    goal = 0.5 * (start + reached)
    b, _, short = descended(A, c, t, lo, hi, state, 4, np.zeros(30), cutoff=goal)
    assert bound_value(A, c, t, lo, hi, state, 4, b) >= goal
    assert short < long


def test_descend_rows_treats_rows_alone():
    rng, A, c = random_form(2)
    lo, hi = boxes(rng, 8, "box")
    t, states = uniform_split(A).t, random_states(rng, 6, 8)
    remaining = np.full(6, 2)
    duals, levels, multiplies = np.zeros((6, 8)), np.zeros(6), np.zeros(6)
    relaxed, effort = Relaxed(A, c, t, lo, hi), Effort(1e-3, 500, 60)
    descend_rows(relaxed, states, remaining, duals, levels, 2.0, effort, multiplies)
    for i in range(6):
        b, level, done = descended(A, c, t, lo, hi, states[i], 2, np.zeros(8), sweeps=500)
        np.testing.assert_array_equal(b, duals[i])
        assert (level, done) == (levels[i], multiplies[i])
