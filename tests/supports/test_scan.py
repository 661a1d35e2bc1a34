"""Compiled loops over supports, each against plain NumPy."""

from itertools import combinations

import numpy as np
import pytest
from helpers.forms import boxes, random_form
from helpers.instances import bounded_fit

from bestk.supports import scan as _scan
from bestk.supports.scan import condition, gain_rows, residual_rows, scan


def random_matrix(rng, p, rows=20):
    X = rng.standard_normal((rows, p))
    X /= np.linalg.norm(X, axis=0)
    y = rng.standard_normal(rows)
    return X.T @ X, X.T @ y / np.linalg.norm(y)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("n_inside", [0, 1, 3])
def test_condition_is_a_schur_complement(compiled, n_inside):
    rng = np.random.default_rng(n_inside)
    A, c = random_matrix(rng, 9)
    order = rng.permutation(9)
    inside, free = order[:n_inside], order[n_inside:]
    H, d = np.full((len(free), len(free)), np.nan), np.full(len(free), np.nan)
    kernel = condition if compiled else condition.py_func
    gain = kernel(A, c, inside, free, 1e-3, H, d)

    B = A - 1e-3 * np.eye(9)
    inner, cross = B[np.ix_(inside, inside)], B[np.ix_(inside, free)]
    weights = np.linalg.solve(inner, np.column_stack([cross, c[inside]]))
    schur = B[np.ix_(free, free)] - cross.T @ weights[:, :-1]
    upper = np.triu_indices(len(free))
    np.testing.assert_allclose(H[upper], schur[upper], atol=1e-13)
    np.testing.assert_allclose(d, c[free] - cross.T @ weights[:, -1], atol=1e-13)
    assert gain == pytest.approx(c[inside] @ weights[:, -1], abs=1e-13)


def test_condition_refuses_dependent_features():
    A = np.array([[1.0, 1.0, 0.2], [1.0, 1.0, 0.2], [0.2, 0.2, 1.0]])
    H, d = np.empty((1, 1)), np.empty(1)
    assert condition(A, np.zeros(3), np.array([0, 1]), np.array([2]), 1e-14, H, d) < 0


def scanned(kernel, H, d, needed, r, start, stop):
    rows = np.empty((4096, r), dtype=np.int64)
    count = kernel(H, d, needed, r, start, stop, rows)
    assert count >= 0
    return [tuple(int(i) for i in row if i >= 0) for row in rows[:count]]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("r", [1, 2, 3, 4])
@pytest.mark.parametrize("duplicate", [False, True])
def test_scan_lists_all_sets_that_gain_more(compiled, r, duplicate):
    kernel = scan if compiled else scan.py_func
    rng = np.random.default_rng(r)
    A, c = random_matrix(rng, 8)
    if duplicate:
        A[:, 5], c[5] = A[:, 2], c[2]
        A[5, :] = A[2, :]
        A[5, 5] = 1.0
    H = A - 1e-12 * np.eye(8)
    gains = {S: gain_of(H, c, S) for S in combinations(range(8), r)}
    for needed in np.quantile(list(gains.values()), [0.0, 0.3, 0.9]) + 1e-9:
        rows = scanned(kernel, np.triu(H), c, needed, r, 0, 8)
        for S, gain in gains.items():
            independent = not {2, 5} <= set(S) or not duplicate
            found = any(S[: len(row)] == row for row in rows)
            assert found == (gain > needed) or not independent
            assert found or gain <= needed


def gain_of(H, c, S):
    S = list(S)
    return c[S] @ np.linalg.lstsq(H[np.ix_(S, S)], c[S], rcond=1e-9)[0]


def test_scan_over_parts_equals_scan_over_all():
    rng = np.random.default_rng(5)
    A, c = random_matrix(rng, 12)
    for r in (1, 2, 3, 4):
        whole = scanned(scan, A, c, 0.3, r, 0, 12)
        parts = [row for edges in ((0, 2), (2, 7), (7, 12))
                 for row in scanned(scan, A, c, 0.3, r, *edges)]  # fmt: skip
        assert parts == whole


