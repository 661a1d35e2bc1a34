"""Compiled kernels of the bounds against NumPy twins."""

import numpy as np
import pytest
from helpers.forms import boxes, random_form, random_states

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds import kernels as _kernels
from bestk.bounds.split import uniform_split


def bound_value(A, c, t, lo, hi, state, r, g):
    """h(g) of theory eq. 3, for t > 0."""
    u = c - A @ g + t * g
    v = np.clip(u / t, lo, hi)
    phi = v * (2 * u - t * v)
    largest = np.sort(phi[state == FREE])[::-1][:r]
    return 1.0 - g @ (c - u) - phi[state == IN].sum() - largest.sum()


@pytest.mark.parametrize("t", [-1e-14, 0.0, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize(
    ("lo", "hi"),
    [(-np.inf, np.inf), (-1.0, 2.0), (0.0, np.inf), (-np.inf, 0.0), (-0.5, 0.0), (0.0, 0.0)],
)
def test_phi_is_the_largest_value_on_the_interval(lo, hi, t):
    for u in (-3.0, -0.01, 0.0, 0.02, 1.0):
        value = _kernels._phi(u, t, lo, hi)
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
            assert _kernels._sum_largest(values.copy(), used, r) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_largest_first_keeps_all_values_and_splits_them(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 5, 15).astype(float)
    values[rng.integers(15)] = np.inf
    for r in range(16):
        a = values.copy()
        _kernels._largest_first(a, 15, r)
        assert sorted(a) == sorted(values)
        assert r in (0, 15) or a[:r].min() >= a[r:].max()


def test_residual_is_c_minus_qg():
    rng, A, c = random_form(0)
    t, g, u = rng.random(8), rng.standard_normal(8) * (rng.random(8) < 0.5), np.empty(8)
    _kernels._residual(A, c, t, g, u)
    np.testing.assert_allclose(u, c - (A - np.diag(t)) @ g, atol=1e-14)


@pytest.mark.parametrize("kind", ["none", "box", "sign"])
def test_certify_rows_equals_numpy_up_to_its_allowance(kind):
    rng, A, c = random_form(3)
    lo, hi = boxes(rng, 8, kind)
    t = uniform_split(A).t * (0.5 + 0.5 * rng.random(8))
    states = random_states(rng, 12, 8)
    remaining = rng.integers(0, 5, 12)
    duals = rng.standard_normal((12, 8)) * (rng.random((12, 8)) < 0.7)
    bounds = np.empty(12)
    _kernels.certify_rows(
        A, c, t, lo, hi, states, remaining, duals, 1e-15, 5, np.inf, False, bounds
    )
    for i in range(12):
        expected = bound_value(A, c, t, lo, hi, states[i], remaining[i], duals[i])
        assert expected - 1e-10 * abs(expected) <= bounds[i] <= expected
        phi = np.empty(8)
        row = states[i], remaining[i], duals[i]
        _kernels.certify(A, c, t, lo, hi, *row, 1e-15, 5, np.inf, False, phi)
        u = c - A @ duals[i] + t * duals[i]
        v = np.clip(u / t, lo, hi)
        np.testing.assert_allclose(phi, v * (2 * u - t * v), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fix", [True, False])
def test_certify_rows_treats_rows_alone(fix):
    rng, A, c = random_form(4)
    free = np.full(8, np.inf)
    t = uniform_split(A).t
    states, duals = random_states(rng, 6, 8), 0.2 * rng.standard_normal((6, 8))
    remaining = np.full(6, 2)
    together, bounds = states.copy(), np.empty(6)
    _kernels.certify_rows(
        A, c, t, -free, free, together, remaining, duals, 1e-15, 5, 0.5, fix, bounds
    )
    for i in range(6):
        state, phi = states[i].copy(), np.empty(8)
        bound, fixed = _kernels.certify(
            A, c, t, -free, free, state, 2, duals[i], 1e-15, 5, 0.5, fix, phi
        )
        assert bound == bounds[i]
        assert fixed == np.count_nonzero(state != states[i])
        np.testing.assert_array_equal(state, together[i])


@pytest.mark.parametrize("kind", ["none", "box", "sign"])
def test_known_slopes_prove_what_certify_does(kind):
    rng, A, c = random_form(5)
    lo, hi = boxes(rng, 8, kind)
    t = uniform_split(A).t
    states, remaining = random_states(rng, 12, 8), rng.integers(0, 5, 12)
    duals = 0.2 * rng.standard_normal((12, 8))
    U = c - duals @ A + t * duals
    quadratics = ((c - U) * duals).sum(axis=1)
    for cutoff in (0.3, 0.6, np.inf):
        after, other = states.copy(), states.copy()
        bounds, expected = np.empty(12), np.empty(12)
        _kernels.conclude_rows(
            U, quadratics, np.full(12, 1e-15), np.full(12, 1e-15), t, lo, hi, after, remaining,
            1e-15, 5, cutoff, True, bounds,
        )  # fmt: skip
        _kernels.certify_rows(
            A, c, t, lo, hi, other, remaining, duals, 1e-15, 5, cutoff, True, expected
        )
        np.testing.assert_allclose(bounds, expected, atol=1e-12)
        np.testing.assert_array_equal(after, other)
    worse = np.empty(12)
    _kernels.conclude_rows(
        U, quadratics, np.full(12, 1e-3), np.full(12, 1e-3), t, lo, hi, states.copy(), remaining,
        1e-15, 5, np.inf, False, worse,
    )  # fmt: skip
    assert (worse < bounds).all()


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
    _kernels.missing_rows(
        U, t, lo, hi, states, remaining, levels, listed, most, entrants, totals, missed, incomplete
    )
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


def descended(A, c, t, lo, hi, state, r, b, cutoff=2.0, closeness=1e-3, sweeps=2000):
    b = b.copy()
    level, work = _kernels.descend(A, c, t, lo, hi, state, r, b, 0.0, cutoff, closeness, sweeps)
    return b, level, work


@pytest.mark.parametrize("kind", ["none", "box", "sign"])
@pytest.mark.parametrize("seed", range(10))
def test_descend_never_loses_what_it_started_with(seed, kind):
    rng, A, c = random_form(seed)
    lo, hi = boxes(rng, 8, kind)
    t, state = uniform_split(A).t, random_states(rng, 1, 8)[0]
    r = int(rng.integers(1, 4))
    start = np.where(state == OUT, 0.0, np.clip(0.1 * rng.standard_normal(8), lo, hi))
    b, level, work = descended(A, c, t, lo, hi, state, r, start)
    before = bound_value(A, c, t, lo, hi, state, r, start)
    assert bound_value(A, c, t, lo, hi, state, r, b) >= before - 1e-12
    assert (b[state == OUT] == 0.0).all()
    assert (lo <= b).all()
    assert (b <= hi).all()
    assert level >= 0.0
    assert work > 0.0


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


def relaxed_value(A, c, t, state, r, b):
    """The relaxation (theory eq. 7) at b without boxes: the best z, found by bisection."""
    free = state == FREE
    size = np.sqrt(t[free]) * np.abs(b[free])
    low, high = 0.0, max(size.sum(), 1e-300)  # z = min(1, size / level) sums to at most r
    for _ in range(200):
        level = 0.5 * (low + high)
        low, high = (level, high) if np.minimum(1.0, size / level).sum() > r else (low, level)
    z = np.minimum(1.0, size / high)
    shared = np.divide(size**2, z, out=np.zeros_like(size), where=z > 0).sum()
    rest = t[~free] @ b[~free] ** 2
    return 1.0 - 2.0 * c @ b + b @ (A - np.diag(t)) @ b + rest + shared


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
    duals, levels, work = np.zeros((6, 8)), np.zeros(6), np.zeros(6)
    _kernels.descend_rows(A, c, t, lo, hi, states, remaining, duals, levels, 2.0, 1e-3, 500, work)
    for i in range(6):
        b, level, done = descended(A, c, t, lo, hi, states[i], 2, np.zeros(8), sweeps=500)
        np.testing.assert_array_equal(b, duals[i])
        assert (level, done) == (levels[i], work[i])
