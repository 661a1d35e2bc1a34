"""The matrix A of the evidence: stored, or by columns of data where it would be too large.

With n rows of data and p features, stored it takes p^2 numbers, by columns n p. Whoever uses it
need not know which: all entries that are given out are known up to the evidence's ``eps``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numba import njit

from bestk.verification.limits import limits

Product = Callable[[np.ndarray], np.ndarray]


def is_wide(n: int, p: int) -> bool:
    """Whether p x p products of n rows cost more than the rows themselves."""
    return p >= limits().fewest_wide and p >= limits().wide_from * n


class Matrix(Protocol):
    """A symmetric matrix with unit diagonal. Positions are unique, in any order.

    A term of a `product` goes through ``n_terms`` more roundings than the vector has nonzeros,
    with entries of A that are at most one. Blocks have up to ``largest`` features.
    """

    @property
    def n_terms(self) -> int: ...

    @property
    def largest(self) -> int: ...

    def block(self, positions: np.ndarray) -> np.ndarray:
        """A new array A[positions][:, positions]"""

    def blocks(self, supports: np.ndarray) -> np.ndarray:
        """The block of each row of supports."""

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """A[rows][:, columns], no feature in both"""

    def restricted(self, positions: np.ndarray) -> "Matrix":
        """The same with fewer features."""

    def penalty(self, positions: np.ndarray) -> np.ndarray | None:
        """Charges t that leave A - diag(t) positive semidefinite by construction, if any are."""

    def product(self, used: np.ndarray, G: np.ndarray, t: np.ndarray) -> Product:
        """(A - diag t) g for vectors with entries G (rows) at `used`, t likewise.

        A function that gives the entries at any positions.
        """


@dataclass(frozen=True, eq=False)
class Stored:
    """A as an array."""

    A: np.ndarray = field(repr=False)

    @property
    def n_terms(self) -> int:
        return 0

    @property
    def largest(self) -> int:
        return len(self.A)

    def block(self, positions: np.ndarray) -> np.ndarray:
        return _submatrix(self.A, positions)

    def blocks(self, supports: np.ndarray) -> np.ndarray:
        return self.A[supports[:, :, None], supports[:, None, :]]

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.A[np.ix_(rows, columns)]

    def restricted(self, positions: np.ndarray) -> "Stored":
        return Stored(self.block(positions))

    def penalty(self, positions: np.ndarray) -> np.ndarray | None:
        return None

    def product(self, used: np.ndarray, G: np.ndarray, t: np.ndarray) -> Product:
        def at(where: np.ndarray) -> np.ndarray:
            rows = G @ self.A[np.ix_(used, where)]
            return _with_diagonal(rows, where, used, -t * G)

        return at


@dataclass(frozen=True, eq=False)
class ByColumns:
    """A = Z Z' + diag(ridge), Z (p, n): the columns of data in units of the form.

    Both are exact as they are: A is the matrix of these numbers, and the unknown of the evidence is
    how far it may be from that of the data. Products with at most n + 2 roundings are off by
    gamma_(n + 2) |z_i||z_j|, where |z_j| <= 1 up to rounding.
    """

    Z: np.ndarray = field(repr=False)
    ridge: np.ndarray = field(repr=False)

    @property
    def n_terms(self) -> int:
        """Z'g is off by m roundings of |g|_1, then Z(Z'g) by n.

        Blocks, whose differences to diagonal charges may be proven semidefinite, by n more.
        """
        return 2 * self.Z.shape[1] + 16

    @property
    def largest(self) -> int:
        return max(limits().formed_features, int(np.sqrt(limits().formed_share * self.Z.size)))

    def block(self, positions: np.ndarray) -> np.ndarray:
        columns = self.Z[positions]
        block = columns @ columns.T
        _mirror(block)
        block[np.diag_indices(len(block))] = 1.0
        return block

    def blocks(self, supports: np.ndarray) -> np.ndarray:
        count, k = supports.shape
        found = np.empty((count, k, k))
        step = max(1, limits().gathered_entries // (k * self.Z.shape[1] + 1))
        for start in range(0, count, step):
            columns = self.Z[supports[start : start + step]]
            np.matmul(columns, columns.transpose(0, 2, 1), out=found[start : start + step])
        for block in found:
            _mirror(block)
        found[:, range(k), range(k)] = 1.0
        return found

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        left, found = self.Z[rows], np.empty((len(rows), len(columns)))
        step = max(1, limits().gathered_entries // (self.Z.shape[1] + 1))
        for start in range(0, len(columns), step):
            part = slice(start, start + step)
            found[:, part] = left @ self.Z[columns[part]].T
        return found

    def restricted(self, positions: np.ndarray) -> "ByColumns":
        return ByColumns(self.Z[positions], self.ridge[positions])

    def penalty(self, positions: np.ndarray) -> np.ndarray | None:
        return self.ridge[positions]

    def product(self, used: np.ndarray, G: np.ndarray, t: np.ndarray) -> Product:
        fitted, own = G @ self.Z[used], (self.ridge[used] - t) * G

        def at(where: np.ndarray) -> np.ndarray:
            rows = fitted @ _taken(self.Z, where).T
            return _with_diagonal(rows, where, used, own)

        return at


def _with_diagonal(rows, where, used, own) -> np.ndarray:
    """Add to rows, at the positions `where`, entries that stand at `used`."""
    _, there, here = np.intersect1d(where, used, assume_unique=True, return_indices=True)
    rows[:, there] += own[:, here]
    return rows


def _taken(Z: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Z[where], not copied where that is a range."""
    if len(where) and (np.diff(where) == 1).all():
        return Z[where[0] : where[-1] + 1]
    return Z[where]


@njit(cache=True, nogil=True, error_model="numpy")
def _mirror(block):
    """One number for each pair, however the products were summed up."""
    for a in range(len(block)):
        for b in range(a):
            block[a, b] = block[b, a]


@njit(cache=True, nogil=True, error_model="numpy")
def _submatrix(A, positions):
    m = len(positions)
    block = np.empty((m, m))
    for a in range(m):
        row = A[positions[a]]
        for b in range(m):
            block[a, b] = row[positions[b]]
    return block
