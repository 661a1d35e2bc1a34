"""The matrix A as an array of p x p numbers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bestk.base.arithmetic import add_row
from bestk.base.compiling import kernel
from bestk.base.constants import OUT, UNIT_ROUNDOFF
from bestk.form.definiteness import negative_charge, uniform_charge
from bestk.form.matrix import CAUTION, Around, Core, Slopes, Systems


@dataclass(frozen=True, eq=False)
class DenseMatrix:
    """A as an array; see :class:`bestk.form.matrix.Matrix`."""

    array: np.ndarray = field(repr=False)

    @property
    def p(self) -> int:
        return len(self.array)

    @property
    def has_factors(self) -> bool:
        return True

    @property
    def factor_multiplies(self) -> float:
        return 2.0 * self.p**3

    def rows(self, features: np.ndarray) -> np.ndarray:
        return self.array[features]

    def submatrix(self, features: np.ndarray) -> np.ndarray:
        return self.array[np.ix_(features, features)]

    def sums(self, supports: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        total = np.zeros((len(supports), self.p))
        for features, values in zip(supports.T, coefs.T, strict=True):
            total += values[:, None] * self.array[features]
        return total

    def restricted(self, keep: np.ndarray) -> "DenseMatrix":
        return DenseMatrix(np.ascontiguousarray(self.submatrix(keep)))

    def around(self, features: np.ndarray) -> Around:
        return Around(self, np.arange(self.p), features)

    def near_copies(self, least: float) -> Iterator[tuple[int, int]]:
        for start in range(0, self.p, 256):
            i, j = np.nonzero(np.abs(self.array[start : start + 256]) >= least)
            i = i + start
            yield from zip(i[i < j].tolist(), j[i < j].tolist(), strict=True)

    def first_charges(self, error: float, in_box: bool) -> np.ndarray:
        charge = uniform_charge(self.array, error)
        if charge <= 0.0 and in_box:
            charge = negative_charge(self.array, error)
        return np.full(self.p, charge)

    def systems(self, c: np.ndarray, t: np.ndarray) -> Systems:
        return _Systems(self.array, c, t)

    def slopes(self, c: np.ndarray, t: np.ndarray, eps: float, states: np.ndarray) -> Slopes:
        return _Slopes(self.array, c, t, eps, len(states))

    def core(self, candidates: np.ndarray) -> Core:
        return _Whole(self.array)


class _Whole:
    """All features: nothing can be lacking."""

    is_whole = True

    def __init__(self, A: np.ndarray) -> None:
        self.A = A
        self.features = np.arange(len(A))
        self.listed = np.ones(len(A), dtype=bool)

    def add(self, features: np.ndarray, needed: np.ndarray) -> None:
        pass


class _Slopes:
    """Sums over the nonzeros of g."""

    multiplies = 0.0  # the relaxation has counted them
    is_rowwise = True

    def __init__(self, A, c, t, eps: float, count: int) -> None:
        self.A, self.c, self.t, self.eps = A, c, t, eps
        self.u = np.empty((count, len(c)))
        self.quadratic, self.error, self.lost = np.empty((3, count))

    def set(self, rows: np.ndarray, duals: np.ndarray) -> None:
        slope_rows(
            self.A, self.c, self.t, CAUTION * self.eps, rows, duals,
            self.u, self.quadratic, self.error, self.lost,
        )  # fmt: skip


@kernel
def residual(A, c, t, g, u):
    """u = c - (A - diag t) g, touching only the rows where g is not zero."""
    p = c.shape[0]
    for j in range(p):
        u[j] = c[j]
    for j in range(p):
        if g[j] != 0.0:
            add_row(u, -g[j], A, j, p)
            u[j] += t[j] * g[j]


@kernel
def slope_errors(terms, g1, eps):
    """Errors of u = c - Q g and of g'Qg where sums have `terms` terms and |g|_1 = g1.

    Entries of Q and c are at most one; those of the data are known up to eps. With eps, the same
    comes out whoever sums up the data, and in whatever order (theory, rounding).
    """
    rounding = terms * UNIT_ROUNDOFF
    error = rounding * (1.0 + 2.0 * g1) + eps * (1.0 + g1)
    return error, g1 * (error + rounding * (4.0 + 4.0 * g1))


@kernel
def slope_rows(A, c, t, eps, rows, duals, u, quadratics, errors, lost):
    """Slopes of the nodes `rows`, g'Qg = g'(c - u), and the errors of both."""
    for i in range(len(rows)):
        row, g = rows[i], duals[i]
        residual(A, c, t, g, u[row])
        nonzeros = 0
        g1 = 0.0
        quadratic = 0.0
        for j in range(c.shape[0]):
            if g[j] != 0.0:
                nonzeros += 1
                g1 += abs(g[j])
                quadratic += g[j] * (c[j] - u[row, j])
        quadratics[row] = quadratic
        errors[row], lost[row] = slope_errors(nonzeros + 6, g1, eps)


class _Systems:
    """By inverses."""

    def __init__(self, A: np.ndarray, c: np.ndarray, t: np.ndarray) -> None:
        self.A, self.c, self.t = A, c, t

    @cached_property
    def inverse(self) -> np.ndarray:
        return np.linalg.inv(self.A)

    @cached_property
    def Q(self) -> np.ndarray:
        return self.A - np.diag(self.t)

    def product(self, rows: np.ndarray) -> np.ndarray:
        return rows @ self.Q

    def eigenvalues(self) -> np.ndarray:
        return np.linalg.eigvalsh(self.Q)

    def shift(self, shift: float) -> None:
        self.shifted = np.linalg.inv(self.Q + shift * np.eye(len(self.Q)))

    def solve(self, rows: np.ndarray) -> np.ndarray:
        return rows @ self.shifted

    def ridge(self, state: np.ndarray) -> np.ndarray:
        # From the inverse with all features (Schur complement).
        full = self.inverse @ self.c
        out = np.flatnonzero(state == OUT)
        block = self.inverse[np.ix_(out, out)]
        solution = full - self.inverse[:, out] @ np.linalg.solve(block, full[out])
        solution[out] = 0.0
        return solution
