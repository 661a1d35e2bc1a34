"""Doubles as integers and fractions, and elimination among them without any rounding.

Doubles are dyadic, so they are integers over a power of two. Determinants are computed by
fraction-free elimination (Bareiss).
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from bestk.verification.supports.enumeration import Unjudged


def whole(values: Any) -> tuple[np.ndarray, int]:
    """(integers, e): values = integers * 2^-e, exactly."""
    values = np.asarray(values, dtype=np.float64)
    ratios = [float(v).as_integer_ratio() for v in values.ravel()]
    shift = max((d.bit_length() - 1 for _, d in ratios), default=0)
    whole = np.empty(len(ratios), dtype=object)
    whole[:] = [n << (shift - d.bit_length() + 1) for n, d in ratios]
    return whole.reshape(values.shape), shift


def scaled(bound: float, scale: Fraction) -> Fraction | None:
    return None if math.isinf(bound) else Fraction(float(bound)) * scale


def step(B: np.ndarray, before: int) -> np.ndarray:
    """Eliminate the first row and column without fractions (Bareiss)."""
    return (B[0, 0] * B[1:, 1:] - np.outer(B[1:, 0], B[0, 1:])) // before


def eliminated(B: np.ndarray) -> tuple[int, int]:
    """(determinant with y, without y) of [[A, c], [c', q]]: their ratio is the minimum of f."""
    before = 1
    while len(B) > 1:
        if B[0, 0] < 0 or (B[0, 0] == 0 and any(x != 0 for x in B[0])):
            raise Unjudged("its matrix of products is not that of any data")
        if B[0, 0] == 0:
            B = B[1:, 1:]  # a column that depends on those before it adds nothing
            continue
        B, before = step(B, before), int(B[0, 0])
    return int(B[0, 0]), before


def is_semidefinite(B: np.ndarray) -> bool:
    """Fraction-free elimination: no negative pivot, and zeros beside a zero pivot."""
    before = 1
    while len(B):
        pivot = B[0, 0]
        if pivot < 0 or (pivot == 0 and any(x != 0 for x in B[0])):
            return False
        if pivot == 0:
            B = B[1:, 1:]
        else:
            B, before = step(B, before), int(pivot)
    return True


def inverse_times(
    A: list[list[Fraction]], columns: list[list[Fraction]]
) -> list[list[Fraction]] | None:
    """A^-1 times each column, for a semidefinite A; None if it is singular."""
    n = len(A)
    A = [[*row, *(column[i] for column in columns)] for i, row in enumerate(A)]
    for i in range(n):
        if A[i][i] == 0:
            return None
        for a in range(n):
            if a != i and A[a][i] != 0:
                factor = A[a][i] / A[i][i]
                A[a] = [x - factor * y for x, y in zip(A[a], A[i], strict=True)]
    return [[A[i][n + m] / A[i][i] for i in range(n)] for m in range(len(columns))]


def unit_columns(size: int) -> list[list[Fraction]]:
    return [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
