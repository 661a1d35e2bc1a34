"""The matrix A of a standard form, and the one place where its representation is chosen.

With n rows of data and p features it takes p^2 numbers as an array (``dense.py``), and n p by the
rows of data (``by_rows.py``). Everybody else asks for what is here and never which one it is.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from bestk.form.dense import DenseMatrix

# Times the error of the data that is allowed for: whoever checks a bound with an analysis of their
# own, perhaps a coarser one, should come to the same.
CAUTION = 4.0


class Matrix(Protocol):
    """A symmetric p x p matrix with unit diagonal."""

    @property
    def p(self) -> int: ...

    @property
    def array(self) -> np.ndarray:
        """A as an array; an error where it would be too large."""

    @property
    def has_factors(self) -> bool:
        """Whether A - diag(t) can be factored, so that splits can be improved."""

    @property
    def factor_multiplies(self) -> float:
        """Multiplications that finding and proving the first split takes."""

    def rows(self, features: np.ndarray) -> np.ndarray:
        """A[features]"""

    def submatrix(self, features: np.ndarray) -> np.ndarray:
        """A[features][:, features]"""

    def sums(self, supports: np.ndarray, coefs: np.ndarray) -> np.ndarray:
        """Rows b A for vectors b that have the entries `coefs` at `supports`."""

    def restricted(self, keep: np.ndarray) -> "Matrix":
        """The same with fewer features."""

    def around(self, features: np.ndarray) -> "Around":
        """A dense matrix that has these features: distinct ones, or rows of supports."""

    def near_copies(self, least: float) -> Iterator[tuple[int, int]]:
        """Pairs i < j with |A_ij| >= least, as far as they are cheap to find."""

    def first_charges(self, error: float, in_box: bool) -> np.ndarray:
        """A proven split to begin with (theory: split): t with A - diag(t) semidefinite.

        Entries of A are known up to `error`. Charges of a singular matrix may be slightly negative
        `in_box`, where such charges still bound something.
        """

    def systems(self, c: np.ndarray, t: np.ndarray) -> "Systems":
        """Linear systems with A and A - diag(t)."""

    def slopes(self, c: np.ndarray, t: np.ndarray, eps: float, states: np.ndarray) -> "Slopes":
        """Room for the slopes of nodes in these states."""

    def core(self, candidates: np.ndarray) -> "Core":
        """The features over which relaxations are solved: all of them, or these to begin with."""


class Around(NamedTuple):
    """A dense matrix over the features ``kept``; those asked for are at ``places`` in it."""

    matrix: "DenseMatrix"
    kept: np.ndarray
    places: np.ndarray


class Slopes(Protocol):
    """u = c - Q g of nodes (rows) and g'Qg, Q = A - diag(t), each with its error.

    Each entry of `u` is known up to `error` of its row, `quadratic` up to `lost`. Features that are
    OUT at all nodes may be left at zero.
    """

    u: np.ndarray
    quadratic: np.ndarray
    error: np.ndarray
    lost: np.ndarray

    @property
    def multiplies(self) -> float:
        """What the slopes of one node cost besides its relaxation, in multiplications."""

    @property
    def is_rowwise(self) -> bool:
        """Whether rows are computed one by one, so that threads may share them out."""

    def set(self, rows: np.ndarray, duals: np.ndarray) -> None:
        """Compute some rows from their dual vectors g."""


class Core(Protocol):
    """Features over which relaxations are solved, with their part of A.

    ``A`` may have room for more: its first rows and columns are those of ``features``.
    """

    A: np.ndarray
    features: np.ndarray
    listed: np.ndarray

    @property
    def is_whole(self) -> bool:
        """Whether no feature can be lacking."""

    def add(self, features: np.ndarray, needed: np.ndarray) -> None:
        """More candidates; once there are too many, only these and those `needed` stay."""


class Systems(Protocol):
    """Systems with A, and with Q = A - diag(t), for one right-hand side per row."""

    def product(self, rows: np.ndarray) -> np.ndarray:
        """rows @ Q"""

    def eigenvalues(self) -> np.ndarray:
        """Those of Q, ascending; some that are zero may be left out."""

    def shift(self, shift: float) -> None:
        """Prepare `solve` for Q + shift I."""

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """rows @ inverse of (Q + shift I)"""

    def ridge(self, state: np.ndarray) -> np.ndarray:
        """The minimiser of 1 - 2 c'b + b'A b over features that are not OUT."""
