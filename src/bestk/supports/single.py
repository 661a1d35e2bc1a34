"""Most pairs gain too little by far: single precision sees that, at twice the speed of double.

A set gains less than needed exactly if its part of a matrix is positive definite, so moments need
no arithmetic of their own (theory: minor). What passes here is proven (theory: single, with its
margin for rounding); what does not pass is judged in double by `scan`. Arrays are padded so that
loops over them need no remainder, with NaN where there is no pair: no comparison with NaN holds.
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
# Features with less variance are left to double precision; with more, this covers all rounding.
FLAT, MARGIN = f4(1e-3), f4(3e-4)


class Pairs(NamedTuple):
    """Room for correlations C and what is known about single features; see theory: single.

    ``unit`` scales features to length one, ``moments`` are in units of the root of what is needed.
    Given a first feature, ``inverse`` is one over a feature's length, ``slope`` its correlation
    with the first one times that, and ``limit`` its length less the margin; infinite if the feature
    has to be judged in double.
    """

    C: np.ndarray
    unit: np.ndarray
    moments: np.ndarray
    inverse: np.ndarray
    slope: np.ndarray
    limit: np.ndarray


@kernel
def padded(m):
    return (m + _LANES - 1) // _LANES * _LANES


@kernel
def room_for_pairs(m):
    """Of up to m features."""
    width = padded(m)
    return Pairs(
        np.empty((m, width), f4), np.empty(m), np.empty(m), np.empty(width, f4),
        np.empty(width, f4), np.empty(width, f4),
    )  # fmt: skip


@kernel
def standardise(H, d, needed, start, pairs):
    """Correlations of the features from `start` on in H - d d' / needed (theory: minor).

    Only H's upper triangle is read. NaN for features that reach what is needed alone, and for all
    if that is nothing.
    """
    C, unit, moments = pairs.C, pairs.unit, pairs.moments
    m = d.shape[0] - start
    for a in range(m):
        moments[a] = d[start + a] / math.sqrt(needed) if needed > 0.0 else np.nan
        variance = fma(-moments[a], moments[a], H[start + a, start + a])
        unit[a] = 1.0 / math.sqrt(variance) if variance > 0.0 else np.nan
    for a in range(m):
        _scale_row(H, start, a, m, pairs)
        C[a, a] = np.nan
        for b in range(m, padded(m)):
            C[a, b] = np.nan
    for first in range(0, m, _LANES):
        for a in range(min(first + _LANES, m)):
            for b in range(max(first, a + 1), min(first + _LANES, m)):
                C[b, a] = C[a, b]


@kernel
def _scale_row(H, start, a, m, pairs):
    C, unit, moments = pairs.C, pairs.unit, pairs.moments
    a, start, m, scale, moment = uintp(a), uintp(start), uintp(m), unit[a], moments[a]
    for b in range(a + uintp(1), m):
        C[a, b] = fma(-moment, moments[b], H[start + a, start + b]) * (scale * unit[b])


@kernel
def list_suspects(pairs, t, m, suspects):
    """How many of the features after t may gain enough in a pair with an earlier one, and which.

    Four at a time. So are features too close to t.
    """
    given(pairs, t, m)
    count, limit = 0, pairs.limit
    for b in range(t + 1, m, 4):
        hit = may_gain(pairs, b, m - 1, t)
        for j in range(b, min(b + 4, m)):
            if hit or limit[j] == np.inf:
                suspects[count] = j
                count += 1
    return count


@step
def given(pairs, t, m):
    """What has to be known of the other ones of m features given t."""
    C, _, _, inverse, slope, limit = pairs
    t, first, width = uintp(t), uintp(t // _LANES * _LANES), uintp(padded(m))
    for past in range(width - first):
        a = first + uintp(past)
        x = C[t, a]
        variance = fma(-x, x, f4(1))
        plain = variance > FLAT
        length = np.sqrt(variance)
        one_over = f4(1) / length
        inverse[a] = one_over if plain else f4(0)
        slope[a] = x * one_over if plain else f4(0)
        limit[a] = length - MARGIN if plain else f4(np.inf)


@step
def may_gain(pairs, b, last, t):
    """May some pair (a, j), t < a < j, gain enough, j one of four rows from b on, up to `last`?

    Some more a are looked at, too. Four rows at once share what is loaded for each a, and one
    count, whose lanes are summed up at the end of the loop: short rows take little else.
    """
    C, _, _, inverse, slope, limit = pairs
    b, t, last, first = uintp(b), uintp(t), uintp(last), uintp(t // _LANES * _LANES)
    c, d, e = min(b + uintp(1), last), min(b + uintp(2), last), min(b + uintp(3), last)
    x_b, x_c, x_d, x_e = C[t, b], C[t, c], C[t, d], C[t, e]
    most_b, most_c, most_d, most_e = limit[b], limit[c], limit[d], limit[e]
    hits = int32(0)  # 32 bits: as wide as the lanes of the loop
    for past in range((e // uintp(_LANES) + uintp(1)) * uintp(_LANES) - first):
        a = first + uintp(past)
        r, s = inverse[a], slope[a]
        hit = abs(fma(C[b, a], r, -s * x_b)) > most_b
        hit |= abs(fma(C[c, a], r, -s * x_c)) > most_c
        hit |= abs(fma(C[d, a], r, -s * x_d)) > most_d
        hit |= abs(fma(C[e, a], r, -s * x_e)) > most_e
        hits = int32(hits + hit)
    return hits > 0
