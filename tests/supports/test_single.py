"""Passing over pairs in single precision: never one that gains enough (theory: single)."""

import numpy as np
import pytest
from helpers.seeds import seeds

from bestk.supports import single as _single
from bestk.supports.single import (
    f4,
    given,
    may_gain,
    padded,
    room_for_pairs,
    standardise,
    terms_of_pairs,
)

ETA = 2.0**-24


def collinear_data(seed):
    """(H, d, needed) of unit features that resemble each other more or less; upper triangle."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 60))
    common = rng.standard_normal((80, 3)) * 10.0 ** rng.uniform(-1, 2)
    X = common @ rng.standard_normal((3, m)) + rng.standard_normal((80, m))
    y = common @ rng.standard_normal(3) * rng.choice([0.0, 1.0]) + X[:, : m // 2].sum(axis=1)
    y = y + 10.0 ** rng.uniform(-2, 1) * rng.standard_normal(80)
    X *= 10.0 ** rng.uniform(-3, 3, m)  # the scan must not care about units
    y /= np.linalg.norm(y)
    H, d = X.T @ X, X.T @ y
    order = rng.permutation(m)[:3]
    gain = d[order] @ np.linalg.solve(H[np.ix_(order, order)], d[order])
    return np.triu(H), d, gain * (1.0 + rng.choice([-1e-3, -1e-6, 0.0, 1e-6, 1e-3]))


class Prepared:
    """Everything that `may_gain` needs, for one first feature t."""

    def __init__(self, H, d, needed, t, compiled=True):
        kernel = (lambda f: f) if compiled else (lambda f: f.py_func)
        m = len(d)
        self.kernel, self.t, self.pairs = kernel, t, room_for_pairs(m)
        self.C, self.moment, self.variance = self.pairs.C, self.pairs.moment, self.pairs.variance
        self.terms = self.pairs[5:]
        for array in self.pairs:
            array[...] = 0.0
        with np.errstate(all="ignore"):
            largest = kernel(standardise)(H, d, needed, 0, self.pairs)
            kernel(given)(self.pairs, t, m)
            kernel(terms_of_pairs)(self.pairs, t, m, largest)

    def may_gain(self, b, last=None):
        """Of the rows from b to `last`, four at most; b alone if that is None."""
        last = b if last is None else last
        if self.pairs.theta[b : min(b + 3, last) + 1].min() < 0:
            return True
        with np.errstate(all="ignore"):
            return bool(self.kernel(may_gain)(self.pairs, b, last, self.t))


def exact_pairs(H, d, needed, t):
    """Both sides of (single) without margin for all (a, b) given t, and kappa, in more digits."""
    H = np.array(H + np.triu(H, 1).T, dtype=np.longdouble)
    scale = 1 / np.sqrt(H.diagonal())
    C, m = H * scale[:, None] * scale, np.array(d, np.longdouble) * scale / np.sqrt(needed)
    x = C[t]
    with np.errstate(all="ignore"):
        v, moment = 1 - x**2, m - m[t] * x
        gamma = 1 / v
        beta = moment * gamma
        kappa = 1 / (1 - m[t] ** 2 - moment * beta)
        g = C - np.outer(x, x)  # g[a, b]
        u = moment[None, :] - beta[:, None] * g
        return kappa[:, None] * u**2 + gamma[:, None] * g**2, v, kappa


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_pair_that_gains_enough_is_passed_over(first):
    passed = 0
    for seed in range(first, first + 50):
        H, d, needed = collinear_data(seed)
        m = len(d)
        for t in range(0, m - 2, max(1, m // 5)):
            prepared = Prepared(H, d, needed, t)
            left, v, kappa = exact_pairs(H, d, needed, t)
            plain = prepared.terms[3][: len(d)] > 0  # the others are judged in double anyway
            plain[: t + 1] = False
            assert (kappa[plain] > 0).all(), seed
            for b in np.flatnonzero(plain):
                a = np.flatnonzero(plain[:b])
                if not prepared.may_gain(b):
                    passed += len(a)
                    assert (left[a, b] < v[b]).all(), seed
    assert passed > 1000  # most pairs are passed over, or there is no speed


def test_margin_covers_rounding():
    """The error of (single) in single precision stays below theta, which is not far too large."""
    worst, culprit = 0.0, None
    for seed in range(200):
        H, d, needed = collinear_data(seed)
        t, m = seed % (len(d) - 2), len(d)
        prepared = Prepared(H, d, needed, t)
        beta, gamma, kappa, theta = (term[:m] for term in prepared.terms)
        left, v, _ = exact_pairs(H, d, needed, t)
        C, x = prepared.C[:, :m], prepared.C[t, :m]
        rounded_g = C.T - x[:, None] * x
        rounded_u = prepared.moment[:m] - beta[:, None] * rounded_g
        rounded = kappa[:, None] * rounded_u * rounded_u + gamma[:, None] * rounded_g * rounded_g
        assert rounded.dtype == f4
        error = np.abs((rounded - prepared.variance[:m]) - (left - v))
        small = (left < 2) & (theta[:, None] > 0) & np.isfinite(error)
        small &= ~np.eye(m, dtype=bool)
        small[: t + 1] = small[:, : t + 1] = False
        ratio = error / np.where(theta > 0, theta, np.inf)[:, None]
        if (largest := float(ratio[small].max(initial=0.0))) > worst:
            worst, culprit = largest, seed
    assert worst < 1.0, f"seed {culprit}"
    assert worst > 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_compiled_loops_agree_with_their_source(seed):
    H, d, needed = collinear_data(seed)
    t = seed % (len(d) - 2)
    compiled, plain = (Prepared(H, d, needed, t, which) for which in (True, False))
    np.testing.assert_array_equal(compiled.C, plain.C)
    for name in ("moment", "variance"):
        mine, twin = getattr(compiled, name), getattr(plain, name)
        np.testing.assert_allclose(mine, twin, rtol=0, atol=8 * ETA * (1 + np.nanmax(np.abs(twin))))
    agree = [compiled.may_gain(b) == plain.may_gain(b) for b in range(t + 1, len(d))]
    assert np.mean(agree) > 0.9  # they may differ where the margin decides


@seeds(30)
def test_four_rows_at_once_are_judged_as_one_by_one(seed):
    H, d, needed = collinear_data(seed)
    prepared, last = Prepared(H, d, needed, 0), len(d) - 1
    for b in range(1, last):
        some = any(prepared.may_gain(row) for row in range(b, min(b + 3, last) + 1))
        assert prepared.may_gain(b, last) >= some  # a longer row may see more


def test_features_without_variance_are_left_to_double():
    H, d, needed = collinear_data(3)
    H[2, 2] = 0.0
    prepared = Prepared(H, d, needed, 0)
    assert prepared.may_gain(2)
    assert all(Prepared(H, d, -1.0, 0).may_gain(b) for b in range(1, len(d)))


def test_rows_are_padded():
    assert padded(1) == padded(_single._LANES) == _single._LANES
    assert padded(_single._LANES + 1) == 2 * _single._LANES
