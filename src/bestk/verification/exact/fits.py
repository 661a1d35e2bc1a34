"""Least squares in fractions, also where coefficients have bounds."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from bestk.verification.exact.elimination import eliminated, inverse_times
from bestk.verification.limits import limits
from bestk.verification.supports.enumeration import Unjudged


def least_squares(B: np.ndarray, lo: list[Any], hi: list[Any]) -> Fraction:
    """min of q - 2 c'b + b'A b over lo <= b <= hi (None: no bound), B = [[A, c], [c', q]]."""
    if all(bound is None for bound in (*lo, *hi)):
        return Fraction(*eliminated(B))
    for pattern in _patterns(B, lo, hi):
        b = _boxed_solution(B, pattern, lo, hi)
        if b is not None:
            k = len(lo)
            return int(B[k, k]) - sum(
                (b[i] * (int(B[i, k]) + _gradient(B, b, i)) for i in range(k)), Fraction(0)
            )
    raise Unjudged("a fit within bounds has no solution")


def _patterns(B, lo, hi) -> Iterator[tuple]:
    """Where coefficients can be in a solution: anywhere, at a bound, or at zero; a guess first.

    Zero, because dependent columns can be reduced to independent ones by moving along the null
    space until a coefficient meets a bound or vanishes.
    """
    yield _guess(B, lo, hi)
    sides = [["anywhere", *dict.fromkeys([Fraction(0), *(b for b in pair if b is not None)])]
             for pair in zip(lo, hi, strict=True)]  # fmt: skip
    if math.prod(map(len, sides)) > limits().exact_patterns:
        raise Unjudged(f"a fit of {len(lo)} features within bounds is too large for fractions")
    yield from product(*sides)


def _guess(B, lo, hi) -> tuple:
    """The pattern of a solution in floating point."""
    k = len(lo)
    size = [math.sqrt(int(B[i, i]) / int(B[0, 0])) for i in range(k)]
    A = np.array([[int(B[i, j]) / int(B[0, 0]) / size[i] / size[j] for j in range(k)]
                  for i in range(k)])  # fmt: skip
    c = np.array([int(B[i, k]) / int(B[0, 0]) / size[i] for i in range(k)])
    low = np.array([-np.inf if b is None else float(b) * s for b, s in zip(lo, size, strict=True)])
    high = np.array([np.inf if b is None else float(b) * s for b, s in zip(hi, size, strict=True)])
    b = np.clip(np.zeros(k), low, high)
    for _ in range(200):  # coordinate descent settles which bounds are met
        for i in range(k):
            b[i] = min(max(b[i] + c[i] - A[i] @ b, low[i]), high[i])
    return tuple(
        lo[i] if b[i] == low[i] else hi[i] if b[i] == high[i] else "anywhere" for i in range(k)
    )


def _gradient(B, b, i: int) -> Fraction:
    """c_i - (A b)_i: positive where a larger b_i would lower f."""
    k = len(b)
    return int(B[i, k]) - sum((int(B[i, j]) * b[j] for j in range(k)), Fraction(0))


def _boxed_solution(B, pattern, lo, hi) -> list[Fraction] | None:
    """The fit with some coefficients fixed, if it is the best one within the bounds."""
    k = len(pattern)
    free = [i for i in range(k) if pattern[i] == "anywhere"]
    b = [Fraction(0) if i in free else pattern[i] for i in range(k)]
    right = [_gradient(B, b, i) for i in free]
    solved = inverse_times([[Fraction(int(B[i, j])) for j in free] for i in free], [right])
    if solved is None:
        return None
    for i, x in zip(free, solved[0], strict=True):
        b[i] = x
        if (lo[i] is not None and x < lo[i]) or (hi[i] is not None and x > hi[i]):
            return None
    for i in range(k):  # f is convex: no coefficient may gain by moving within its bounds
        slope = _gradient(B, b, i)
        if (slope > 0 and b[i] != hi[i]) or (slope < 0 and b[i] != lo[i]):
            return None
    return b
