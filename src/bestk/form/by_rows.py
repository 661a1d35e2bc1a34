"""The matrix A by the rows of data, where there are many more features than rows.

A = Z Z' + diag(ridge), Z (p, n). Products with A go through the rows, systems with it have as many
unknowns as there are rows (Woodbury), and relaxations are solved over a core of candidates.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bestk.base.constants import OUT
from bestk.base.tuning import tuning
from bestk.form.dense import DenseMatrix, slope_errors
from bestk.form.matrix import CAUTION, Around, Core, Matrix, Slopes, Systems
from bestk.form.on_device import OutOfMemory, device_for_products
from bestk.problem.moments import is_wide

# Times the error of the data by which the penalty may be smaller than it is computed.
_RIDGE_MARGIN = 64.0


@dataclass(frozen=True, eq=False)
class MatrixByRows:
    """A = Z Z' + diag(ridge); see :class:`bestk.form.matrix.Matrix`.

    The rows of Z are the features in units of the form, one after the other.
    """

    Z: np.ndarray = field(repr=False)
    ridge: np.ndarray = field(repr=False)

    has_factors = False
    factor_multiplies = 0.0

    @property
    def p(self) -> int:
        return len(self.Z)

    @property
    def n(self) -> int:
        return self.Z.shape[1]

    @property
    def array(self) -> np.ndarray:
        raise ValueError("the matrix of a wide form is not stored as an array")

    def rows(self, features: np.ndarray) -> np.ndarray:
        rows = self.Z[features] @ self.Z.T
        rows[np.arange(len(features)), features] = 1.0
        return rows

    def submatrix(self, features: np.ndarray) -> np.ndarray:
        chosen = self.Z[features]
        products = chosen @ chosen.T
        products += products.T  # one number for each pair
        products *= 0.5
        products[np.diag_indices(len(products))] = 1.0
        return products

    def sums(self, supports: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        total = np.zeros((len(supports), self.n))
        for features, values in zip(supports.T, coefs.T, strict=True):
            total += values[:, None] * self.Z[features]
        result = total @ self.Z.T
        nodes = np.arange(len(supports))
        for features, values in zip(supports.T, coefs.T, strict=True):
            result[nodes, features] += values * self.ridge[features]
        return result

    def restricted(self, keep: np.ndarray) -> Matrix:
        if is_wide(self.n, len(keep)):
            return MatrixByRows(self.Z[keep], self.ridge[keep])
        return DenseMatrix(self.submatrix(keep))

    def around(self, features: np.ndarray) -> Around:
        kept, places = features, np.arange(len(features))
        if features.ndim > 1:
            kept, places = np.unique(features, return_inverse=True)
        return Around(DenseMatrix(self.submatrix(kept)), kept, places.reshape(features.shape))

    def near_copies(self, least: float) -> Iterator[tuple[int, int]]:
        """None: products of all pairs would have to be formed."""
        return iter(())

    def first_charges(self, error: float, in_box: bool) -> np.ndarray:
        """The ridge penalty's part of A, which needs no proof.

        It is a share of the diagonal that others may compute with other last digits.
        """
        return self.ridge * (1.0 - _RIDGE_MARGIN * error)

    def systems(self, c: np.ndarray, t: np.ndarray) -> Systems:
        return _Systems(self, c, t)

    def slopes(self, c: np.ndarray, t: np.ndarray, eps: float, states: np.ndarray) -> Slopes:
        return _Slopes(self, c, t, eps, states)

    def core(self, candidates: np.ndarray) -> Core:
        return _Candidates(self.Z, candidates)


class _Candidates:
    """Candidate features in the order in which they came, with the part of A between them."""

    is_whole = False

    def __init__(self, Z: np.ndarray, features: np.ndarray) -> None:
        self.Z = Z
        self.largest = max(tuning().core_many, int(np.sqrt(Z.size)))
        self._begin(features)

    def _begin(self, features: np.ndarray) -> None:
        self.A = np.empty((0, 0))
        self.features = np.zeros(0, dtype=np.intp)
        self._append(features)

    def _append(self, new: np.ndarray) -> None:
        first = len(self.features)
        self.features = np.concatenate([self.features, new])
        size = len(self.features)
        if size > len(self.A):
            old, room = self.A, min(max(2 * size, tuning().core_first), max(self.largest, size))
            self.A = np.zeros((room, room))
            self.A[:first, :first] = old[:first, :first]
        rows = self.Z[new] @ self.Z[self.features].T
        rows[np.arange(len(new)), np.arange(first, size)] = 1.0
        self.A[first:size, :size] = rows
        self.A[:first, first:size] = rows[:, :first].T
        self.listed = np.zeros(len(self.Z), dtype=bool)
        self.listed[self.features] = True

    def add(self, features: np.ndarray, needed: np.ndarray) -> None:
        wanted = np.union1d(features, needed)
        new = wanted[~self.listed[wanted]]
        if len(self.features) + len(new) > self.largest:
            self._begin(wanted)
        elif len(new):
            self._append(new)


class _Slopes:
    """Sums over the nonzeros of g, then over rows of data; one product for a batch of nodes."""

    is_rowwise = False

    @property
    def multiplies(self) -> float:
        return tuning().product_share * self.Z.size

    def __init__(self, matrix: MatrixByRows, c, t, eps: float, states: np.ndarray) -> None:
        self.matrix, self.c, self.t, self.eps = matrix, c, t, eps
        self.u = np.zeros(states.shape)
        self.quadratic, self.error, self.lost = np.zeros((3, len(states)))
        live = (states != OUT).any(axis=0)
        few = np.count_nonzero(live) < tuning().live_share * matrix.p
        self.live = np.flatnonzero(live) if few else slice(None)
        self.Z = matrix.Z[self.live]

    def set(self, rows: np.ndarray, duals: np.ndarray) -> None:
        matrix, t = self.matrix, self.t
        used = np.flatnonzero(duals.any(axis=0))
        g = duals[:, used]
        fitted = g @ matrix.Z[used]
        rest = (matrix.ridge[used] - t[used]) * g
        u = np.zeros((len(rows), matrix.p))
        u[:, self.live] = self.c[self.live] - self._products(fitted)
        u[:, used] -= rest
        self.u[rows] = u
        self.quadratic[rows] = (fitted * fitted).sum(axis=1) + (rest * g).sum(axis=1)
        # Columns are no longer than one, so the products of a sum are, too.
        g1, terms = np.abs(g).sum(axis=1), matrix.n + len(used) + 16
        for row, size in zip(rows, g1, strict=True):
            self.error[row], self.lost[row] = slope_errors(terms, size, CAUTION * self.eps)

    def _products(self, fitted: np.ndarray) -> np.ndarray:
        """With the live features; by a device those with all of them, as it has them all."""
        device = device_for_products(self.Z.size)
        if device is not None:
            with suppress(OutOfMemory):
                return device.times(fitted, self.matrix.Z)[:, self.live]
        return fitted @ self.Z.T


class _Systems:
    """By n x n factors."""

    def __init__(self, matrix: MatrixByRows, c: np.ndarray, t: np.ndarray) -> None:
        self.A, self.c, self.rest = matrix, c, matrix.ridge - t

    def product(self, rows: np.ndarray) -> np.ndarray:
        return (rows @ self.A.Z) @ self.A.Z.T + self.rest * rows

    def eigenvalues(self) -> np.ndarray:
        # Up to the rest, which is next to nothing; p - n more are zero.
        return np.linalg.eigvalsh(self.A.Z.T @ self.A.Z)

    def shift(self, shift: float) -> None:
        self.diagonal = self.rest + shift
        self.factor = cho_factor(_inner(self.A.Z, self.diagonal), lower=True)

    def solve(self, rows: np.ndarray) -> np.ndarray:
        return _solved(self.A.Z, self.diagonal, self.factor, rows)

    @cached_property
    def inner(self) -> np.ndarray:
        return _inner(self.A.Z, self.A.ridge)

    def ridge(self, state: np.ndarray) -> np.ndarray:
        """Zero where there is no penalty: then every fit is perfect, and there are many."""
        if not (self.A.ridge > 0.0).all():
            return np.zeros(self.A.p)
        Z, penalty, out = self.A.Z, self.A.ridge, state == OUT
        if 2 * np.count_nonzero(out) <= len(out):
            inner = self.inner - Z[out].T @ (Z[out] / penalty[out, None])
        else:  # little would be left of the difference
            inner = _inner(Z[~out], penalty[~out])
        c = np.where(out, 0.0, self.c)
        solution = _solved(Z, penalty, cho_factor(inner, lower=True), c)
        solution[out] = 0.0
        return solution


def _inner(Z: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    inner = Z.T @ (Z / diagonal[:, None])
    inner[np.diag_indices(len(inner))] += 1.0
    return inner


def _solved(Z, diagonal, factor, rows) -> np.ndarray:
    scaled = rows / diagonal
    return scaled - (cho_solve(factor, (scaled @ Z).T).T @ Z.T) / diagonal
