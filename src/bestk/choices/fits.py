"""Least squares under linear constraints on a few columns, with multipliers and their check.

    min ||z - M b||^2   over   lower <= C b <= upper   (bounds on b among the rows of C)

An active-set method from a feasible point: fit with the active rows as equations, go there as far
as the others allow, let go of a row whose multiplier has the wrong sign.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq, qr, solve_triangular

_RANK = 1e-13
# Distances to constraints, as a share of the numbers that enter them, that count as none.
_TOUCHING = 1e-11
# Multipliers of the wrong sign and steps, as shares of the slopes and coefficients, likewise.
_FLAT = 1e-11


class Unsolved(Exception):
    """Whether some b satisfies the rows could not be told."""


class Fit(NamedTuple):
    """Coefficients, multipliers of the rows, and how far from the conditions of the optimum.

    ``kkt`` is the largest violation, of slopes or rows, as a share of what enters them.
    """

    b: np.ndarray
    multipliers: np.ndarray
    kkt: float


class _Rows(NamedTuple):
    """lo <= C b <= hi with rows of length one."""

    C: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    @property
    def are_equations(self) -> np.ndarray:
        return self.lo == self.hi

    def outside(self, b: np.ndarray) -> float:
        """The largest violation, as a share of the numbers that enter a row."""
        at, (below, above) = self.C @ b, self.sizes(b)
        return float(np.maximum((self.lo - at) / below, (at - self.hi) / above).max(initial=0.0))

    def sizes(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What enters the comparison with each end; an end of 0 has no size of its own."""
        ends = (np.where(np.isfinite(end), np.abs(end), 0.0) for end in (self.lo, self.hi))
        below, above = (np.maximum(float(np.linalg.norm(b)) + end, 1e-300) for end in ends)
        return below, above


