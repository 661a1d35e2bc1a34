"""Compiled loops over supports: conditioning, the scan of the last features, fits in bulk."""

import math
from typing import NamedTuple

import numpy as np
from numba import uintp

from bestk.base.arithmetic import add_row, dot, fma
from bestk.base.compiling import kernel
from bestk.base.constants import UNIT_ROUNDOFF
from bestk.supports.single import list_suspects, room_for_pairs, standardise

# Covers the rounding of one test (theory: pair-gain), relative to the product of both residual
# variances.
_SCAN_SAFETY = 64.0 * UNIT_ROUNDOFF


@kernel
def _add_upper_row(H, i, a, W, k):
    """H[i, i:] += a * W[k, i:]"""
    i, k, m = uintp(i), uintp(k), uintp(W.shape[1])
    for j in range(i, m):
        H[i, j] = fma(a, W[k, j], H[i, j])


@kernel
def _subtract_row(out, H, i, t, a):
    """out[i, i:] = H[i, i:] - a * H[t, i:]"""
    i, t, m = uintp(i), uintp(t), uintp(H.shape[1])
    for j in range(i, m):
        out[i, j] = fma(-a, H[t, j], H[i, j])


class Conditions(NamedTuple):
    """Nodes whose features are end to end, with the shifts of :func:`condition`.

    Where less than ``least_left`` is left of y'y, products cannot tell it.
    """

    inside: np.ndarray
    inside_ends: np.ndarray
    free: np.ndarray
    free_ends: np.ndarray
    shifts: np.ndarray
    least_left: float


@kernel
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
        for i in range(f):  # row by row: large matrices are written once
            _add_upper_row(H, a, -W[i, a], W, i)
    for i in range(f):
        add_row(d, -w[i], W, i, m)
    return gain


@kernel
def condition_all(A, c, nodes, needed, matrices):
    """`condition` and `absorb` for many nodes at a time; matrices are end to end.

    `needed` holds gains that the features beside the inside ones need if these gain nothing, and
    then those that they do need, or nan where products cannot tell.
    """
    start, first_inside, first_free = 0, 0, 0
    for i in range(needed.shape[0]):
        inside = nodes.inside[first_inside : nodes.inside_ends[i]]
        free = nodes.free[first_free : nodes.free_ends[i]]
        m = free.shape[0]
        H, d = matrices[start : start + m * m].reshape((m, m)), np.empty(m)
        gain = condition(A, c, inside, free, nodes.shifts[i], H, d)
        needed[i] = np.nan if gain < 0.0 or 1.0 - gain < nodes.least_left else needed[i] - gain
        if needed[i] > 0.0:
            absorb(H, d, needed[i])
        start += m * m
        first_inside, first_free = nodes.inside_ends[i], nodes.free_ends[i]


@kernel
def absorb(H, d, needed):
    """H - d d' / needed in place of H's upper triangle (theory: minor)."""
    moments = d / math.sqrt(needed)
    for a in range(d.shape[0]):
        for b in range(a, d.shape[0]):
            H[a, b] = fma(-moments[a], moments[b], H[a, b])


@kernel
def _eliminate(H, d, t, below, moments):
    """Condition H (upper triangle) and d on feature t, for the features after it."""
    m = d.shape[0]
    for a in range(t + 1, m):
        factor = H[t, a] / H[t, t]
        _subtract_row(below, H, a, t, factor)
        moments[a] = d[a] - factor * d[t]


