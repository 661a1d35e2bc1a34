"""Compiled loops over supports: conditioning, the scan of the last features, fits in bulk."""

import math

import numpy as np
from numba import njit, uintp

from bestk._kernels import FAST, UNIT_ROUNDOFF, add_row

# Covers the rounding of one test of eq. 8, relative to the product of both residual variances.
_SCAN_SAFETY = 64.0 * UNIT_ROUNDOFF


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _add_upper_row(H, i, a, W, k):
    """H[i, i:] += a * W[k, i:]"""
    i, k, m = uintp(i), uintp(k), uintp(W.shape[1])
    for j in range(i, m):
        H[i, j] += a * W[k, j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _subtract_row(out, H, i, t, a):
    """out[i, i:] = H[i, i:] - a * H[t, i:]"""
    i, t, m = uintp(i), uintp(t), uintp(H.shape[1])
    for j in range(i, m):
        out[i, j] = H[i, j] - a * H[t, j]


@njit(cache=True, nogil=True, error_model="numpy")
def condition(A, c, inside, free, shift, H, d):
    """Residual matrix H and moments d of the free features given the inside ones.

    Works on A - shift I. Returns the gain of the inside features, or -1 where they are too nearly
    dependent for a Gram matrix to tell.
    """
    f, m = inside.shape[0], free.shape[0]
    W = np.empty((f, m))
    L = np.empty((f, f))
    w = np.empty(f)
    gain = 0.0
    for i in range(f):
        for j in range(i + 1):
            s = A[inside[i], inside[j]]
            if i == j:
                s -= shift
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                if s <= 0.0:
                    return -1.0
                L[i, i] = math.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
        s = c[inside[i]]
        row = W[i]
        for a in range(m):
            row[a] = A[inside[i], free[a]]
        for k in range(i):
            s -= L[i, k] * w[k]
            add_row(row, -L[i, k], W, k, m)
        w[i] = s / L[i, i]
        for a in range(m):
            row[a] /= L[i, i]
        gain += w[i] * w[i]
    for a in range(m):
        d[a] = c[free[a]]
        row = A[free[a]]
        for b in range(a, m):
            H[a, b] = row[free[b]]
        H[a, a] -= shift
    for i in range(f):
        add_row(d, -w[i], W, i, m)
        for a in range(m):
            _add_upper_row(H, a, -W[i, a], W, i)
    return gain


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _count_pairs(H, i, t, factor, variance, moment, needed):
    """How many j > i make (i, j) gain more than `needed`, or leave it undecided (theory eq. 8).

    Row i of the residual matrix is formed on the fly as H[i] - factor * H[t]. No division:
    a counting loop becomes SIMD where a running maximum does not.
    """
    i, t, m = uintp(i), uintp(t), uintp(moment.shape[0])
    v_i, m_i = variance[i], moment[i]
    a = m_i * m_i - (needed - _SCAN_SAFETY) * v_i
    twice = 2.0 * m_i
    smaller = v_i * (1.0 - _SCAN_SAFETY)
    hits = 0
    for j in range(i + uintp(1), m):
        g = H[i, j] - factor * H[t, j]
        m_j = moment[j]
        excess = a * variance[j] + g * (needed * g - twice * m_j) + m_j * m_j * v_i
        determinant = smaller * variance[j] - g * g
        hits += (excess > 0.0) | (determinant <= 0.0)
    return hits


@njit(cache=True, nogil=True, error_model="numpy")
def _eliminate(H, d, t, below, moments):
    """Condition H (upper triangle) and d on feature t, for the features after it."""
    m = d.shape[0]
    for a in range(t + 1, m):
        factor = H[t, a] / H[t, t]
        _subtract_row(below, H, a, t, factor)
        moments[a] = d[a] - factor * d[t]


@njit(cache=True, nogil=True, error_model="numpy")
def _list_pairs(H, i, t, factor, variance, moment, needed, chosen, level, hits, count):
    """The pairs that `_count_pairs` saw in one row, appended to hits; -1 when there is no room."""
    for j in range(i + 1, moment.shape[0]):
        g = H[i, j] - factor * H[t, j]
        excess = (moment[i] * moment[i] - (needed - _SCAN_SAFETY) * variance[i]) * variance[j]
        excess += g * (needed * g - 2.0 * moment[i] * moment[j])
        excess += moment[j] * moment[j] * variance[i]
        flat = variance[i] * (1.0 - _SCAN_SAFETY) * variance[j] - g * g <= 0.0
        # Twice the safety: whatever the counting loop saw is listed here too.
        if flat or excess > -_SCAN_SAFETY * variance[i] * variance[j]:
            if count == hits.shape[0]:
                return -1
            _write(hits[count], chosen, level)
            hits[count, level] = j
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _write(row, chosen, length):
    for i in range(row.shape[0]):
        row[i] = chosen[i] if i < length else -1


@njit(cache=True, nogil=True, error_model="numpy")
def scan(H, d, needed, r, start, stop, hits):
    """List the sets of r features, first one in [start, stop), that may gain more than needed.

    H's upper triangle and d are as from `condition`. A row of `hits` is a set of indices; one that
    ends in -1 is a beginning too nearly dependent to judge, standing for all its completions.
    Returns the number of rows, or -1 when `hits` is too short.
    """
    m = d.shape[0]
    depth = max(r - 3, 0)  # levels eliminated one by one above the scan of the last three
    Hs = np.empty((depth, m, m))
    ds = np.empty((depth, m))
    needs = np.empty(depth + 1)
    needs[0] = needed
    chosen = np.empty(r, np.int64)
    chosen[0] = start - 1
    variance, moment = np.empty(m), np.empty(m)
    count = 0
    level = 0
    while level >= 0:
        chosen[level] += 1
        t = chosen[level]
        if t >= (stop if level == 0 else m):
            level -= 1
            continue
        G = H if level == 0 else Hs[level - 1]
        c = d if level == 0 else ds[level - 1]
        need = needs[level]
        if G[t, t] <= 0.0 and r > 1:
            if count == hits.shape[0]:
                return -1
            _write(hits[count], chosen, level + 1)
            count += 1
            continue
        if level < depth:
            _eliminate(G, c, t, Hs[level], ds[level])
            needs[level + 1] = need - c[t] * c[t] / G[t, t]
            level += 1
            chosen[level] = t
            continue
        if r == 1:
            if G[t, t] <= 0.0 or c[t] * c[t] > need * G[t, t]:
                if count == hits.shape[0]:
                    return -1
                hits[count, 0] = t
                count += 1
            continue
        if r == 2:
            first, last, rest, pivot = t, t + 1, need, 1.0
        else:
            first, last, rest, pivot = t + 1, m, need - c[t] * c[t] / G[t, t], G[t, t]
        for j in range(t, m):
            factor = G[t, j] / pivot if r > 2 else 0.0
            variance[j] = G[j, j] - factor * G[t, j]
            moment[j] = c[j] - factor * c[t]
        for i in range(first, last):
            chosen[r - 2] = i
            if variance[i] <= 0.0:
                if count == hits.shape[0]:
                    return -1
                _write(hits[count], chosen, r - 1)
                count += 1
                continue
            factor = G[t, i] / pivot if r > 2 else 0.0
            if _count_pairs(G, i, t, factor, variance, moment, rest) > 0:
                count = _list_pairs(
                    G, i, t, factor, variance, moment, rest, chosen, r - 1, hits, count
                )
                if count < 0:
                    return -1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def fit_rows(A, c, lo, hi, supports, coefs, values):
    """Minimise 1 - 2 c'b + b'A b with lo <= b <= hi on each support (a row of indices).

    Cholesky first; where its solution leaves the box, projected coordinate descent finishes.
    A feature that depends on earlier ones (pivot at rounding level) gets coefficient zero.
    """
    size = supports.shape[1]
    L = np.empty((size, size))
    x = np.empty(size)
    for row in range(supports.shape[0]):
        S = supports[row]
        for i in range(size):
            for j in range(i + 1):
                s = A[S[i], S[j]]
                for k in range(j):
                    s -= L[i, k] * L[j, k]
                if i > j:
                    L[i, j] = s / L[j, j] if L[j, j] > 0.0 else 0.0
                else:
                    L[i, i] = math.sqrt(s) if s > 1e-13 else 0.0
            s = c[S[i]]
            for k in range(i):
                s -= L[i, k] * x[k]
            x[i] = s / L[i, i] if L[i, i] > 0.0 else 0.0
        inside = True
        for i in range(size - 1, -1, -1):
            s = x[i]
            for k in range(i + 1, size):
                s -= L[k, i] * x[k]
            x[i] = s / L[i, i] if L[i, i] > 0.0 else 0.0
            inside = inside and lo[S[i]] <= x[i] <= hi[S[i]]
        if not inside:
            for i in range(size):
                x[i] = min(max(x[i], lo[S[i]]), hi[S[i]])
            for _ in range(1000):
                largest = 0.0
                for i in range(size):
                    s = c[S[i]]
                    for k in range(size):
                        if k != i:
                            s -= A[S[i], S[k]] * x[k]
                    new = min(max(s, lo[S[i]]), hi[S[i]])
                    largest = max(largest, abs(new - x[i]))
                    x[i] = new
                if largest < 1e-12:
                    break
        value = 1.0
        for i in range(size):
            s = 2.0 * c[S[i]]
            for k in range(size):
                s -= A[S[i], S[k]] * x[k]
            value -= x[i] * s
            coefs[row, i] = x[i]
        values[row] = value
