"""The verifier's own enumeration misses no support, nearly dependent ones included."""

import math
from itertools import combinations

import numpy as np
import pytest
from helpers.prover import EMPTY, certify_by_enumeration, values_of_supports

from bestk.verification.evidence import from_rows
from bestk.verification.numerics.scan import scan
from bestk.verification.numerics.single import f4, given, mark, padded, standardise
from bestk.verification.proving import enumeration_for
from bestk.verification.supports.enumeration import Enumeration
from bestk.verification.supports.single import Judge
from bestk.verification.verify import verify


def library(rng, kind: str) -> tuple[np.ndarray, np.ndarray]:
    n, p = int(rng.integers(12, 40)), 9
    if kind == "powers":
        X = np.linspace(1.0, 1.0 + rng.random(), n)[:, None] ** np.arange(p)
    else:
        X = rng.standard_normal((n, p))
    if kind == "near copies":
        X[:, 1:4] = X[:, :1] + 10.0 ** -rng.integers(5, 13, 3) * rng.standard_normal((n, 3))
    elif kind == "near sums":
        X[:, 2] = X[:, 0] + X[:, 1] + 10.0 ** -rng.integers(5, 13) * rng.standard_normal(n)
    y = rng.standard_normal(n) + X[:, 0] - X[:, 1]
    if rng.random() < 0.5:  # nearly perfect fits: products have no digits left
        y = X[:, 2] - X[:, 5] + 10.0 ** -rng.integers(3, 7) * y / np.linalg.norm(y)
    return X, y


