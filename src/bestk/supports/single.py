"""Most pairs gain too little by far: single precision sees that, at twice the speed of double.

What passes here is proven (theory: single, with its margin for rounding); what does not pass is
judged in double by `_scan`. Arrays are padded so that loops over them need no remainder, with NaN
where there is no pair: no comparison with NaN holds.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import int32, uintp

from bestk.base.arithmetic import fma
from bestk.base.compiling import kernel, step

f4 = np.float32
# Two rows of eight lanes, twice: what an AVX2 loop takes in one step.
_LANES = 16
_ETA = f4(2.0**-24)
# Smaller variances and remaining gains, and larger margins, are left to double precision.
_FLAT, _USELESS = f4(1e-3), f4(0.1)
_NEVER = f4(-1e30)


class Pairs(NamedTuple):
    """Room for correlations C and what is known about single features; see theory: single.

    ``unit`` scales features to length one, ``moments`` are theirs; ``moment`` and ``variance`` are
    given a first feature, and so are the terms of the test.
    """

    C: np.ndarray
    unit: np.ndarray
    moments: np.ndarray
    moment: np.ndarray
    variance: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray
    kappa: np.ndarray
    theta: np.ndarray


@kernel
def padded(m):
    return (m + _LANES - 1) // _LANES * _LANES


@kernel
def room_for_pairs(m):
    """Of up to m features."""
    width = padded(m)
    return Pairs(
        np.empty((m, width), f4), np.empty(m), np.empty(width, f4), np.empty(width, f4),
        np.empty(width, f4), np.empty(width, f4), np.empty(width, f4), np.empty(width, f4),
        np.empty(width, f4),
    )  # fmt: skip


@kernel
def standardise(H, d, needed, start, pairs):
    """Correlations and moments in units of sqrt(needed) of the features from `start` on.

    Only H's upper triangle is read. NaN for features without variance, and for all if nothing is
    needed. Returns the largest |moment|.
    """
    C, unit, moments = pairs.C, pairs.unit, pairs.moments
    m, largest = d.shape[0] - start, f4(0)
    for a in range(padded(m)):
        moments[a] = 0.0
    for a in range(m):
        unit[a] = np.nan
        if H[start + a, start + a] > 0.0 and needed > 0.0:
            unit[a] = 1.0 / math.sqrt(H[start + a, start + a])
            moments[a] = d[start + a] * unit[a] / math.sqrt(needed)
            largest = max(largest, abs(moments[a]))
    for a in range(m):
        _scale_row(H, start, a, m, unit, C)
        C[a, a] = np.nan
        for b in range(m, padded(m)):
            C[a, b] = np.nan
    for first in range(0, m, _LANES):
        for a in range(min(first + _LANES, m)):
            for b in range(max(first, a + 1), min(first + _LANES, m)):
                C[b, a] = C[a, b]
    return largest


@kernel
def _scale_row(H, start, a, m, unit, C):
    a, start, m, scale = uintp(a), uintp(start), uintp(m), unit[a]
    for b in range(a + uintp(1), m):
        C[a, b] = H[start + a, start + b] * (scale * unit[b])


@kernel
def list_suspects(pairs, t, m, largest, suspects):
    """How many of the features after t may gain enough in a pair with an earlier one, and which.

    Four at a time. So are features too close to t.
    """
    given(pairs, t, m)
    terms_of_pairs(pairs, t, m, largest)
    count, theta = 0, pairs.theta
    for b in range(t + 1, m, 4):
        hit = may_gain(pairs, b, m - 1, t)
        for j in range(b, min(b + 4, m)):
            if hit or theta[j] < 0:
                suspects[count] = j
                count += 1
    return count


@step
def given(pairs, t, m):
    """Moments and variances of the other ones of m features given t."""
    C, moments, moment, variance = pairs.C, pairs.moments, pairs.moment, pairs.variance
    t, first, width = uintp(t), uintp(t // _LANES * _LANES), uintp(padded(m))
    scale = moments[t]
    for past in range(width - first):
        a = first + uintp(past)
        moment[a] = fma(-scale, C[t, a], moments[a])
        variance[a] = fma(-C[t, a], C[t, a], f4(1))


@step
def terms_of_pairs(pairs, t, m, largest):
    """beta, gamma, kappa and theta of theory: single; theta < 0: to be judged in double."""
    _, _, moments, moment, variance, beta, gamma, kappa, theta = pairs
    first, width = uintp(t // _LANES * _LANES), uintp(padded(m))
    left = f4(1) - moments[t] * moments[t]
    for past in range(width - first):
        a = first + uintp(past)
        v, m = variance[a], moment[a]
        rest = fma(left, v, -m * m)
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


@step
def may_gain(pairs, b, last, t):
    """May some pair (a, j), t < a < j, gain enough, j one of four rows from b on, up to `last`?

    Some more a are looked at, too. Four rows at once share what is loaded for each a, and one
    count, whose lanes are summed up at the end of the loop: short rows take little else.
    """
    C, _, _, moment, variance, beta, gamma, kappa, theta = pairs
    b, t, last, first = uintp(b), uintp(t), uintp(last), uintp(t // _LANES * _LANES)
    c, d, e = min(b + uintp(1), last), min(b + uintp(2), last), min(b + uintp(3), last)
    x_b, x_c, x_d, x_e = C[t, b], C[t, c], C[t, d], C[t, e]
    m_b, m_c, m_d, m_e = moment[b], moment[c], moment[d], moment[e]
    v_b, v_c, v_d, v_e = variance[b], variance[c], variance[d], variance[e]
    hits = int32(0)  # 32 bits: as wide as the lanes of the loop
    for past in range((e // uintp(_LANES) + uintp(1)) * uintp(_LANES) - first):
        a = first + uintp(past)
        x, terms = C[t, a], (beta[a], gamma[a], kappa[a], theta[a])
        hit = _gain(fma(-x_b, x, C[b, a]), m_b, terms) > v_b
        hit |= _gain(fma(-x_c, x, C[c, a]), m_c, terms) > v_c
        hit |= _gain(fma(-x_d, x, C[d, a]), m_d, terms) > v_d
        hit |= _gain(fma(-x_e, x, C[e, a]), m_e, terms) > v_e
        hits = int32(hits + hit)
    return hits > 0


@kernel
def _gain(g, moment, terms):
    beta, gamma, kappa, theta = terms
    u = fma(-beta, g, moment)
    return fma(kappa * u, u, fma(gamma * g, g, theta))
