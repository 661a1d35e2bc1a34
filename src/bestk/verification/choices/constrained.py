"""Rigorous lower bounds for supports whose coefficients satisfy linear constraints.

Around any b, for any multipliers lam, with h = M'(z - M b) - C'lam / 2 and the least eigenvalue
lambda of M'M, every feasible b + v has

    f(b + v) >= |z - M b|^2 + lam'C b - sigma(lam) - sum of max of (2 h_j v_j - lambda v_j^2),

the maximum over what the bounds leave of v_j. Neither b nor lam has to be good. Multipliers that
show that there is no solution make it as large as one likes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from bestk.verification.choices.constraints import Constraints, support_function
from bestk.verification.choices.multipliers import (
    Sides,
    active_sides,
    multipliers,
    stacked_multipliers,
)
from bestk.verification.evidence import Evidence
from bestk.verification.numerics.rounding import LONG, LONG_UNIT, UNIT, gamma, largest_gain
from bestk.verification.numerics.rows import Columns, short_sums, sum_length
from bestk.verification.supports.single import (
    back_substituted,
    boxed_fit,
    least_eigenvalues,
    least_singular_value,
)

# f of some features over y'y in rational numbers given a guess of active sides, None if impossible.
Exactly = Callable[[np.ndarray, np.ndarray], float | None]


class _Price(NamedTuple):
    """lam'C b - sigma(lam) at some b, C'lam, and how wrong these may be."""

    value: np.ndarray
    slopes: np.ndarray
    error: np.ndarray


class ConstrainedFits:
    """Bounds supports (columns of C, ascending) within constraints.

    ``enough`` is all that is wanted.
    """

    def __init__(
        self, evidence: Evidence, constraints: Constraints, enough: float, exactly: Exactly
    ) -> None:
        self.evidence, self.constraints, self.enough = evidence, constraints, enough
        self.exactly = exactly
        self.is_boxed = bool(np.isfinite([constraints.lo, constraints.hi]).any())

    def _blocks(self, supports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A and c over supports with equally many live features, whose idle ones come last."""
        e, n_live = self.evidence, int((supports[:1] < len(self.evidence.c)).sum())
        live, size = supports[:, :n_live], supports.shape[1]
        A, c = np.zeros((len(supports), size, size)), np.zeros(supports.shape)
        A[:, range(size), range(size)] = 1.0
        A[:, :n_live, :n_live], c[:, :n_live] = e.A.blocks(live), e.c[live]
        return A, c

    def quick(self, supports: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """By products, for many supports of one size; sides of the constraints in rows."""
        e, values = self.evidence, np.zeros(len(supports))
        if self.is_boxed or supports.shape[1] == 0:
            return values  # one by one
        A, c = self._blocks(supports)
        C = self.constraints.C[:, supports].transpose(1, 0, 2)
        least = least_eigenvalues(A) - e.eps * supports.shape[1]
        fine = np.flatnonzero(least > 0.0)
        free = np.full((len(fine), supports.shape[1]), np.inf)
        sides = Sides(C[fine], lower[fine], upper[fine], -free, free)
        for lam in stacked_multipliers(A[fine], c[fine], sides):
            turned = c[fine] - 0.5 * np.einsum("hq,hqi->hi", lam, sides.C)
            b = np.linalg.solve(A[fine], turned[:, :, None])[:, :, 0]
            found = _around(A[fine], c[fine], e.eps, least[fine], b, lam, sides)
            values[fine] = np.maximum(values[fine], found)
            if (values[fine] >= self.enough).all():
                break
        return values

    def closer(self, support: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
        """One support, from products and then from rows."""
        given = self.constraints
        C, lo, hi = given.C[:, support], given.lo[support], given.hi[support]
        sides = Sides(C, lower, upper, lo, hi)
        value = self._by_products(support, sides)
        if value < self.enough and self.evidence.rows is not None and len(support):
            value = max(value, self._by_rows(support, sides))
        return value

    def exact(self, support: np.ndarray) -> float:
        """One support with all of its idle features, in rational numbers."""
        given, n = self.constraints, len(self.evidence.c)
        A, c = (stack[0] for stack in self._blocks(support[None]))
        if not given.are_charged:
            A[support >= n] = 0.0
        R = np.linalg.cholesky(A + 1e-7 * np.eye(len(A))).T
        z = solve_triangular(R, c, trans="T") if len(c) else c
        box = given.lo[support], given.hi[support]
        guess = active_sides(R, z, Sides(given.C[:, support], given.lower, given.upper, *box))
        features = np.append(self.evidence.live, given.idle)[support]
        value = self.exactly(features, guess)
        return 0.0 if value is None else value

    def _by_products(self, support: np.ndarray, sides: Sides) -> float:
        e, k = self.evidence, len(support)
        A, c = (stack[0] for stack in self._blocks(support[None]))
        try:
            R = np.linalg.cholesky(A + 1e-13 * np.eye(k)).T
        except np.linalg.LinAlgError:
            return 0.0
        least = least_eigenvalues(A[None]) - e.eps * k
        z, value = solve_triangular(R, c, trans="T") if k else c, 0.0
        stacked = Sides(*(side[None] for side in sides))
        for lam in multipliers(R, z, sides, self.enough):
            b = self._fit(R, z, sides, lam)
            found = _around(A[None], c[None], e.eps, least, b[None], lam[None], stacked)
            value = max(value, float(found[0]))
        return value

    def _fit(self, R: np.ndarray, z: np.ndarray, sides: Sides, lam: np.ndarray) -> np.ndarray:
        """The b that these multipliers ask for, roughly."""
        if len(R) == 0:
            return z
        z = z - 0.5 * solve_triangular(R, lam @ sides.C, trans="T")
        if self.is_boxed:
            return boxed_fit(R, z, sides.lo, sides.hi)
        return solve_triangular(R, z)

    def _by_rows(self, support: np.ndarray, sides: Sides) -> float:
        """In extended precision."""
        e = self.evidence
        assert e.rows is not None
        rows, live, charged = e.rows, support[support < len(e.c)], support[support >= len(e.c)]
        features = np.append(e.live[live], self.constraints.idle[charged - len(e.c)])
        columns = _with_idle(rows.columns(e.live[live]), len(charged))
        least, R, z = least_singular_value(columns)
        if least <= 0.0:
            return 0.0
        near, value = R.astype(np.float64), 0.0
        unit = rows.scale[features] * LONG(2) ** rows.exponent[features].astype(LONG)
        unit[len(live) :] = np.sqrt(LONG(self.constraints.alpha))
        unit = unit / (rows.y_scale * LONG(2) ** LONG(rows.exponent[-1]))
        sides = sides._replace(C=self.constraints.matrix[:, features].astype(LONG) / unit)
        rough = sides._replace(C=sides.C.astype(np.float64))
        for lam in multipliers(near, z.astype(np.float64), rough, self.enough):
            if self.is_boxed:
                b = self._fit(near, z.astype(np.float64), rough, lam).astype(LONG)
            else:
                slopes = lam.astype(LONG) @ sides.C
                b = back_substituted(R, z - 0.5 * _forward_substituted(R, slopes))
            value = max(value, _around_rows(columns, least, b, lam, sides))
        return value


def _with_idle(columns: Columns, count: int) -> Columns:
    """A row and a column for each idle feature with a penalty, in units of its own."""
    (n, k), z = columns.M.shape, columns.z
    if count == 0:
        return columns
    M = np.zeros((n + count, k + count), dtype=LONG)
    M[:n, :k] = columns.M
    M[range(n, n + count), range(k, k + count)] = 1.0
    return Columns(M, np.append(z, np.zeros(count, dtype=LONG)), columns.error)


def _forward_substituted(R, right) -> np.ndarray:
    """R'^-1 right"""
    x = np.zeros(len(right), dtype=LONG)
    for i in range(len(right)):
        x[i] = (right[i] - R[:i, i] @ x[:i]) / R[i, i]
    return x


def _price(lam: np.ndarray, b: np.ndarray, sides: Sides, unit: float) -> _Price:
    """For stacks, in arithmetic of this unit roundoff; entries of C have six roundings."""
    q, k = sides.C.shape[-2:]
    slopes = np.einsum("hq,hqi->hi", lam, sides.C)
    size = np.einsum("hq,hqi->hi", np.abs(lam), np.abs(sides.C))
    sigma = support_function(lam, sides.lower, sides.upper, unit)
    lost = gamma(q + k + 12, unit) * (size * np.abs(b)).sum(axis=1)
    lost = lost + 8 * unit * np.abs(sigma) + 1e-290
    value = (slopes * b).sum(axis=1) - sigma - lost
    return _Price(value, slopes, gamma(q + 10, unit) * size + 1e-290 * (size > 0.0))


def _around(A, c, eps, least, b, lam, sides: Sides) -> np.ndarray:
    """The bound of the module's formula for stacks of products known up to eps."""
    k = b.shape[1]
    with np.errstate(all="ignore"):  # what is not finite proves nothing
        size = 1.0 + np.abs(b).sum(axis=1)
        price = _price(lam, b, sides, UNIT)
        Ab = np.einsum("hij,hj->hi", A, b)
        value = 1.0 - 2.0 * np.einsum("hi,hi->h", c, b) + np.einsum("hi,hi->h", b, Ab)
        # All entries are at most one: sums of k + 1 products of numbers with total size^2.
        unknown = eps + gamma(2 * k + 8)
        error = unknown * size[:, None] + price.error + 4 * UNIT * np.abs(price.slopes)
        h = c - Ab - 0.5 * price.slopes
        loss = largest_gain(h, error, least[:, None], sides.lo - b, sides.hi - b).sum(axis=1)
        value = value - unknown * size**2 + price.value - 4 * UNIT * np.abs(price.value)
        value = value - loss * (1.0 + gamma(k + 2))
        value = value - 8 * UNIT * np.abs(value)
    return np.where(np.isfinite(value), value, 0.0)


def _around_rows(columns: Columns, least: float, b, lam, sides: Sides) -> float:
    """The same from columns in extended precision; as in `supports`."""
    M, z = columns.M, columns.z
    n, k = M.shape
    with np.errstate(all="ignore"):
        residual = z - M @ b
        size = float(1.0 + np.abs(b).sum()) * (1.0 + 1e-12)
        off = (columns.error + gamma(k + 3, LONG_UNIT)) * size
        norm = float(np.sqrt(short_sums(residual * residual)))
        rest = max(norm * (1.0 - gamma(sum_length(n) + 4, LONG_UNIT) - 4 * UNIT) - off, 0.0) ** 2
        stacked = Sides(*(side[None] for side in sides))
        price = _price(lam.astype(LONG)[None], b[None], stacked, LONG_UNIT)
        h = short_sums(M.T * residual) - price.slopes[0] / 2
        error = off + (gamma(sum_length(n) + 2, LONG_UNIT) + columns.error) * norm * 1.01
        error = error + (price.error[0] + 4 * LONG_UNIT * np.abs(price.slopes[0]))
        h, error, near = (part.astype(np.float64) for part in (h, error, b))
        error = error * (1.0 + 4 * UNIT) + np.abs(h) * 2 * UNIT
        loss = largest_gain(h, error, least**2, sides.lo - near, sides.hi - near).sum()
        value = float(LONG(rest * (1.0 - 4 * UNIT)) + price.value[0])
        value -= loss * (1.0 + gamma(k + 2)) + 8 * UNIT * (abs(value) + loss)
    return value if np.isfinite(value) else 0.0
