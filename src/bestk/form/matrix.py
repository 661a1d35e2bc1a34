"""The matrix A of a standard form: stored, or known by its rows where it would be too large.

Both say what the search asks of A: some of its rows, blocks of it, sums of its rows. With n rows of
data and p features, stored it takes p^2 numbers, by rows n p.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

# By rows only from so many features on, and if they are so many times the rows of data.
FEWEST_WIDE, WIDE_FROM = 200, 1.5


def is_wide(n: int, p: int) -> bool:
    """Whether p x p products of n rows cost more than working with the rows."""
    return p >= FEWEST_WIDE and p >= WIDE_FROM * n


class Operator(Protocol):
    """A symmetric p x p matrix with unit diagonal."""

    @property
    def p(self) -> int: ...

    def rows(self, features: np.ndarray) -> np.ndarray:
        """A[features]"""

    def block(self, features: np.ndarray) -> np.ndarray:
        """A[features][:, features]"""

    def sums(self, supports: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        """Rows b A for vectors b that have the entries `coefs` at `supports`."""

    def restricted(self, keep: np.ndarray) -> "Operator":
        """The same with fewer features."""

    def stored(self, keep: np.ndarray) -> "Stored":
        """The same with fewer features, as an array however large it is."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A as an array."""

    A: np.ndarray = field(repr=False)

    @property
    def p(self) -> int:
        return len(self.A)

    def rows(self, features: np.ndarray) -> np.ndarray:
        return self.A[features]

    def block(self, features: np.ndarray) -> np.ndarray:
        return self.A[np.ix_(features, features)]

    def sums(self, supports: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        total = np.zeros((len(supports), self.p))
        for features, values in zip(supports.T, coefs.T, strict=True):
            total += values[:, None] * self.A[features]
        return total

    def stored(self, keep: np.ndarray) -> "Stored":
        return Stored(np.ascontiguousarray(self.block(keep)))

    restricted = stored


@dataclass(frozen=True, eq=False)
class ByRows:
    """A = Z Z' + diag(ridge), Z (p, n): the features in units of the form, one after the other."""

    Z: np.ndarray = field(repr=False)
    ridge: np.ndarray = field(repr=False)

    @property
    def p(self) -> int:
        return len(self.Z)

    @property
    def n(self) -> int:
        return self.Z.shape[1]

    def rows(self, features: np.ndarray) -> np.ndarray:
        rows = self.Z[features] @ self.Z.T
        rows[np.arange(len(features)), features] = 1.0
        return rows

    def block(self, features: np.ndarray) -> np.ndarray:
        chosen = self.Z[features]
        block = chosen @ chosen.T
        block += block.T  # one number for each pair
        block *= 0.5
        block[np.diag_indices(len(block))] = 1.0
        return block

    def sums(self, supports: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        total = np.zeros((len(supports), self.n))
        for features, values in zip(supports.T, coefs.T, strict=True):
            total += values[:, None] * self.Z[features]
        result = total @ self.Z.T
        nodes = np.arange(len(supports))
        for features, values in zip(supports.T, coefs.T, strict=True):
            result[nodes, features] += values * self.ridge[features]
        return result

    def stored(self, keep: np.ndarray) -> Stored:
        return Stored(self.block(keep))

    def restricted(self, keep: np.ndarray) -> Operator:
        wide = is_wide(self.n, len(keep))
        return ByRows(self.Z[keep], self.ridge[keep]) if wide else self.stored(keep)
