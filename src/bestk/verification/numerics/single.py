"""A first look at pairs in single precision: most gain too little by far, and that is proven here.

In units of the columns' lengths and of root(needed), given one more feature t with |m_t| < 1,

    w_j = C_tj,   v_j = 1 - w_j^2,   m_j <- m_j - m_t w_j,   g = C_ij - w_i w_j,

and the pair (i, j) gains too little if kappa h^2 + gamma g^2 <= v_j, where gamma = 1 / v_i,
beta = gamma m_i, h = m_j - beta g and 1 / kappa = 1 - m_t^2 - beta m_i (theory: single). With
q = 1 / (kappa gamma) = (1 - m_t^2) v_i - m_i^2 > 0 it is proven by

    kappa h^2 + gamma g^2 + theta <= v_j,   theta = eta (32 + 96 / q),   eta = 2^-24,

in single precision. For where that is true, kappa h^2 and gamma g^2 are at most 1, and so are |g|,
|m_i|, |w| and |beta| / root(gamma), while kappa, gamma >= 1 and |C_ij| <= |g| + 1. To first order
the errors are 4 eta in v, eta (1 + |m_j|) in m_j, where |m_j| <= |h| + |beta g|, 6 eta in g and
12 eta in q; relative to them eta (4 gamma + 3) in gamma and eta (4 gamma + 12 / q + 4) in kappa;
and eta (2 |h| + 15 root(gamma) + 4 gamma) in h. As gamma and root(kappa) gamma are at most 1 / q,
they change the two sides, with the roundings of squares and sums, by less than eta (21 + 70 / q).
Below _USELESS, theta covers the second order as well.
"""

import math

import numpy as np
from numba import int32, njit, uintp

f4 = np.float32
# Rows and columns are tested in blocks: loops over them need no remainder.
LANES, ROWS = 8, 4
_ETA = f4(2.0**-24)
# Smaller variances and larger margins are left to double precision.
_TINY, _FLAT, _USELESS = 1e-30, f4(1e-4), f4(1e-2)


@njit(cache=True, nogil=True, error_model="numpy")
def padded(m):
    return (m + LANES - 1) // LANES * LANES


@njit(cache=True, nogil=True, error_model="numpy")
def standardise(H, d, needed, first, C, unit, moment):
    """C_ij = H_ij unit_i unit_j for first <= i < j, H_ii unit_i^2 = 1, and moments like that.

    The rest of C stays as it is, NaN: no comparison with it is true. Units are NaN where numbers
    might not fit into single precision.
    """
    for i in range(first, H.shape[0]):
        fits = H[i, i] > _TINY and needed > _TINY
        unit[i] = 1.0 / math.sqrt(H[i, i]) if fits else np.nan
        moment[i] = d[i] * unit[i] / math.sqrt(needed)
    for i in range(first, H.shape[0]):
        _scale_row(C, H, i, unit)


@njit(cache=True, nogil=True, error_model="numpy")
def _scale_row(C, H, i, unit):
    i, m, scale = uintp(i), uintp(H.shape[0]), unit[i]
    for j in range(i + uintp(1), m):
        C[i, j] = H[i, j] * (scale * unit[j])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def given(C, t, moment, m, v):
    """Fill in m and v, given t, of the features after it; the last one that is flat, or t.

    Flat ones must be judged in double.
    """
    t, size, m_t = uintp(t), uintp(moment.shape[0]), moment[t]
    n_flat = int32(0)
    for j in range(t + uintp(1), size):
        m[j] = moment[j] - m_t * C[t, j]
        v[j] = f4(1) - C[t, j] * C[t, j]
        n_flat = int32(n_flat + (not v[j] > _FLAT))
    last = t
    if n_flat > 0:
        last = size - uintp(1)
        while v[last] > _FLAT:
            last -= uintp(1)
    return np.int64(last)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _row(w, m, v, left):
    """(w, beta, gamma, kappa, theta) of a feature; theta = inf: it must be judged in double."""
    q = left * v - m * m
    inverse = f4(1) / (v * q)
    gamma, kappa = q * inverse, v * v * inverse
    theta = _ETA * (f4(32) + f4(96) * (v * inverse))
    if v > _FLAT and q > f4(0) and theta < _USELESS:
        return w, m * gamma, gamma, kappa, theta
    return w, f4(0), f4(0), f4(0), f4(np.inf)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _left_side(x, w, m, row):
    """kappa h^2 + gamma g^2 + theta for x = C_ij"""
    w_i, beta, gamma, kappa, theta = row
    g = x - w_i * w
    h = m - beta * g
    return kappa * h * h + (gamma * g * g + theta)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def mark(C, t, left, m, v, suspect):
    """Mark rows i > t that may contain a pair (i, j), i < j, that gains too much; are there any?

    Several rows share what is loaded for each j, and their fate.
    """
    t, size, width = uintp(t), uintp(suspect.shape[0]), uintp(C.shape[1])
    any_found = False
    for i in range((t + uintp(1)) // uintp(ROWS) * uintp(ROWS), size, uintp(ROWS)):
        a, b, c = i + uintp(1), i + uintp(2), i + uintp(3)
        of_i, of_a = _row(C[t, i], m[i], v[i], left), _row(C[t, a], m[a], v[a], left)
        of_b, of_c = _row(C[t, b], m[b], v[b], left), _row(C[t, c], m[c], v[c], left)
        first = i // uintp(LANES) * uintp(LANES)
        found = int32(0)  # 32 bits: as wide as the lanes of the loop
        for step in range(width - first):
            j = first + uintp(step)
            w, m_j, v_j = C[t, j], m[j], v[j]
            found = int32(found + (_left_side(C[i, j], w, m_j, of_i) > v_j))
            found = int32(found + (_left_side(C[a, j], w, m_j, of_a) > v_j))
            found = int32(found + (_left_side(C[b, j], w, m_j, of_b) > v_j))
            found = int32(found + (_left_side(C[c, j], w, m_j, of_c) > v_j))
        suspect[i] = suspect[a] = suspect[b] = suspect[c] = found > 0
        if found > 0:
            any_found = True
    return any_found
