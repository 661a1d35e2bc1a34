"""Charges of a node's own: feasible, what they claim to prove, and the best there are."""

import math
from itertools import combinations

import numpy as np
import pytest
from helpers.forms import random_form, uniform_split
from helpers.relaxations import bound_value, descended
from helpers.seeds import seeds
from scipy.optimize import minimize, minimize_scalar

from bestk.base.constants import FREE
from bestk.bounds.interior import own_charges, own_charges_multiplies, proven_charges
from bestk.form.definiteness import is_positive_semidefinite


def defined(H, d, base, r, t, g):
    """The bound of charges and a dual vector, as the formula says it."""
    Q = H - np.diag(t)
    u = d - Q @ g
    return base - g @ Q @ g - np.sort(u * u / t)[::-1][:r].sum()


def true_value(H, d, base, r):
    """The least value of all choices of r features."""
    gains = []
    for S in combinations(range(len(d)), r):
        part = np.ix_(S, S)
        gains.append(d[list(S)] @ np.linalg.solve(H[part], d[list(S)]))
    return base - max(gains)


def random_node(seed):
    """(H, d, base, r, feasible charges): what is left once some features were eliminated."""
    rng = np.random.default_rng([seed, 6])
    p = int(rng.integers(3, 12))
    _, A, c = random_form(seed, p, int(rng.integers(p + 2, 50)))
    gone = int(rng.integers(0, p - 2))
    lift = np.linalg.solve(A[:gone, :gone], A[:gone, gone:])
    lifted = np.linalg.solve(A[:gone, :gone], c[:gone])
    H, d = A[gone:, gone:] - A[gone:, :gone] @ lift, c[gone:] - A[gone:, :gone] @ lifted
    H = 0.5 * (H + H.T)
    start = np.full(p - gone, np.linalg.eigvalsh(H)[0] * (1.0 - 1e-9))
    return H, d, float(1.0 - c[:gone] @ lifted), int(rng.integers(1, p - gone)), start


@seeds(200, chunk=50)
def test_charges_are_feasible_and_prove_what_they_say(seed):
    H, d, base, r, start = random_node(seed)
    true = true_value(H, d, base, r)
    for cutoff in (true, 0.5 * true, 1.0):
        t_before, H_before = start.copy(), H.copy()
        own = own_charges(H, d, base, r, cutoff, start)
        assert own.bound > -np.inf
        np.testing.assert_array_equal(start, t_before)
        np.testing.assert_array_equal(H, H_before)
        assert (own.t > 0.0).all()
        assert np.linalg.eigvalsh(H - np.diag(own.t))[0] > 0.0
        assert own.bound == pytest.approx(defined(H, d, base, r, own.t, own.g), abs=1e-7)
        assert own.bound <= true + 1e-9
        assert own.steps >= 1


@seeds(200, chunk=50)
def test_the_start_is_never_better(seed):
    """Neither with the dual vector that it begins with, nor with the best one."""
    H, d, base, r, start = random_node(seed)
    true = true_value(H, d, base, r)
    own = own_charges(H, d, base, r, true, start)
    t = 0.8 * start
    g = np.linalg.solve(H, d)  # d - Qg = t g
    assert own.bound >= defined(H, d, base, r, t, g) - 1e-12
    best = best_bound(H, d, base, r, start)
    assert own.bound >= best - 0.04 * (true - best) - 3e-4 * true


