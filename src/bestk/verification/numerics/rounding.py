"""Constants and small tools of the rounding analysis."""

import math

import numpy as np
from numba import njit
from numba.extending import register_jitable

UNIT = 2.0**-53  # unit roundoff of double precision
LONG = np.longdouble
# Unit roundoff of the widest type the platform has; it may be that of double.
LONG_UNIT = float(np.finfo(LONG).eps) / 2.0


@register_jitable
def gamma(count: float, unit: float = UNIT) -> float:
    """gamma_count = count u / (1 - count u): the error of `count` roundings in a row."""
    return 1.01 * count * unit if count * unit < 1e-3 else math.inf


def largest_gain(u, error, t, lo, hi) -> np.ndarray:
    """Upper bound on max of 2 v x - t x^2 over lo <= x <= hi and |v - u| <= error (theory: gain).

    Also for t <= 0, where only finite bounds on x keep it finite.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        up, down = _one_side(u + error, t, hi), _one_side(error - u, t, -lo)
    # Two roundings of u and error, and about six of the formula.
    return np.maximum(np.maximum(up, down), 0.0) * (1.0 + 16 * UNIT)


def _one_side(a, t, reach):
    """max over 0 <= x <= reach of 2 a x - t x^2, or anything below zero."""
    inner = np.where(a > 0, a * a / t, 0.0)
    edge = reach * np.where(t == 0.0, 2.0 * a, 2.0 * a - t * reach)
    edge = np.where(reach == 0.0, 0.0, np.where(np.isnan(edge), np.inf, edge))
    beyond = (t <= 0.0) | (a > t * reach)
    return np.where(beyond, edge, inner)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_gains(u, error, t, lo, hi, wanted, gains):
    """gains_ij = `largest_gain` of (u_ij, error_i, t_j, lo_j, hi_j) where it is wanted."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if wanted[i, j]:
                gains[i, j] = gain(u[i, j], error[i], t[j], lo[j], hi[j])


@njit(cache=True, nogil=True, error_model="numpy")
def gain(u, error, t, lo, hi):
    """`largest_gain` of single numbers."""
    up, down = _gain_of_side(u + error, t, hi), _gain_of_side(error - u, t, -lo)
    return max(up, down, 0.0) * (1.0 + 16 * UNIT)


@njit(cache=True, nogil=True, error_model="numpy")
def _gain_of_side(a, t, reach):
    """`_one_side` of single numbers."""
    if reach == 0.0:
        return 0.0
    if t > 0.0 and a <= t * reach:
        return a * a / t if a > 0.0 else 0.0
    edge = reach * (2.0 * a if t == 0.0 else 2.0 * a - t * reach)
    return np.inf if math.isnan(edge) else edge
