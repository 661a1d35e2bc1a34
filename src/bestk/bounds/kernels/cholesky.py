"""Small symmetric matrices inside compiled loops: factors, solutions, inverses.

Only upper triangles are read, and rows are run through from left to right.
"""

import math

from numba import uintp

from bestk.base.arithmetic import dot_parts, dot_rows, fma
from bestk.base.compiling import kernel

# Pivots smaller than this are rounding: diagonals are of size one.
_TINY = 1e-13


@kernel
def factor(U, m):
    """U becomes the upper factor of the m x m matrix it holds; False if that is singular.

    Four rows at a time are subtracted from four others: short loops cost more to start than to run.
    """
    for k in range(0, m, 4):
        end = min(k + 4, m)
        for i in range(k, end):
            if not U[i, i] > _TINY:
                return False
            inverse = 1.0 / math.sqrt(U[i, i])
            for j in range(i, m):
                U[i, j] *= inverse
            for other in range(i + 1, end):
                _subtract(U, other, U, i, U[i, other], other, m)
        whole = end + (m - end) // 4 * 4
        for i in range(end, whole, 4):
            _subtract_four(U, i, U, k, _block(U.T, i, k), i, m)
        for i in range(whole, m):
            for other in range(k, end):
                _subtract(U, i, U, other, U[other, i], i, m)
    return True


@kernel
def solve_factored(U, x, m):
    """U'U x = x, in place."""
    for k in range(m):
        x[k] /= U[k, k]
        _eliminate(x, U, k, x[k], m)
    for k in range(m - 1, -1, -1):
        rest = dot_parts(U, k * U.shape[1] + k + 1, x, k + 1, m - k - 1)
        x[k] = (x[k] - rest) / U[k, k]


@kernel
def invert_factored(U, V, P, m):
    """P is the inverse of U'U, V room for that of U; four rows at a time from below."""
    top = m % 4
    for i in range(m):
        first = i if i < top else top + (i - top) // 4 * 4
        for j in range(first, m):
            V[i, j] = 0.0
    for first in range(m - 4, -1, -4):
        for k in range(first + 4, m, 4):
            _subtract_four(V, first, V, k, _block(U, first, k), k, m)
        for i in range(first + 3, first - 1, -1):
            _invert_row(U, V, i, first + 4, m)
    for i in range(top - 1, -1, -1):
        _invert_row(U, V, i, m, m)
    for j in range(top):
        for i in range(j + 1):
            P[i, j] = P[j, i] = dot_rows(V, i, V, j, j, m)
    for first in range(top, m, 4):
        for i in range(first + 4):
            products = _four_rows_times(V, i, first, m)
            for j in range(max(i, first), first + 4):
                P[i, j] = P[j, i] = products[j - first]


@kernel
def _invert_row(U, V, i, end, m):
    """Row i of V, from which rows that begin at `end` or later are subtracted already."""
    for k in range(i + 1, end):
        _subtract(V, i, V, k, U[i, k], k, m)
    inverse = 1.0 / U[i, i]
    V[i, i] = 1.0
    for j in range(i, m):
        V[i, j] *= inverse


@kernel
def _block(A, i, k):
    """A[i : i + 4, k : k + 4], row by row"""
    return (
        (A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]),
        (A[i + 1, k], A[i + 1, k + 1], A[i + 1, k + 2], A[i + 1, k + 3]),
        (A[i + 2, k], A[i + 2, k + 1], A[i + 2, k + 2], A[i + 2, k + 3]),
        (A[i + 3, k], A[i + 3, k + 1], A[i + 3, k + 2], A[i + 3, k + 3]),
    )


@kernel
def _subtract_four(U, i, V, k, block, start, m):
    """U[i : i + 4, start:m] -= block @ V[k : k + 4, start:m]"""
    a, b, c, d = block
    i, k, start, m = uintp(i), uintp(k), uintp(start), uintp(m)
    i1, i2, i3 = i + uintp(1), i + uintp(2), i + uintp(3)
    k1, k2, k3 = k + uintp(1), k + uintp(2), k + uintp(3)
    for j in range(start, m):
        w, x, y, z = V[k, j], V[k1, j], V[k2, j], V[k3, j]
        U[i, j] -= fma(a[0], w, fma(a[1], x, fma(a[2], y, a[3] * z)))
        U[i1, j] -= fma(b[0], w, fma(b[1], x, fma(b[2], y, b[3] * z)))
        U[i2, j] -= fma(c[0], w, fma(c[1], x, fma(c[2], y, c[3] * z)))
        U[i3, j] -= fma(d[0], w, fma(d[1], x, fma(d[2], y, d[3] * z)))


@kernel
def _subtract(U, i, V, k, a, start, m):
    """U[i, start:m] -= a * V[k, start:m]"""
    i, k, start, m = uintp(i), uintp(k), uintp(start), uintp(m)
    for j in range(start, m):
        U[i, j] = fma(-a, V[k, j], U[i, j])


@kernel
def _eliminate(x, U, k, a, m):
    """x[k + 1 : m] -= a * U[k, k + 1 : m]"""
    k, m = uintp(k), uintp(m)
    for j in range(k + uintp(1), m):
        x[j] = fma(-a, U[k, j], x[j])


@kernel
def _four_rows_times(V, i, j, m):
    """V[j : j + 4, j:m] @ V[i, j:m]"""
    a, b = dot_rows(V, i, V, j, j, m), dot_rows(V, i, V, j + 1, j, m)
    return a, b, dot_rows(V, i, V, j + 2, j, m), dot_rows(V, i, V, j + 3, j, m)