@kernel
def scan(H, d, needed, r, start, stop, hits):
    """List the sets of r features, first one in [start, stop), that may gain more than needed.

    H's upper triangle and d are as from `condition`. A row of `hits` is a set of indices; one that
    ends in -1 is a beginning too nearly dependent to judge, standing for all its completions.
    Returns the number of rows, or -1 when `hits` is too short.
    """
    m = d.shape[0]
    chosen = np.empty(r, np.int64)
    count = np.int64(0)
    if r == 1:
        for t in range(start, stop):
            chosen[0] = t
            if H[t, t] <= 0.0 or d[t] * d[t] > needed * H[t, t]:
                count = _list(chosen, 1, hits, count)
        return count
    if r == 2:
        return _scan_pairs(H, d, needed, start, stop, chosen, hits)
    depth = r - 3  # levels eliminated one by one above the scan of the last three
    Hs, ds, needs = np.empty((depth, m, m)), np.empty((depth, m)), np.empty(depth + 1)
    needs[0] = needed
    pairs, suspects = room_for_pairs(m), np.empty(m, np.int64)
    chosen[0] = start - 1
    level = 0
    while level >= 0 and count >= 0:
        G = H if level == 0 else Hs[level - 1]
        c = d if level == 0 else ds[level - 1]
        if level == depth:
            first = start if level == 0 else chosen[level - 1] + 1
            last = stop if level == 0 else m
            count = _scan_triples(
                G, c, needs[level], first, last, pairs, suspects, chosen, hits, count
            )
            level -= 1
            continue
        chosen[level] += 1
        t = chosen[level]
        if t >= (stop if level == 0 else m):
            level -= 1
        elif G[t, t] <= 0.0:
            count = _list(chosen, level + 1, hits, count)
        else:
            _eliminate(G, c, t, Hs[level], ds[level])
            needs[level + 1] = needs[level] - c[t] * c[t] / G[t, t]
            level += 1
            chosen[level] = t
    return count


@kernel
def _list(chosen, length, hits, count):
    """Append the first features of `chosen` to hits; -1 when there is no room."""
    if count < 0 or count == hits.shape[0]:
        return -1
    for i in range(hits.shape[1]):
        hits[count, i] = chosen[i] if i < length else -1
    return count + 1


@kernel
def _count_pairs(H, i, variance, moment, needed):
    """How many j > i make (i, j) gain more than `needed`, or leave it open (theory: pair-gain).

    No division: a counting loop becomes SIMD where a running maximum does not.
    """
    i, m = uintp(i), uintp(moment.shape[0])
    v_i, m_i = variance[i], moment[i]
    a = m_i * m_i - (needed - _SCAN_SAFETY) * v_i
    twice = 2.0 * m_i
    smaller = v_i * (1.0 - _SCAN_SAFETY)
    hits = 0
    for j in range(i + uintp(1), m):
        g = H[i, j]
        m_j = moment[j]
        excess = fma(a, variance[j], fma(g, fma(needed, g, -twice * m_j), m_j * m_j * v_i))
        determinant = fma(smaller, variance[j], -g * g)
        hits += (excess > 0.0) | (determinant <= 0.0)
    return hits


@kernel
def _may_gain(g, v_i, m_i, v_j, m_j, needed):
    """The same for one pair, with twice the safety: what the counting loop saw is seen here too."""
    excess = (m_i * m_i - (needed - _SCAN_SAFETY) * v_i) * v_j
    excess += g * (needed * g - 2.0 * m_i * m_j) + m_j * m_j * v_i
    flat = v_i * (1.0 - _SCAN_SAFETY) * v_j - g * g <= 0.0
    return flat or excess > -_SCAN_SAFETY * v_i * v_j


@kernel
def _scan_pairs(H, d, needed, start, stop, chosen, hits):
    """`scan` for r = 2."""
    variance = np.diag(H).copy()
    count = np.int64(0)
    for i in range(start, stop):
        chosen[0] = i
        if variance[i] <= 0.0:
            count = _list(chosen, 1, hits, count)
        elif _count_pairs(H, i, variance, d, needed) > 0:
            for j in range(i + 1, d.shape[0]):
                if _may_gain(H[i, j], variance[i], d[i], variance[j], d[j], needed):
                    chosen[1] = j
                    count = _list(chosen, 2, hits, count)
    return count


