"""One support within constraints in rational numbers, for features that depend on each other.

If G b + C_P'mu = c and C_P b = d_P, where P are some sides of constraints and bounds, mu >= 0 at
upper ones and mu <= 0 at lower ones, then f(b) is the least value of f + 2 mu'(C_P b - d_P) over
all b: at most that of f over those that satisfy the constraints. It does not matter how P was found
nor whether b satisfies the others.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import isfinite, prod

import numpy as np

from bestk.results.certificate import Certificate

# Sets P that are tried beside the guess.
_MOST = 81

Row = list[Fraction]


def constrained_value(
    certificate: Certificate, G, denominator: int, features: np.ndarray, guess, enough: Fraction
) -> Fraction | None:
    """A lower bound on f over some features, G / denominator their products and those of y.

    None where no set of sides gives one; nothing above `enough` is looked for.
    """
    structure, s = certificate.structure, len(features)
    assert structure is not None
    products = [[Fraction(int(x), denominator) for x in row] for row in G]
    for i in range(s):
        products[i][i] += Fraction(certificate.alpha)
    identity = np.eye(s)
    C = [_fractions(row) for row in (*structure.matrix[:, features], *identity)]
    lower = np.concatenate([structure.lower, certificate.lower[features]])
    upper = np.concatenate([structure.upper, certificate.upper[features]])
    best: Fraction | None = None
    for sides in _patterns(lower, upper, guess):
        value = _value(products, C, lower, upper, sides)
        if value is not None and (best is None or value > best):
            best = value
        if best is not None and best >= enough:
            break
    return best


def _fractions(row: np.ndarray) -> Row:
    return [Fraction(float(x)) for x in row]


def _patterns(lower, upper, guess) -> Iterator[tuple[int, ...]]:
    """The guess first; all others where these are few. Equations are always there."""
    pairs = list(zip(lower.tolist(), upper.tolist(), strict=True))
    yield tuple(1 if a == b else int(g) for (a, b), g in zip(pairs, guess, strict=True))
    options = [_options(*pair) for pair in pairs]
    if prod(len(own) for own in options) <= _MOST:
        yield from product(*options)


def _options(low: float, high: float) -> list[int]:
    if low == high:
        return [1]
    return [0, *([-1] if isfinite(low) else []), *([1] if isfinite(high) else [])]


def _value(products, C, lower, upper, sides) -> Fraction | None:
    """f(b) of the module's formula; None where there is no such b, or a sign is wrong."""
    active = [i for i, side in enumerate(sides) if side]
    s = len(products) - 1
    goal = [Fraction(float(lower[i] if sides[i] < 0 else upper[i])) for i in active]
    rows = [[*products[i][:s], *(C[a][i] for a in active), products[i][s]] for i in range(s)]
    nothing = [Fraction(0)] * len(active)
    rows += [[*C[a], *nothing, d] for a, d in zip(active, goal, strict=True)]
    solution = _solved(rows)
    if solution is None:
        return None
    b, mu = solution[:s], solution[s:]
    for i, x in zip(active, mu, strict=True):
        if lower[i] < upper[i] and x * sides[i] < 0:
            return None
    # f = yy - 2 c'b + b'G b
    gradient = (sum((products[i][j] * b[j] for j in range(s)), Fraction(0)) for i in range(s))
    return products[s][s] + sum(
        (b[i] * (g - 2 * products[i][s]) for i, g in enumerate(gradient)), Fraction(0)
    )


def _solved(rows: list[Row]) -> Row | None:
    """Some solution of a square system [K | right], None where there is none."""
    size = len(rows)
    pivots: list[int] = []
    for column in range(size):
        at = next((i for i in range(len(pivots), size) if rows[i][column]), None)
        if at is None:
            continue
        top = len(pivots)
        rows[top], rows[at] = rows[at], rows[top]
        inverse = 1 / rows[top][column]
        rows[top] = [x * inverse for x in rows[top]]
        for i in range(size):
            factor = rows[i][column]
            if i != top and factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[top], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    solution = [Fraction(0)] * size
    for row, column in zip(rows, pivots, strict=False):
        solution[column] = row[-1]
    return solution
