"""Residuals in twice the working precision, for models whose large terms cancel.

Error-free transformations (Dekker, Knuth): the rounding error of a sum or of a product of two
floating-point numbers is itself one, so it can be computed and carried along.
"""

import numpy as np

# Splits 53 bits into two halves whose products are exact.
_SPLITTER = 2.0**27 + 1.0


def residual_of(
    y: np.ndarray,
    y_mean: float,
    X: np.ndarray,
    x_mean: np.ndarray,
    units: np.ndarray,
    coef: np.ndarray,
) -> np.ndarray:
    """y - y_mean - ((X - x_mean) units) coef, as if computed with 106 bits and rounded once.

    Units are powers of two, which keep products of extreme columns and coefficients in range.
    """
    total, low = _sum(y.astype(np.float64), -y_mean)
    for column, mean, unit, b in zip(X.T, x_mean, units, coef, strict=True):
        centred, lost = _sum(column.astype(np.float64), -mean)
        term, error = _product(centred * unit, -b)
        total, carried = _sum(total, term)
        low += carried + (error - lost * unit * b)
    return total + low


def _sum(a, b):
    """(s, e) with s = fl(a + b) and s + e = a + b exactly."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def _product(a, b):
    """(p, e) with p = fl(a b) and p + e = a b exactly."""
    p = a * b
    a_high, b_high = _high(a), _high(b)
    a_low, b_low = a - a_high, b - b_high
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _high(a):
    """The upper half of the digits of a."""
    scaled = _SPLITTER * a
    return scaled - (scaled - a)
