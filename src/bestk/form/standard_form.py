"""The standard form of a problem: unit diagonal, unit y'y, no useless features."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import qr

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.threads import each_on_threads
from bestk.base.tuning import tuning
from bestk.form.by_rows import MatrixByRows
from bestk.form.dense import DenseMatrix
from bestk.form.matrix import Matrix
from bestk.problem.moments import is_wide
from bestk.problem.regression import Regression


@dataclass(frozen=True, kw_only=True, eq=False)
class StandardForm:
    """``min 1 - 2 c'b + b'A b``, ``lo <= b <= hi``, with ``A_jj = 1`` (theory: form).

    The ridge penalty is part of A, the ``matrix``. Feature i of the form is feature ``features[i]``
    of the problem, with ``b_problem = b_form * scale`` and objective_problem = yy * objective_form.
    Monomials reach 1e8 and more: without this scaling an eigenvalue of the Gram matrix is noise.
    """

    problem: Regression = field(repr=False)
    features: np.ndarray
    matrix: Matrix = field(repr=False)
    c: np.ndarray = field(repr=False)
    lo: np.ndarray = field(repr=False)
    hi: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    eps: float
    # Positions in `problem` of features that were found to depend on others up to rounding.
    dependent: set[int] = field(default_factory=set, repr=False)

    @classmethod
    def of(cls, problem: Regression, features: np.ndarray) -> "StandardForm":
        """Form of the problem restricted to some features, none of them zero columns."""
        moments, ridge = problem.moments, problem.ridge[features]
        inverse = 1.0 / np.sqrt(moments.squares[features] + ridge)
        root = np.sqrt(problem.yy)
        scale = moments.units[features] * root * inverse
        matrix, rounding = _matrix_of(problem, features, inverse, ridge)
        return cls(
            problem=problem,
            features=features,
            matrix=matrix,
            c=moments.moment[features] * inverse / root,
            lo=problem.lower[features] / scale,
            hi=problem.upper[features] / scale,
            scale=scale,
            eps=moments.error + rounding,
        )

    def restricted(self, keep: np.ndarray) -> "StandardForm":
        """The same problem with fewer features."""
        return self._with(self.matrix.restricted(keep), keep)

    def around(self, features: np.ndarray) -> tuple["StandardForm", np.ndarray]:
        """(a form with a dense matrix that has these features, their places in it).

        `features` are distinct ones, or rows of supports.
        """
        matrix, kept, places = self.matrix.around(features)
        return self if matrix is self.matrix else self._with(matrix, kept), places

    def _with(self, matrix: Matrix, keep: np.ndarray) -> "StandardForm":
        return StandardForm(
            problem=self.problem,
            features=self.features[keep],
            matrix=matrix,
            c=self.c[keep],
            lo=self.lo[keep],
            hi=self.hi[keep],
            scale=self.scale[keep],
            eps=self.eps,
            dependent=self.dependent,
        )

    def within(self, problem: Regression) -> "StandardForm":
        """The form of a problem that differs in its box alone; the matrix is shared."""
        lower, upper = problem.lower[self.features], problem.upper[self.features]
        return replace(self, problem=problem, lo=lower / self.scale, hi=upper / self.scale)

    def copies(self) -> np.ndarray:
        """Pairs (copy, original): features that repeat an earlier one up to a factor and rounding.

        Without ridge and box a copy adds nothing to any model, but makes A singular, and with
        it every relaxation worthless.
        """
        original: dict[int, int] = {}
        for first, second in self.matrix.near_copies(1.0 - 4.0 * self.eps):
            known = first in original or second in original
            if not known and self._is_copy(first, second):
                original[second] = first
        return np.array(sorted(original.items()), dtype=np.intp).reshape(-1, 2)

    def _is_copy(self, first: int, second: int) -> bool:
        M, _ = self.problem.columns(self.features[[first, second]])
        a, b = M.T / np.linalg.norm(M, axis=0)[:, None]
        return bool(np.linalg.norm(a - np.sign(a @ b) * b) <= 1e-14)

    @property
    def A(self) -> np.ndarray:
        """The matrix as an array; an error where it would be too large."""
        return self.matrix.array

    @property
    def p(self) -> int:
        return len(self.c)

    @cached_property
    def is_boxed(self) -> bool:
        return bool(np.isfinite(self.lo).any() or np.isfinite(self.hi).any())

    @property
    def has_triangle(self) -> bool:
        """Whether there is a `triangle`, which need not be there yet."""
        rows = self.problem.rows
        return rows is not None and len(rows.y) * self.p**2 <= tuning().qr_multiplies

    @cached_property
    def triangle(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(R, z) with A = R'R and c = R'z to full accuracy, from the data; None without them.

        A Gram matrix forgets angles below sqrt(eps) between features; R keeps them down to eps.
        """
        if not self.has_triangle:
            return None
        M, rhs = self.problem.columns(self.features)
        root = np.sqrt(self.problem.yy)
        M = M * (self.scale / self.problem.moments.units[self.features] / root)
        (R,) = qr(np.column_stack([M, rhs / root]), mode="r")
        R = R[: self.p + 1]
        return np.ascontiguousarray(R[:, :-1]), np.ascontiguousarray(R[:, -1])


def _matrix_of(problem: Regression, features, inverse, ridge) -> tuple[Matrix, float]:
    """(A, rounding of its entries): the representation is chosen here."""
    if not problem.moments.is_partial:  # products are known to the error of the moments
        return _from_products(problem, features, inverse), 8 * UNIT_ROUNDOFF
    n = problem.n_samples or 0
    by_rows = _from_rows(problem, features, inverse, ridge)
    rounding = (n + 24) * UNIT_ROUNDOFF  # products are summed from the rows when they are needed
    if is_wide(n, len(features)):
        return by_rows, rounding
    return DenseMatrix(by_rows.submatrix(np.arange(len(features)))), rounding


def _from_products(problem: Regression, features, inverse) -> DenseMatrix:
    every = len(features) == problem.n_features
    G = problem.moments.gram if every else problem.moments.gram[np.ix_(features, features)]
    A = np.empty_like(G, order="C")
    step = tuning().scaled_rows

    def scale(start: int) -> None:
        rows = slice(start, start + step)
        # One factor per entry keeps A exactly symmetric.
        np.multiply(G[rows], inverse[rows, None] * inverse, out=A[rows])

    each_on_threads(scale, range(0, len(G), step))
    A[np.diag_indices(len(A))] = 1.0
    return DenseMatrix(A)


def _from_rows(problem: Regression, features, inverse, ridge) -> MatrixByRows:
    Z = np.empty((len(features), problem.n_samples or 0))
    step = tuning().scaled_rows
    for start in range(0, len(features), step):
        part = slice(start, start + step)
        Z[part] = (problem.rows_of(features[part]) * inverse[part]).T
    return MatrixByRows(Z, ridge * inverse**2)
