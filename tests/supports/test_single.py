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
        for array in self.pairs:
            array[...] = 0.0
        with np.errstate(all="ignore"):
            kernel(standardise)(H, d, needed, 0, self.pairs)
            kernel(given)(self.pairs, t, m)

    def may_gain(self, b, last=None):
        """Of the rows from b to `last`, four at most; b alone if that is None."""
        last = b if last is None else last
        if np.isinf(self.pairs.limit[b : min(b + 3, last) + 1]).any():
            return True
        with np.errstate(all="ignore"):
            return bool(self.kernel(may_gain)(self.pairs, b, last, self.t))


def exact_pairs(H, d, needed, t):
    """Both sides of (single) without margin for all (a, b) given t, and gains of the triples."""
    H = np.array(H + np.triu(H, 1).T, dtype=np.longdouble)
    d, needed = np.array(d, np.longdouble), np.longdouble(needed)
    with np.errstate(all="ignore"):
        M = H - np.outer(d, d) / needed
        scale = 1 / np.sqrt(M.diagonal())
        C = M * scale[:, None] * scale
        length = np.sqrt(1 - C[t] ** 2)
        left = np.abs(C - np.outer(C[t], C[t])) / length[:, None]  # of a in row a
        v, moment = H.diagonal() - H[t] ** 2 / H[t, t], d - H[t] * (d[t] / H[t, t])
        g = H - np.outer(H[t], H[t]) / H[t, t]
        of_b = (moment[None, :] - moment[:, None] * g / v[:, None]) ** 2
        of_b /= v[None, :] - g**2 / v[:, None]
        gains = d[t] ** 2 / H[t, t] + (moment**2 / v)[:, None] + of_b
        return left, length, gains


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_pair_that_gains_enough_is_passed_over(first):
    passed = 0
    for seed in range(first, first + 50):
        H, d, needed = collinear_data(seed)
        m = len(d)
        for t in range(0, m - 2, max(1, m // 5)):
            prepared = Prepared(H, d, needed, t)
            left, length, gains = exact_pairs(H, d, needed, t)
            plain = np.isfinite(prepared.pairs.limit[:m])  # others are judged in double anyway
            plain[: t + 1] = False
            for b in np.flatnonzero(plain):
                a = np.flatnonzero(plain[:b])
                if not prepared.may_gain(b):
                    passed += len(a)
                    assert (left[a, b] < length[b]).all(), seed
                    assert (gains[a, b] < needed).all(), seed
    assert passed > 1000  # most pairs are passed over, or there is no speed


def test_margin_covers_rounding():
    """The error of (single) in single precision stays below the margin, not far below."""
    worst, culprit = 0.0, None
    for seed in range(400):
        H, d, needed = collinear_data(seed)
        t, m = seed % (len(d) - 2), len(d)
        pairs = Prepared(H, d, needed, t).pairs
        inverse, slope, limit = pairs.inverse[:m], pairs.slope[:m], pairs.limit[:m]
        left, length, _ = exact_pairs(H, d, needed, t)
        rounded = np.abs(pairs.C[:, :m].T * inverse[:, None] - slope[:, None] * pairs.C[t, :m])
        assert rounded.dtype == f4
        # By how much computed numbers are further from a hit than true ones.
        error = (limit + _single.MARGIN - rounded) - (length - left)
        plain = np.isfinite(limit) & (np.arange(m) > t)
        counts = plain[:, None] & plain & ~np.eye(m, dtype=bool) & (left < 2)
        if (largest := float(error[counts].max(initial=0.0) / _single.MARGIN)) > worst:
            worst, culprit = largest, seed
    assert worst < 0.7, f"seed {culprit}"
    assert worst > 0.02


@pytest.mark.parametrize("seed", range(20))
def test_compiled_loops_agree_with_their_source(seed):
    H, d, needed = collinear_data(seed)
    t = seed % (len(d) - 2)
    compiled, plain = (Prepared(H, d, needed, t, which) for which in (True, False))
    for mine, twin in zip(compiled.pairs, plain.pairs, strict=True):
        np.testing.assert_allclose(mine, twin, rtol=8 * ETA, atol=8 * ETA)
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