def test_scan_says_when_there_is_no_room():
    A, c = random_matrix(np.random.default_rng(6), 12)
    assert scan(A, c, -1.0, 3, 0, 12, np.empty((5, 3), dtype=np.int64)) == -1


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("exponent", [0, 4, 8])
def test_residuals_are_bounded_from_below_and_closely(compiled, exponent):
    """Down to residuals of 1e-8, whose squares a Gram matrix cannot see."""
    rng = np.random.default_rng(exponent)
    X = rng.standard_normal((15, 8))
    X[:, 6] = X[:, 0] + 1e-5 * X[:, 6]
    X /= np.linalg.norm(X, axis=0)
    z = X[:, :3] @ [0.3, -0.5, 0.2] + 10.0**-exponent * rng.standard_normal(15)
    supports = np.array(list(combinations(range(8), 4)))
    values = np.empty(len(supports))
    (residual_rows if compiled else residual_rows.py_func)(X.T.copy(), z, supports, values)
    for S, value in zip(supports, values, strict=True):
        residual = np.linalg.norm(z - X[:, S] @ np.linalg.lstsq(X[:, S], z, rcond=None)[0])
        assert np.sqrt(value) <= residual * (1 + 1e-9) + 1e-15
        if not {0, 6} <= set(S):
            assert np.sqrt(value) >= residual - 1e-12


def test_residuals_of_dependent_columns_are_not_judged():
    X = np.random.default_rng(0).standard_normal((3, 10))
    X[2] = X[0]
    X /= np.linalg.norm(X, axis=1)[:, None]
    values = np.empty(1)
    residual_rows(X, np.ones(10), np.array([[0, 1, 2]]), values)
    assert values[0] == 0.0


@pytest.mark.parametrize("size", [0, 1, 3, 8])
def test_fit_rows_solves_the_normal_equations(size):
    rng, A, c = random_form(size)
    supports = np.array([rng.permutation(8)[:size] for _ in range(6)], dtype=np.int64)
    coefs, values = np.empty(supports.shape), np.empty(6)
    _scan.fit_rows(A, c, *boxes(rng, 8, "none"), supports, coefs, values)
    for S, coef, value in zip(supports, coefs, values, strict=True):
        expected = np.linalg.solve(A[np.ix_(S, S)], c[S])
        np.testing.assert_allclose(coef, expected, atol=1e-12)
        assert value == pytest.approx(1.0 - c[S] @ expected, abs=1e-13)


@pytest.mark.parametrize("kind", ["box", "sign"])
@pytest.mark.parametrize("seed", range(10))
def test_fit_rows_respects_boxes(seed, kind):
    rng, A, c = random_form(seed)
    lo, hi = boxes(rng, 8, kind)
    supports = np.array([rng.permutation(8)[:4] for _ in range(6)], dtype=np.int64)
    coefs, values = np.empty(supports.shape), np.empty(6)
    _scan.fit_rows(A, c, lo, hi, supports, coefs, values)
    for S, coef, value in zip(supports, coefs, values, strict=True):
        L = np.linalg.cholesky(A[np.ix_(S, S)])
        expected = bounded_fit(L.T, np.linalg.solve(L, c[S]), lo[S], hi[S])
        np.testing.assert_allclose(coef, expected, atol=1e-8)
        assert value == pytest.approx(
            1 - 2 * c[S] @ coef + coef @ A[np.ix_(S, S)] @ coef, abs=1e-13
        )
        assert (lo[S] <= coef).all()
        assert (coef <= hi[S]).all()


def test_fit_rows_gives_a_dependent_feature_nothing():
    A = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    c = np.array([0.6, 0.6, 0.1])
    coefs, values = np.empty((1, 3)), np.empty(1)
    free = np.full(3, np.inf)
    _scan.fit_rows(A, c, -free, free, np.array([[0, 1, 2]]), coefs, values)
    expected = np.linalg.lstsq(A, c, rcond=1e-10)[0]
    assert coefs[0, 1] == 0.0
    assert values[0] == pytest.approx(1.0 - c @ expected, abs=1e-13)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_gain_rows_is_a_quadratic_form_in_the_inverse(compiled, seed):
    """c_S' (A_SS - shift I)^-1 c_S, and inf where that matrix is not positive."""
    rng = np.random.default_rng(seed)
    A, c = random_matrix(rng, 7)
    A[6, :6], A[:6, 6], c[6] = A[0, :6], A[:6, 0], c[0]  # a copy of the first feature
    A[0, 6] = A[6, 0] = 1.0
    shift, size = 10.0 ** -int(rng.integers(3, 15)), int(rng.integers(1, 5))
    supports = np.array(list(combinations(range(7), size)))
    gains = np.empty(len(supports))
    kernel = gain_rows if compiled else gain_rows.py_func
    kernel(A, c, shift, supports, gains)
    for S, gain in zip(supports, gains, strict=True):
        B = A[np.ix_(S, S)] - shift * np.eye(size)
        if {0, 6} <= set(S.tolist()):
            assert gain == np.inf
        else:
            assert gain == pytest.approx(c[S] @ np.linalg.solve(B, c[S]), rel=1e-10)