def constrained_least_squares(
    M: np.ndarray, z: np.ndarray, C: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> Fit | None:
    """The fit; None where no b satisfies the rows, Unsolved where that cannot be told.

    Columns of M should have length one.
    """
    lengths = np.sqrt((C * C).sum(axis=1))
    live = lengths > 0.0
    if ((lower > 0.0) | (upper < 0.0))[~live].any():
        return None
    rows = _Rows(
        C[live] / lengths[live, None], lower[live] / lengths[live], upper[live] / lengths[live]
    )
    start = _feasible(M, z, rows)
    if start is None:
        return None
    b, multipliers = _descended(M, z, rows, *start)
    b = _within_bounds(rows, b)
    whole = np.zeros(len(C))
    whole[live] = multipliers / lengths[live]
    return Fit(b, whole, _violation(M, z, rows, b, multipliers))


def _feasible(M, z, rows: _Rows) -> tuple[np.ndarray, np.ndarray] | None:
    """(a point within the rows, active rows); the fit without inequalities, if that is one."""
    equations = rows.are_equations
    found = _solution(rows.C[equations], rows.lo[equations])
    if found is None:
        return None
    start, N = found
    b = start + N @ _fitted(M @ N, z - M @ start)
    for point in (b, start):
        if rows.outside(point) <= _TOUCHING:
            return point, equations
    return _by_linear_program(rows)


def _by_linear_program(rows: _Rows) -> tuple[np.ndarray, np.ndarray] | None:
    from scipy.optimize import linprog  # slow to import, seldom needed

    # The largest distance to the ends of rows that have two, up to one: a point inside.
    p, equations = rows.C.shape[1], rows.are_equations
    up, down = ~equations & np.isfinite(rows.hi), ~equations & np.isfinite(rows.lo)
    size = np.maximum(np.maximum(*rows.sizes(np.zeros(p))), 1.0)
    room = np.minimum(size, 0.5 * np.where(up & down, rows.hi - rows.lo, np.inf))
    above = np.column_stack([rows.C[up], room[up]])
    below = np.column_stack([-rows.C[down], room[down]])
    cost = np.zeros(p + 1)
    cost[-1] = -1.0
    given = {}
    if equations.any():
        given["A_eq"] = np.column_stack([rows.C[equations], np.zeros(int(equations.sum()))])
        given["b_eq"] = rows.lo[equations]
    answer = linprog(
        cost, A_ub=np.vstack([above, below]), b_ub=np.append(rows.hi[up], -rows.lo[down]),
        bounds=[(None, None)] * p + [(0.0, 1.0)], **given,
    )  # fmt: skip
    if answer.status == 2:
        return None
    if answer.x is None:
        raise Unsolved(answer.message)
    b = answer.x[:-1]
    at, (below, above) = rows.C @ b, rows.sizes(b)
    is_low, is_high = at - rows.lo <= 1e-7 * below, rows.hi - at <= 1e-7 * above
    active = equations | is_low | is_high
    ends = np.where(is_low, rows.lo, rows.hi)
    # A solver's tolerance is larger than ours: what is nearly touched is touched.
    found = _solution(rows.C[active], ends[active], near=b)
    if found is not None and rows.outside(found[0]) <= 1e-9:
        return found[0], equations
    if rows.outside(b) > _TOUCHING:
        raise Unsolved("a point of the linear program is not quite within its rows")
    return b, equations


def _descended(M, z, rows: _Rows, b, active) -> tuple[np.ndarray, np.ndarray]:
    """(the best b, multipliers of the rows), from a point within them."""
    equations = rows.are_equations
    active, multipliers = active.copy(), np.zeros(len(rows.C))
    for _ in range(20 * (len(rows.C) + len(b)) + 20):
        N = _solution(rows.C[active], np.zeros(int(active.sum())))[1]
        step = N @ _fitted(M @ N, z - M @ b)
        moved = np.abs(step).max(initial=0.0) > _FLAT * max(np.abs(b).max(initial=0.0), 1e-300)
        if moved:
            length, blocking = _longest(rows, b, step, active)
            b = b + length * step
            if blocking >= 0:
                active[blocking] = True
                continue
        multipliers, sides = _multipliers(M, z, rows, b, active)
        wrong = np.where(active & ~equations, -sides * multipliers, 0.0)
        worst = int(np.argmax(wrong)) if len(wrong) else -1
        if worst < 0 or wrong[worst] <= _FLAT * max(np.abs(multipliers).max(), _slope(M, z, b)):
            break
        active[worst] = False
    sides = np.where(active, np.abs(rows.C @ b - rows.lo) <= np.abs(rows.hi - rows.C @ b), False)
    exact = _solution(rows.C[active], np.where(sides, rows.lo, rows.hi)[active], near=b)
    if exact is not None:
        start, N = exact
        polished = start + N @ _fitted(M @ N, z - M @ start)
        if rows.outside(polished) <= _TOUCHING:
            b = polished
    return b, _multipliers(M, z, rows, b, active)[0]


def _within_bounds(rows: _Rows, b: np.ndarray) -> np.ndarray:
    """b, with coefficients that rounding left outside their bounds exactly at them.

    One that should be zero has no size of its own that a violation could be small beside.
    """
    b = b.copy()
    for i in np.flatnonzero((rows.C != 0.0).sum(axis=1) == 1):
        j = int(np.argmax(np.abs(rows.C[i])))
        ends = sorted((rows.lo[i] / rows.C[i, j], rows.hi[i] / rows.C[i, j]))
        b[j] = np.clip(b[j], *ends)
    return b


def _longest(rows: _Rows, b, step, active) -> tuple[float, int]:
    """(how far to go, the row that ends it or -1)"""
    at, change = rows.C @ b, rows.C @ step
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(change > 0.0, (rows.hi - at) / change, (rows.lo - at) / change)
    little = np.abs(change) <= 1e-14 * (np.abs(rows.C) @ np.abs(step))
    room[active | little | ~np.isfinite(room)] = np.inf
    room = np.maximum(room, 0.0)
    first = int(np.argmin(room)) if len(room) else -1
    return (float(room[first]), first) if first >= 0 and room[first] < 1.0 else (1.0, -1)


def _multipliers(M, z, rows: _Rows, b, active) -> tuple[np.ndarray, np.ndarray]:
    """(least-squares multipliers of active rows, 1 at upper ends and -1 at lower ones)"""
    slope, at = 2.0 * (M.T @ (z - M @ b)), rows.C @ b
    found = np.zeros(len(rows.C))
    if active.any():
        found[active] = _fitted(rows.C[active].T, slope)
    return found, np.where(np.abs(rows.hi - at) <= np.abs(at - rows.lo), 1.0, -1.0)


def _slope(M, z, b) -> float:
    """The size of what slopes are differences of."""
    return 2.0 * float(np.linalg.norm(z) + np.linalg.norm(M @ b))


def _violation(M, z, rows: _Rows, b, multipliers) -> float:
    slope = 2.0 * (M.T @ (z - M @ b)) - rows.C.T @ multipliers
    at, (below, above) = rows.C @ b, rows.sizes(b)
    size = max(_slope(M, z, b), 1e-300)
    is_low, is_high = np.abs(at - rows.lo) <= 1e-7 * below, np.abs(rows.hi - at) <= 1e-7 * above
    held = np.where(multipliers > 0.0, is_high, is_low)
    loose = np.abs(multipliers[~held & (multipliers != 0.0)]).max(initial=0.0)
    return float(max(np.abs(slope).max(initial=0.0) / size, loose / size, rows.outside(b)))


def _solution(rows: np.ndarray, values: np.ndarray, near: np.ndarray | None = None):
    """(the solution of rows b = values that is nearest, a basis of rows b = 0); None if none is."""
    p = rows.shape[1]
    near = np.zeros(p) if near is None else near
    if len(rows) == 0:
        return near, np.eye(p)
    Q, R, order = qr(rows.T, pivoting=True)
    size = np.abs(R.diagonal())
    rank = int((size > _RANK * max(rows.shape)).sum())
    rest = values - rows @ near
    part = solve_triangular(R[:rank, :rank].T, rest[order[:rank]], lower=True)
    b = near + Q[:, :rank] @ part
    wrong = np.abs(rows @ b - values)
    if (wrong > 1e-10 * (float(np.linalg.norm(b)) + np.abs(values))).any():
        return None
    return b, Q[:, rank:]


def _fitted(E: np.ndarray, f: np.ndarray) -> np.ndarray:
    """argmin ||f - E y||, the shortest where columns depend on each other.

    Columns are of length one at most; much shorter ones are what rounding left of none.
    """
    live = np.sqrt((E * E).sum(axis=0)) > _RANK
    y = np.zeros(E.shape[1])
    if live.any():
        y[live] = lstsq(E[:, live], f, cond=_RANK, lapack_driver="gelsy")[0]
    return y