@pytest.mark.parametrize("kind", ["plain", "powers", "near copies", "near sums"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_enumeration_misses_no_support(kind, k):
    """Whatever the threshold, supports below it are found; nearly dependent ones too."""
    rng = np.random.default_rng([k, len(kind)])
    for _ in range(3):
        X, y = library(rng, kind)
        values = values_of_supports(X, y, k)
        order = sorted(values.values())
        certificate = certify_by_enumeration(X, y, k)
        evidence = from_rows(certificate, X, y, None)
        for rank in (0, 2, len(order) // 2):
            target = order[rank] * (1 + 1e-7)
            search = Enumeration(evidence, target, Judge(evidence, target), None)
            everything = np.arange(X.shape[1])
            found = {tuple(sorted(S.tolist())) for S in search.hits(EMPTY, everything, k)}
            dropped = {S for S in values if not any(set(T) <= set(S) for T in found)}
            missed = [S for S in dropped if values[S] < target * (1 - 2e-7)]
            assert not missed, (rank, missed[0], values[missed[0]], target)


@pytest.mark.parametrize("kind", ["plain", "powers", "near copies", "near sums"])
def test_bounds_of_supports_are_close_and_never_too_high(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(4):
        X, y = library(rng, kind)
        values = values_of_supports(X, y, 3)
        certificate = certify_by_enumeration(X, y, 3)
        evidence = from_rows(certificate, X, y, None)
        judge = enumeration_for(certificate, evidence, None).judge
        judge.enough = math.inf
        supports = np.array(list(values))
        true = np.array(list(values.values()))
        bounds = judge.bounds(supports)
        # As far as Gram-Schmidt knows the values: columns 1e-12 apart leave it eight digits.
        assert (bounds <= true * (1 + 1e-6) + 1e-25).all()
        assert (bounds >= true * (1 - 1e-6) - 1e-25).all()


def plain_scan(H, d, needed, r) -> set[tuple[int, ...]]:
    gains = {S: d[list(S)] @ np.linalg.solve(H[np.ix_(S, S)], d[list(S)])
             for S in combinations(range(len(d)), r)}  # fmt: skip
    return {S for S, gain in gains.items() if gain > needed}


@pytest.mark.parametrize("r", [1, 2, 3, 4, 5])
def test_the_scan_lists_what_a_plain_loop_lists(r):
    rng = np.random.default_rng(r)
    for m in (r, r + 1, 9, 13):
        X = rng.standard_normal((30, m)) + 0.5 * rng.standard_normal((30, 1))
        X, y = X / np.linalg.norm(X, axis=0), rng.standard_normal(30)
        H, d = X.T @ X, X.T @ (y / np.linalg.norm(y))
        gains = sorted(d[list(S)] @ np.linalg.solve(H[np.ix_(S, S)], d[list(S)])
                       for S in combinations(range(m), r))  # fmt: skip
        needed = 0.999 * gains[-min(5, len(gains))]
        hits = np.empty((1000, r), dtype=np.int64)
        count = scan(H, d, needed, 0.0, r, 0, m, hits)
        found = {tuple(row) for row in hits[:count].tolist()}
        expected = plain_scan(H, d, needed, r)
        # A beginning that alone gains enough stands for all sets that begin with it.
        begun = {row[: row.index(-1)] for row in found if -1 in row}
        assert expected <= found | {S for S in expected for b in begun if S[: len(b)] == b}
        assert {row for row in found if -1 not in row} <= expected
        halves = [scan(H, d, needed, 0.0, r, *span, hits) for span in ((0, m // 2), (m // 2, m))]
        assert sum(halves) == count
        assert scan(H, d, -1.0, 0.0, r, 0, m, hits[:0]) == -1


def excess_of_pairs(H, d, needed, t) -> np.ndarray:
    """Left minus right side of (single) for pairs given t: positive where one gains too much."""
    unit = 1.0 / np.sqrt(H.diagonal())
    C, m = H * np.outer(unit, unit), d * unit / math.sqrt(needed)
    w, left = C[t], 1.0 - m[t] ** 2
    v, m = 1.0 - w * w, m - m[t] * w
    g = C - np.outer(w, w)
    with np.errstate(all="ignore"):
        rest = left - m * m / v
        h = m - (m / v)[:, None] * g
        excess = h * h / rest[:, None] + g * g / v[:, None] - v
    return np.where((rest > 0.0)[:, None], excess, np.inf)


# Features may be so alike that single precision sees nothing.
@pytest.mark.parametrize(
    ("closeness", "share"), [(0.5, 0.8), (3.0, 0.8), (30.0, 0.1), (1000.0, 0.0)]
)
def test_single_precision_rules_out_what_double_does(closeness, share):
    """No pair that gains too much is passed over, whatever the margin; clear ones are."""
    rng = np.random.default_rng(int(closeness))
    clear = passed = 0
    for m in (3, 8, 9, 31, 50):
        X = rng.standard_normal((60, m)) + closeness * rng.standard_normal((60, 1))
        X, y = X / np.linalg.norm(X, axis=0), rng.standard_normal(60)
        H, d = X.T @ X, X.T @ (y / np.linalg.norm(y))
        width = padded(m)
        C, unit, moment = np.full((width, width), np.nan, f4), np.empty(m), np.empty(m)
        m_t, v_t, suspect = np.zeros(width, f4), np.zeros(width, f4), np.zeros(width, bool)
        for t in range(m - 2):
            alone = max(d[t] ** 2 / H[t, t], 1e-3)
            # Thresholds at the gain of some triple: there the smallest error counts.
            S = [t, *sorted(rng.choice(np.arange(t + 1, m), 2, replace=False))]
            gain = float(d[S] @ np.linalg.solve(H[np.ix_(S, S)], d[S]))
            for needed in (gain * (1 - 1e-9), gain * (1 + 1e-9), 2 * gain, 10 * gain):
                if needed <= alone:
                    continue
                standardise(H, d, needed, t, C, unit, moment)
                last_flat = given(C, t, moment, m_t, v_t)
                mark(C, t, f4(1.0 - moment[t] ** 2), m_t, v_t, suspect)
                excess = excess_of_pairs(H, d, needed, t)[t + 1 :, t + 1 :]
                excess[np.tril_indices(len(excess))] = -np.inf
                v = 1.0 - H[t, t + 1 :] ** 2
                assert (v > 1e-4).all() or last_flat > t
                ruled_out = ~suspect[t + 1 : m] & (np.arange(t + 1, m) > last_flat)
                assert (excess[ruled_out] <= 1e-12).all()
                clear += (excess < -0.01).all(axis=1).sum()
                passed += ruled_out.sum()
    assert clear > 100
    assert passed >= share * clear


def test_too_many_supports_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 200)), rng.standard_normal(30)
    found = verify(certify_by_enumeration(X, y, 20), X, y)
    assert not found
    assert "too many" in found.failures[0]
