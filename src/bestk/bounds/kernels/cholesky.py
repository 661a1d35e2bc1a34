"""Small symmetric matrices inside compiled loops: factors, solutions, inverses.

Only upper triangles are read, and rows are run through from left to right.
"""

import math

from numba import uintp

from bestk.base.compiling import fast_kernel, kernel

# Pivots smaller than this are rounding: diagonals are of size one.
_TINY = 1e-13


@kernel
def factor(U, m):
    """U becomes the upper factor of the m x m matrix it holds; False if that is singular."""
    for k in range(m):
        if not U[k, k] > _TINY:
            return False
        inverse = 1.0 / math.sqrt(U[k, k])
        for j in range(k, m):
            U[k, j] *= inverse
        for i in range(k + 1, m):
            _subtract(U, i, U, k, U[k, i], i, m)
    return True


@kernel
def solve_factored(U, x, m):
    """U'U x = x, in place."""
    for k in range(m):
        x[k] /= U[k, k]
        _eliminate(x, U, k, x[k], m)
    for k in range(m - 1, -1, -1):
        x[k] = (x[k] - _row_times(U, k, x, m)) / U[k, k]


@kernel
def invert_factored(U, V, P, m):
    """P is the inverse of U'U, V room for that of U."""
    for i in range(m - 1, -1, -1):
        for j in range(i, m):
            V[i, j] = 0.0
        for k in range(i + 1, m):
            _subtract(V, i, V, k, U[i, k], k, m)
        inverse = 1.0 / U[i, i]
        V[i, i] = 1.0
        for j in range(i, m):
            V[i, j] *= inverse
    for i in range(m):
        for j in range(i, m):
            P[i, j] = _rows_times(V, i, j, m)
            P[j, i] = P[i, j]


@fast_kernel
def _subtract(U, i, V, k, a, start, m):
    """U[i, start:m] -= a * V[k, start:m]"""
    i, k, start, m = uintp(i), uintp(k), uintp(start), uintp(m)
    for j in range(start, m):
        U[i, j] -= a * V[k, j]


@fast_kernel
def _eliminate(x, U, k, a, m):
    """x[k + 1 : m] -= a * U[k, k + 1 : m]"""
    k, m = uintp(k), uintp(m)
    for j in range(k + uintp(1), m):
        x[j] -= a * U[k, j]


@fast_kernel
def _row_times(U, k, x, m):
    """U[k, k + 1 : m] @ x[k + 1 : m]"""
    k, m = uintp(k), uintp(m)
    total = 0.0
    for j in range(k + uintp(1), m):
        total += U[k, j] * x[j]
    return total


@fast_kernel
def _rows_times(V, i, j, m):
    """V[i, j:m] @ V[j, j:m]"""
    i, j, m = uintp(i), uintp(j), uintp(m)
    total = 0.0
    for k in range(j, m):
        total += V[i, k] * V[j, k]
    return total
