"""The proximal map of the ADMM bound: isotonic regression where the paper applies, and beyond."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.prox import prox_rows

INFINITE = np.inf


def prox(v, state, r, rho, lo=None, hi=None, t=None):
    lo = np.full(len(v), -INFINITE) if lo is None else lo
    hi = np.full(len(v), INFINITE) if hi is None else hi
    out = np.empty((1, len(v)))
    t = np.ones(len(v)) if t is None else t
    prox_rows(v[None].copy(), t, lo, hi, state[None], np.array([r]), rho, out)
    return out[0]


def phi(u, lo, hi, t):
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.where(t > 0.0, u / t, np.where(u == 0.0, 0.0, np.copysign(np.inf, u)))
    w = np.clip(w, lo, hi)
    return w * (2.0 * u - t * w)


def prox_objective(u, v, state, r, rho, lo, hi, t):
    values = phi(u, lo, hi, t)
    free = np.sort(values[state == FREE])[::-1]
    return values[state == IN].sum() + free[:r].sum() + 0.5 * rho * np.sum((u - v) ** 2)


def random_case(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 9))
    v = rng.standard_normal(p) * 10.0 ** rng.integers(-2, 3)
    if rng.random() < 0.3:
        v = np.round(v)  # ties and zeros
    state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), p, p=[0.7, 0.15, 0.15])
    r = int(rng.integers(0, p + 1))
    rho = float(10.0 ** rng.uniform(-2, 2))
    size = np.abs(v).max() * rng.random(p) * 10.0 ** rng.uniform(-1, 1, p)
    kind = rng.integers(4, size=p)
    lo = np.choose(kind, [np.full(p, -INFINITE), -size, np.zeros(p), -2 * size])
    hi = np.choose(kind, [np.full(p, INFINITE), size, np.full(p, INFINITE), np.zeros(p)])
    # Charges of their own, or none where there is a box instead.
    t = np.where(rng.random(p) < 0.5, 1.0, 10.0 ** rng.uniform(-3, 2, p))
    t[np.isfinite(lo) & np.isfinite(hi) & (rng.random(p) < 0.4)] = 0.0
    return rng, v, state, r, rho, lo, hi, t


@pytest.mark.parametrize("seed", range(100))
def test_prox_is_isotonic_regression_without_bounds(seed):
    """The paper's theorem: weights w = 1 + 2 / rho on the k largest |v|, 1 on the others."""
    rng = np.random.default_rng(seed)
    p, rho = int(rng.integers(1, 30)), float(10.0 ** rng.uniform(-2, 2))
    k = int(rng.integers(0, p + 1))
    v = rng.standard_normal(p)
    order = np.argsort(-np.abs(v))
    weight = np.where(np.arange(p) < k, 1.0 + 2.0 / rho, 1.0)
    fit = IsotonicRegression(increasing=False).fit_transform(
        np.arange(p), np.abs(v)[order] / weight, sample_weight=weight
    )
    expected = np.empty(p)
    expected[order] = fit
    got = prox(v, np.zeros(p, dtype=np.int8), k, rho)
    np.testing.assert_allclose(got, np.sign(v) * expected, atol=1e-11)


@pytest.mark.parametrize("seed", range(100))
def test_nearby_points_are_no_better(seed):
    rng, *case = random_case(seed)
    v = case[0]
    u = prox(*case)
    best = prox_objective(u, *case)
    for _ in range(100):
        step = rng.standard_normal(len(v)) * (rng.random(len(v)) < 0.5)
        other = u + step * np.abs(v).max() * 10.0 ** rng.uniform(-5, 0)
        assert best <= prox_objective(other, *case) + 1e-12 * abs(best)


def ternary(function, low, high, steps=80):
    """Minimisers of convex functions of one variable, elementwise."""
    for _ in range(steps):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        left = function(a) <= function(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return 0.5 * (low + high)


def prox_by_search(v, state, r, rho, lo, hi, t):
    """min over L of r L + sum min_u max(phi(u) - L, 0) + (rho/2) (u - v)^2, both by bisection."""
    free = np.flatnonzero(state == FREE)
    w, box = v[free], (lo[free], hi[free], t[free])

    def inner(level):
        return ternary(
            lambda u: np.maximum(phi(u, *box) - level, 0.0) + 0.5 * rho * (u - w) ** 2,
            np.minimum(w, 0.0),
            np.maximum(w, 0.0),
        )

    def outer(level):
        u = inner(level)
        excess = np.maximum(phi(u, *box) - level, 0.0)
        return r * level + np.sum(excess + 0.5 * rho * (u - w) ** 2)

    u = v.copy()
    if len(free):
        top = phi(w, *box).max()
        u[free] = inner(ternary(outer, np.float64(0.0), np.float64(top), 60))
    inside = state == IN
    u[inside] = ternary(
        lambda x: phi(x, lo[inside], hi[inside], t[inside]) + 0.5 * rho * (x - v[inside]) ** 2,
        np.minimum(v[inside], 0.0),
        np.maximum(v[inside], 0.0),
    )
    return u


@pytest.mark.parametrize("seed", range(40))
def test_prox_with_bounds_agrees_with_a_search_over_the_level(seed):
    _, *case = random_case(seed)
    expected, got = prox_by_search(*case), prox(*case)
    assert prox_objective(got, *case) <= prox_objective(expected, *case) * (1 + 1e-12)
    np.testing.assert_allclose(got, expected, atol=1e-4 * np.abs(case[0]).max())


def test_out_entries_stay_and_in_entries_shrink():
    v = np.array([3.0, -3.0, 3.0])
    state = np.array([OUT, IN, OUT], dtype=np.int8)
    np.testing.assert_allclose(prox(v, state, 0, 2.0), [3.0, -1.5, 3.0])


def test_rows_are_independent():
    rng = np.random.default_rng(0)
    rows, p = 6, 7
    V = rng.standard_normal((rows, p))
    states = rng.integers(0, 3, (rows, p)).astype(np.int8)
    remaining = rng.integers(0, p, rows)
    lo, hi = np.full(p, -0.5), np.full(p, 0.8)
    together = np.empty_like(V)
    prox_rows(V, np.ones(V.shape[1]), lo, hi, states, remaining, 1.3, together)
    for i in range(rows):
        alone = prox(V[i], states[i], remaining[i], 1.3, lo, hi)
        np.testing.assert_array_equal(together[i], alone)


def test_gains_beyond_all_numbers_do_not_hang():
    v = np.array([1.0, -2.0, 3.0])
    u = prox(v, np.full(3, FREE), 1, 0.5, t=np.full(3, 5e-324))
    assert np.isfinite(u).all()
