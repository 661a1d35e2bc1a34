"""Good multipliers for the constraints of one support; nothing has to be exact here.

min |R b - z|^2 over G b >= h becomes a shortest vector x = R b - z with (G R^-1) x >= h - G R^-1 z,
which nonnegative least squares find (Lawson and Hanson): with u = argmin |E u - e|, E = [G R^-1
beside the right side], the residual's last entry rho tells how close the constraints are to having
no solution, and multipliers are u / rho. Where they have none, u itself shows it (Farkas).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

# Residuals below which constraints may have no solution.
_CLOSE = 1e-6
_ROUNDS = 5
_TINY = 1e-14


class Sides(NamedTuple):
    """lower <= C b <= upper and lo <= b <= hi for one support, or for a stack of them."""

    C: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class _Shortest(NamedTuple):
    """min |x| over G x >= h, rows of unit length times ``norm``: u and rho, see above.

    Rows are lower sides, upper sides, and those of the box, where they are finite.
    """

    G: np.ndarray
    h: np.ndarray
    norm: np.ndarray
    size: float
    u: np.ndarray
    rho: float


def _finite(sides: Sides) -> list[np.ndarray]:
    """Where sides are: lower, upper, lo, hi."""
    return [np.isfinite(side) for side in sides[1:]]


def multipliers(R: np.ndarray, z: np.ndarray, sides: Sides, worth: float) -> Iterator[np.ndarray]:
    """Candidates for |R b - z|^2, R an upper triangle; `worth` is what a proof has to reach."""
    found = _shortest(R, z, sides)
    if found is None:
        return
    G, h, norm, size, u, rho = found
    below, above = _finite(sides)[:2]
    n_below, n_above = int(below.sum()), int(above.sum())

    def in_order(u: np.ndarray) -> np.ndarray:
        u, lam = u / norm, np.zeros(len(sides.C))
        lam[above] += u[n_below : n_below + n_above]
        lam[below] -= u[:n_below]
        return lam

    if rho > 1e-300:
        yield in_order(2.0 * _refined(G, h, u))
        yield in_order(2.0 * size * u / rho)
    if rho < _CLOSE:  # lam'C b - sigma(lam) is 1 - rho in units of size, whatever b is
        yield in_order(u * (4.0 * (worth + 1.0) / size))


def active_sides(R: np.ndarray, z: np.ndarray, sides: Sides) -> np.ndarray:
    """-1, 0 or 1 for each constraint, then for each bound: at its lower side, neither, upper."""
    found = _shortest(R, z, sides)
    active = np.zeros(len(sides.C) + len(R), dtype=np.int8)
    if found is None:
        return active
    below, above, lo, hi = (np.flatnonzero(part) for part in _finite(sides))
    q = len(sides.C)
    rows = np.concatenate([below, above, q + lo, q + hi])
    sign = np.repeat([-1, 1, -1, 1], [len(below), len(above), len(lo), len(hi)])
    used = found.u > 0.0
    active[rows[used]] = sign[used]
    return active


def _shortest(R: np.ndarray, z: np.ndarray, sides: Sides) -> _Shortest | None:
    """None where nonnegative least squares run in circles."""
    identity = np.eye(len(R))
    below, above, lo, hi = _finite(sides)
    G = np.vstack([sides.C[below], -sides.C[above], identity[lo], -identity[hi]])
    h = np.concatenate([
        sides.lower[below], -sides.upper[above], sides.lo[lo], -sides.hi[hi],
    ])  # fmt: skip
    with np.errstate(all="ignore"):
        G = solve_triangular(R, G.T, trans="T").T if len(G) and len(R) else G
        norm = np.sqrt((G * G).sum(axis=1))
        usable = np.isfinite(norm) & (norm > 0.0)
        norm = np.where(usable, norm, 1.0)
        G, h = G / norm[:, None], h / norm
    G[~usable], h[~usable] = 0.0, -1.0  # nothing can be made of these rows
    h = h - G @ z
    size = float(np.abs(h).max(initial=0.0))
    if not (h > 0.0).any() or not np.isfinite(size):
        return _Shortest(G, h, norm, 1.0, np.zeros(len(h)), 1.0)
    E = np.vstack([G.T, h / size])
    try:
        u = nnls(E, np.append(np.zeros(len(R)), 1.0))[0]
    except RuntimeError:
        return None
    u[~usable] = 0.0
    return _Shortest(G, h, norm, size, u, 1.0 - float(h @ u) / size)


def _refined(G: np.ndarray, h: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Multipliers of the shortest x with G x = h where u is not zero: more digits."""
    active = u > 0.0
    if not active.any():
        return u
    x = np.linalg.lstsq(G[active], h[active], rcond=1e-14)[0]
    refined = np.zeros(len(u))
    refined[active] = np.maximum(np.linalg.lstsq(G[active].T, x, rcond=1e-14)[0], 0.0)
    return refined


def stacked_multipliers(A: np.ndarray, c: np.ndarray, sides: Sides) -> Iterator[np.ndarray]:
    """Candidates for stacks of problems without bounds on b: equations first, then active sets.

    Rows that hold with equality and those that the last solution violates are taken as equations;
    those whose multiplier has the wrong sign are not, the next time.
    """
    count, q, k = sides.C.shape
    norm = np.sqrt((sides.C**2).sum(axis=2))
    scale = np.where(norm > 0.0, norm, 1.0)
    C = sides.C / scale[:, :, None]
    lower, upper = sides.lower / scale, sides.upper / scale
    equal = (lower == upper) & (norm > 0.0)
    active, goal = equal.copy(), np.where(equal, lower, 0.0)
    for _ in range(_ROUNDS):
        K = np.zeros((count, k + q, k + q))
        K[:, :k, :k] = A
        K[:, range(k), range(k)] += _TINY
        taken = C * active[:, :, None]
        K[:, k:, :k], K[:, :k, k:] = taken, taken.transpose(0, 2, 1)
        K[:, range(k, k + q), range(k, k + q)] = np.where(active, -_TINY, -1.0)
        right = np.concatenate([c, np.where(active, goal, 0.0)], axis=1)
        try:
            solution = np.linalg.solve(K, right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            return
        b, mu = solution[:, :k], np.where(active, solution[:, k:], 0.0)
        mu = np.where((mu > 0.0) & np.isinf(upper) | (mu < 0.0) & np.isinf(lower), 0.0, mu)
        yield 2.0 * mu / scale
        value = np.einsum("hij,hj->hi", C, b)
        room = 1e-12 * (1.0 + np.abs(value))
        is_low = (value < lower - room) | (active & ~equal & (goal == lower) & (mu < 0.0))
        is_high = (value > upper + room) | (active & ~equal & (goal == upper) & (mu > 0.0))
        before = active
        active = equal | ((is_low | is_high) & (norm > 0.0))
        goal = np.where(equal, lower, np.where(is_low, lower, np.where(is_high, upper, 0.0)))
        if (active == before).all():
            return
