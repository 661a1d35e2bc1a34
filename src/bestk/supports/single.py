"""Most pairs gain too little by far: single precision sees that, at twice the speed of double.

What passes here is proven (theory: single, with its margin for rounding); what does not pass is
judged in double by `_scan`. Arrays are padded so that loops over them need no remainder, with NaN
where there is no pair: no comparison with NaN holds.
"""

import math

import numpy as np
from numba import int32, uintp

from bestk.base.compiling import contracted_kernel, kernel

f4 = np.float32
# Two rows of eight lanes, twice: what an AVX2 loop takes in one step.
_LANES = 16
_ETA = f4(2.0**-24)
# Smaller variances and remaining gains, and larger margins, are left to double precision.
_FLAT, _USELESS = f4(1e-3), f4(0.1)
_NEVER = f4(-1e30)


@kernel
def padded(m):
    return (m + _LANES - 1) // _LANES * _LANES


@kernel
def standardise(H, d, needed, start, C, moments):
    """Correlations C and moments in units of sqrt(needed) of the features from `start` on.

    Only H's upper triangle is read. NaN for features without variance, and for all if nothing is
    needed.
    """
    m = d.shape[0] - start
    unit = np.full(m, np.nan)
    moments[:] = 0.0
    for a in range(m):
        if H[start + a, start + a] > 0.0 and needed > 0.0:
            unit[a] = 1.0 / math.sqrt(H[start + a, start + a])
            moments[a] = d[start + a] * unit[a] / math.sqrt(needed)
    for a in range(m):
        _scale_row(H, start, a, unit, C)
        C[a, a] = np.nan
        C[a, m : padded(m)] = np.nan
    for first in range(0, m, _LANES):
        for a in range(min(first + _LANES, m)):
            for b in range(max(first, a + 1), min(first + _LANES, m)):
                C[b, a] = C[a, b]


@kernel
def _scale_row(H, start, a, unit, C):
    a, start, m, scale = uintp(a), uintp(start), uintp(unit.shape[0]), unit[a]
    for b in range(a + uintp(1), m):
        C[a, b] = H[start + a, start + b] * (scale * unit[b])


@contracted_kernel
def given(C, t, moments, moment, variance):
    """Moments and variances of the other features given t."""
    t, first, width = uintp(t), uintp(t // _LANES * _LANES), uintp(moment.shape[0])
    scale = moments[t]
    for step in range(width - first):
        a = first + uintp(step)
        moment[a] = moments[a] - scale * C[t, a]
        variance[a] = f4(1) - C[t, a] * C[t, a]


@contracted_kernel
def terms_of_pairs(first, left, largest, moment, variance, beta, gamma, kappa, theta):
    """beta, gamma, kappa and theta of theory: single; theta < 0: to be judged in double."""
    first, width = uintp(first // _LANES * _LANES), uintp(moment.shape[0])
    for step in range(width - first):
        a = first + uintp(step)
        v, m = variance[a], moment[a]
        rest = left * v - m * m
        inverse = f4(1) / (v * rest)
        g = rest * inverse
        k = v * v * inverse
        b = m * g
        size = f4(32) * (f4(1) + largest) * k * g
        size += (f4(64) * largest + f4(80) * abs(b)) * np.sqrt(k * g)
        margin = _ETA * (f4(64) + f4(40) * g + size)
        plain = (v > _FLAT) & (rest > _FLAT * v) & (margin < _USELESS)
        beta[a], gamma[a], kappa[a] = b, g, k
        theta[a] = margin if plain else _NEVER


@contracted_kernel
def may_gain(C, b, c, t, moment, variance, beta, gamma, kappa, theta):
    """May some pair (a, b) or (a, c), t < a < b <= c, gain enough? Some more a are looked at, too.

    Two rows at once: they share what is loaded for each a.
    """
    b, c, t, first = uintp(b), uintp(c), uintp(t), uintp(t // _LANES * _LANES)
    x_b, moment_b, variance_b = C[t, b], moment[b], variance[b]
    x_c, moment_c, variance_c = C[t, c], moment[c], variance[c]
    hits_b, hits_c = int32(0), int32(0)  # 32 bits: as wide as the lanes of the loop
    for step in range((c // uintp(_LANES) + uintp(1)) * uintp(_LANES) - first):
        a = first + uintp(step)
        g = C[b, a] - x_b * C[t, a]
        u = moment_b - beta[a] * g
        gain = kappa[a] * u * u + (gamma[a] * g * g + theta[a])
        hits_b = int32(hits_b + (gain > variance_b))
        g = C[c, a] - x_c * C[t, a]
        u = moment_c - beta[a] * g
        gain = kappa[a] * u * u + (gamma[a] * g * g + theta[a])
        hits_c = int32(hits_c + (gain > variance_c))
    return hits_b + hits_c > 0