def best_bound(H, d, base, r, t):
    """The bound of charges with their best dual vector, by a long descent."""
    m, infinite = len(d), np.full(len(d), np.inf)
    free = np.full(m, FREE, dtype=np.int8)
    arguments = H, d, t, -infinite, infinite, free, r
    g, _, _ = descended(*arguments, np.zeros(m), closeness=1e-9, sweeps=20_000)
    return bound_value(*arguments, g) + base - 1.0


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_where_features_are_orthogonal(seed):
    """H is diagonal: the whole diagonal can be charged, and the bound is the true value."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 10))
    h, d, r = rng.uniform(0.2, 1.0, m), 0.3 * rng.standard_normal(m), int(rng.integers(1, m))
    true = 1.0 - np.sort(d * d / h)[::-1][:r].sum()
    own = own_charges(np.diag(h), d, 1.0, r, true + 1e-4, np.full(m, 0.9 * h.min()))
    assert own.bound == pytest.approx(true, abs=1e-5)
    assert own.bound <= true


def relaxed_pair(H, d, t):
    """1 - ... for two features of which one may be chosen: the relaxation in closed form.

    The best z makes the penalty (sum sqrt(t_j) |b_j|)^2: a quadratic for each pair of signs.
    """
    Q, root = H - np.diag(t), np.sqrt(t)
    values = [1.0, *(1.0 - d**2 / np.diag(H))]
    for sign in (1.0, -1.0):
        v = root * [1.0, sign]
        b = np.linalg.lstsq(Q + np.outer(v, v), d, rcond=None)[0]
        if b[0] * b[1] * sign >= 0.0:
            values.append(1.0 - d @ b)
    return min(values)


@pytest.mark.parametrize("seed", range(30))
def test_the_best_charges_of_a_pair(seed):
    """On the boundary charges of a pair are a curve: (h11 - t1)(h22 - t2) = h12^2."""
    rng = np.random.default_rng(seed)
    h12 = rng.uniform(-0.9, 0.9)
    H, d = np.array([[1.0, h12], [h12, 1.0]]), 0.6 * rng.uniform(-1.0, 1.0, 2)
    off = abs(h12)

    def minus_bound(log_s):
        t = 1.0 - off * np.exp([log_s, -log_s])
        return -relaxed_pair(H, d, np.maximum(t, 1e-12))

    reach = -math.log(off) - 1e-9
    found = minimize_scalar(
        minus_bound, bounds=(-reach, reach), method="bounded", options={"xatol": 1e-10}
    )
    best = -found.fun
    own = own_charges(H, d, 1.0, 1, best + 1e-4, np.full(2, (1.0 - off) * (1.0 - 1e-9)))
    assert own.bound == pytest.approx(best, abs=2e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_charges_of_a_few_features(seed):
    """Against a long search over charges, each with its best dual vector."""
    rng = np.random.default_rng([seed, 7])
    m = 3 + seed % 2
    _, H, d = random_form(seed, m, 12)
    r, start = int(rng.integers(1, m)), uniform_split(H).t * (1.0 - 1e-6)

    def minus_bound(logs):
        t = np.exp(logs)
        if np.linalg.eigvalsh(H - np.diag(t))[0] < 1e-9:
            return 10.0
        return -best_bound(H, d, 1.0, r, t)

    options = {"maxfev": 1500, "xatol": 1e-7, "fatol": 1e-9}
    found = minimize(minus_bound, np.log(0.9 * start), method="Nelder-Mead", options=options)
    best = -found.fun
    own = own_charges(H, d, 1.0, r, best + 1e-4, start)
    assert own.bound >= best - 1e-5


@pytest.mark.parametrize("seed", range(20))
def test_it_ends_at_the_cutoff(seed):
    H, d, base, r, start = random_node(seed)
    far = own_charges(H, d, base, r, true_value(H, d, base, r) + 1e-3, start)
    first = defined(H, d, base, r, 0.8 * start, np.linalg.solve(H, d))
    cutoff = 0.5 * (first + far.bound)
    near = own_charges(H, d, base, r, cutoff, start)
    assert near.bound >= cutoff
    assert near.steps <= far.steps


@pytest.mark.parametrize("r", [0, 5, 6, -1])
def test_without_a_choice_there_is_nothing_to_charge(r):
    _, H, d = random_form(0, 5, 20)
    assert own_charges(H, d, 1.0, r, 0.5, uniform_split(H).t).bound == -np.inf


def test_singular_matrices_have_no_charges():
    """Exactly singular, singular up to rounding, and charges that are not feasible."""
    ones, d = np.ones((3, 3)), np.full(3, 0.4)
    assert own_charges(ones, d, 1.0, 1, 0.5, np.full(3, 1e-3)).bound == -np.inf
    X = np.random.default_rng(0).standard_normal((4, 6))
    X /= np.linalg.norm(X, axis=0)
    assert own_charges(X.T @ X, X.T @ X[:, 0], 1.0, 2, 0.5, np.full(6, 1e-3)).bound == -np.inf
    assert own_charges(np.eye(3), d, 1.0, 1, 0.5, np.full(3, 2.0)).bound == -np.inf


def test_moments_of_zero_are_no_exception():
    """Nothing explains y: the bound is all of it, whatever is charged."""
    _, H, _ = random_form(0, 5, 20)
    own = own_charges(H, np.zeros(5), 1.0, 2, 1.1, uniform_split(H).t)
    assert own.bound == -np.inf or own.bound == pytest.approx(1.0, abs=1e-6)


def test_the_cost_is_counted_in_cubes():
    assert own_charges_multiplies(20) == 8 * own_charges_multiplies(10) > 0.0


@seeds(600, chunk=100)
def test_proven_charges_are_proven_by_others_too(seed):
    """Towards zero, cut where they are too large, none where nothing can be proven."""
    rng = np.random.default_rng([seed, 31])
    p = int(rng.integers(1, 12))
    _, A, _ = random_form(seed, p, int(rng.integers(2, 40)))
    smallest = np.linalg.eigvalsh(A)[0]
    wanted = np.full(p, smallest) * rng.choice([0.5, 1.0, 1.0 + 1e-9, 1.05, 1.2, 3.0])
    error = float(rng.choice([0.0, 1e-12]))
    charges = proven_charges(A, wanted, error)
    if len(charges) == 0:
        assert 0.9 * wanted[0] > 0.99 * smallest or smallest < 1e-10
        return
    assert (charges <= wanted).all()
    assert (charges >= 0.899 * wanted).all()
    np.testing.assert_array_equal(charges, charges.astype(np.float32))
    assert np.linalg.eigvalsh(A - np.diag(charges))[0] >= -1e-13
    assert is_positive_semidefinite(A, charges * (1.0 - 1e-12), 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_charges_that_are_no_numbers_are_not_proven(bad):
    assert len(proven_charges(np.eye(3), np.array([0.5, bad, 0.5]), 0.0)) == 0