@kernel
def _scan_triples(H, d, needed, start, stop, pairs, suspects, chosen, hits, count):
    """`scan` for the last three features; `chosen` holds those before them.

    Given a first feature t, single precision shows for most b that no pair (a, b), t < a < b, gains
    enough. The other b are suspects, and so are features too close to t.
    """
    r, m = hits.shape[1], d.shape[0] - start
    if m < 3:
        return count
    standardise(H, d, needed, start, pairs)
    for t in range(stop - start):
        chosen[r - 3] = start + t
        if H[start + t, start + t] <= 0.0:
            count = _list(chosen, r - 2, hits, count)
            continue
        n_suspects = list_suspects(pairs, t, m, suspects)
        for i in range(n_suspects):
            suspects[i] += start
        if n_suspects > 0:
            count = _judge(H, d, needed, start + t, suspects[:n_suspects], chosen, hits, count)
        if count < 0:
            return -1
    return count


@kernel
def _judge(H, d, needed, t, suspects, chosen, hits, count):
    """List the pairs with a suspect that may gain enough given t, in double precision."""
    m, r = d.shape[0], hits.shape[1]
    variance, moment, suspect = np.empty(m), np.empty(m), np.zeros(m, np.bool_)
    suspect[suspects] = True
    for j in range(t + 1, m):
        factor = H[t, j] / H[t, t]
        variance[j] = H[j, j] - factor * H[t, j]
        moment[j] = d[j] - factor * d[t]
    rest = needed - d[t] * d[t] / H[t, t]
    for i in suspects:
        factor = H[t, i] / H[t, t]
        if variance[i] <= 0.0:
            chosen[r - 2] = i
            count = _list(chosen, r - 1, hits, count)
        for j in range(t + 1, m):
            first, second = min(i, j), max(i, j)
            if i == j or (j < i and suspect[j]) or variance[first] <= 0.0:
                continue  # listed with the other one, or with all that begins with the first
            g = H[first, second] - factor * H[t, j]
            if _may_gain(g, variance[i], moment[i], variance[j], moment[j], rest):
                chosen[r - 2], chosen[r - 1] = first, second
                count = _list(chosen, r, hits, count)
    return count


@kernel
def gain_rows(A, c, shift, supports, gains):
    """Gain of each support (a row of indices) under A - shift I, inf where that is not positive."""
    nothing, H, d = supports[0, :0], np.empty((0, 0)), np.empty(0)
    for row in range(supports.shape[0]):
        gain = condition(A, c, supports[row], nothing, shift, H, d)
        gains[row] = gain if gain >= 0.0 else np.inf


@kernel
def residual_rows(columns, z, supports, values):
    """Lower bounds of ||z - columns[S]' b||^2 for each support S (a row of indices).

    By modified Gram-Schmidt, which keeps the digits of small residuals that products lose. Columns
    are the rows of `columns` and have unit length; 0 where some are dependent up to rounding.
    """
    size, n = supports.shape[1], columns.shape[1]
    Q, T, w = np.empty((size + 1, n)), np.zeros((size, size)), np.empty(size)
    r = Q[size]
    for row in range(supports.shape[0]):
        values[row] = 0.0
        for a in range(n):
            r[a] = z[a]
        independent = True
        for i in range(size):
            for a in range(n):
                Q[i, a] = columns[supports[row, i], a]
            for j in range(i):
                T[j, i] = dot(Q[j], Q[i])
                add_row(Q[i], -T[j, i], Q, j, n)
            T[i, i] = math.sqrt(dot(Q[i], Q[i]))
            if T[i, i] <= 1e-12:
                independent = False
                break
            for a in range(n):
                Q[i, a] /= T[i, i]
            w[i] = dot(Q[i], r)
            add_row(r, -w[i], Q, i, n)
        if not independent:
            continue
        size_of_b = 1.0
        for i in range(size - 1, -1, -1):
            for j in range(i + 1, size):
                w[i] -= T[i, j] * w[j]
            w[i] /= T[i, i]
            size_of_b += abs(w[i])
        # Gram-Schmidt solves a problem whose columns are off by a few roundings.
        error = 8.0 * (n + 12) * UNIT_ROUNDOFF * size_of_b
        values[row] = max(math.sqrt(dot(r, r)) - error, 0.0) ** 2


@kernel
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
