"""Least squares on a few columns, with and without bounds."""

import numpy as np
from scipy.linalg import lapack, lstsq

from bestk.base.constants import UNIT_ROUNDOFF

_RANK_TOLERANCE = 1e-14
_TINY_RIDGE = 1e-8
# Smallest pivot (a cosine-like number) at which refined normal equations are as good as QR.
_WELL_CONDITIONED = 1e-3
# Largest wrong slope at a solution, in units where columns and target have length one.
_FLAT = 1e-11


def least_squares(
    M: np.ndarray, products: np.ndarray, norms: np.ndarray, rhs: np.ndarray
) -> np.ndarray:
    """argmin ||rhs - (M / norms) b||: normal equations with refinement, or QR if they are poor.

    ``products`` is M'M.
    """
    G = products / np.outer(norms, norms)
    factor, failed = lapack.dpotrf(G, lower=1)
    if failed or factor.diagonal().min() < _WELL_CONDITIONED:
        return lstsq(M / norms, rhs, cond=_RANK_TOLERANCE, lapack_driver="gelsy")[0]
    b = np.zeros(M.shape[1])
    for _ in range(2):  # each step gains at least as many digits as the first one has
        b += lapack.dpotrs(factor, (M.T @ (rhs - M @ (b / norms))) / norms, lower=1)[0]
    return b


def root_of_products(G: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(M, rhs) with M'M = G and M'rhs = c: Cholesky in extended precision.

    A feature that is left with less than rounding beside those before it gets no row of its own.
    """
    left = np.column_stack([G, c]).astype(np.longdouble)
    rows = np.zeros((0, len(c) + 1), dtype=np.longdouble)
    for i, square in enumerate(G.diagonal()):
        if left[i, i] > 8 * len(c) * UNIT_ROUNDOFF * square:
            row = left[i] / np.sqrt(left[i, i])
            left -= np.outer(row[:-1], row)
            rows = np.vstack([rows, row])
    R = np.triu(rows[:, :-1]) if len(rows) == len(c) else rows[:, :-1]
    return R.astype(np.float64), rows[:, -1].astype(np.float64)


def bounded_least_squares(
    M: np.ndarray, rhs: np.ndarray, lo: np.ndarray, hi: np.ndarray
) -> np.ndarray:
    """argmin ||rhs - M b|| over lo <= b <= hi; columns of unit length."""
    from scipy.optimize import lsq_linear  # slow to import, seldom needed

    # The solvers ask for lower < upper, for a target of order one and for full rank: a ridge far
    # below rounding makes copies of a column share their coefficient.
    p, size = M.shape[1], np.linalg.norm(rhs)
    A, target = np.vstack([M, _TINY_RIDGE * np.eye(p)]), np.append(rhs / size, np.zeros(p))
    lo, hi = lo / size, hi / size
    box = lo, np.maximum(hi, lo + 1e-300)
    found = []
    # Active sets are exact, but may give up early; then interior points are better.
    for method in ("bvls", "trf"):
        b = np.clip(lsq_linear(A, target, box, method=method, tol=1e-14, max_iter=1000).x, lo, hi)
        slope = A.T @ (A @ b - target)
        wrong = np.where(slope > 0, slope * (b > lo), -slope * (b < hi))
        found.append((float(np.sum((target - A @ b) ** 2)), b))
        if wrong.max(initial=0.0) <= _FLAT:
            break
    b = min(found, key=lambda pair: pair[0])[1]
    return _without_ridge(M, rhs / size, lo, hi, b) * size


def _without_ridge(
    M: np.ndarray, rhs: np.ndarray, lo: np.ndarray, hi: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """The same minimum without the tiny ridge, which large coefficients feel: active sets from b.

    Each step fits the coefficients between their bounds, goes there as far as the bounds allow, and
    lets go of a bound that pulls in the wrong direction once there is nothing else to gain.
    """
    p = len(b)
    held = (b <= lo) | (b >= hi)
    for _ in range(4 * p):
        free = ~held
        rest = rhs - M[:, held] @ b[held]
        step = np.zeros(p)
        if free.any():
            fitted = lstsq(M[:, free], rest, cond=_RANK_TOLERANCE, lapack_driver="gelsy")[0]
            step[free] = fitted - b[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, (hi - b) / step, np.where(step < 0, (lo - b) / step, np.inf))
        first = int(np.argmin(room))
        if room[first] < 1.0:
            b = np.clip(b + room[first] * step, lo, hi)
            b[first] = hi[first] if step[first] > 0 else lo[first]
            held[first] = True
            continue
        b = np.clip(b + step, lo, hi)
        slope = M.T @ (M @ b - rhs)
        wrong = np.where(held, np.where(b >= hi, slope, -slope), 0.0)
        wrong[lo == hi] = 0.0
        worst = int(np.argmax(wrong))
        if wrong[worst] <= _FLAT:
            break
        held[worst] = False
    return b
