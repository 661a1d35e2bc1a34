"""Constants and small tools of the rounding analysis."""

import numpy as np

UNIT = 2.0**-53  # unit roundoff of double precision
LONG = np.longdouble
# Unit roundoff of the widest type the platform has; it may be that of double.
LONG_UNIT = float(np.finfo(LONG).eps) / 2.0


def gamma(count: float, unit: float = UNIT) -> float:
    """gamma_count = count u / (1 - count u): the error of `count` roundings in a row."""
    return 1.01 * count * unit if count * unit < 1e-3 else float("inf")


def largest_gain(u, error, t, lo, hi) -> np.ndarray:
    """Upper bound on max of 2 v x - t x^2 over lo <= x <= hi and |v - u| <= error (eq. 4).

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
