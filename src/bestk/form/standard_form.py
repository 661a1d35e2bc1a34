"""The standard form of a problem: unit diagonal, unit y'y, no useless features."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import qr

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.form.matrix import ByRows, Operator, Stored, is_wide
from bestk.problem.regression import Problem

# A QR factorisation of the data is made, when near-collinear supports need it, up to this size.
_QR_FLOPS = 1e11
# Rows, or columns, that are scaled at a time.
_ROWS = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class StandardForm:
    """``min 1 - 2 c'b + b'A b``, ``lo <= b <= hi``, with ``A_jj = 1`` (theory eq. 1).

    The ridge penalty is part of A. Feature i of the form is feature ``features[i]`` of the problem,
    with ``b_problem = b_form * unit`` and objective_problem = yy * objective_form. Monomials reach
    1e8 and more: without this scaling an eigenvalue of the Gram matrix is noise.

    ``operator`` is A. A form that ``is_wide`` has it by rows, and no array ``A``.
    """

    problem: Problem = field(repr=False)
    features: np.ndarray
    operator: Operator = field(repr=False)
    c: np.ndarray = field(repr=False)
    lo: np.ndarray = field(repr=False)
    hi: np.ndarray = field(repr=False)
    unit: np.ndarray = field(repr=False)
    eps: float
    # Positions in `problem` of features that were found to depend on others up to rounding.
    dependent: set[int] = field(default_factory=set, repr=False)

    @classmethod
    def of(cls, problem: Problem, features: np.ndarray) -> "StandardForm":
        """Form of the problem restricted to some features, none of them zero columns."""
        ridge = problem.ridge[features]
        inverse = 1.0 / np.sqrt(problem.squares[features] + ridge)
        root = np.sqrt(problem.yy)
        unit = problem.units[features] * root * inverse
        n = problem.n_samples or 0
        wide = problem.is_partial and is_wide(n, len(features))
        make = _by_rows if wide else _stored
        # Products are known to the problem's error, or summed from the rows when they are needed.
        rounding = (n + 24 if problem.is_partial else 8) * UNIT_ROUNDOFF
        return cls(
            problem=problem,
            features=features,
            operator=make(problem, features, inverse, ridge),
            c=problem.moment[features] * inverse / root,
            lo=problem.lower[features] / unit,
            hi=problem.upper[features] / unit,
            unit=unit,
            eps=problem.error + rounding,
        )

    def restricted(self, keep: np.ndarray, *, stored: bool = False) -> "StandardForm":
        """The same problem with fewer features; its matrix as an array, if that is wanted."""
        operator = self.operator.stored(keep) if stored else self.operator.restricted(keep)
        return StandardForm(
            problem=self.problem,
            features=self.features[keep],
            operator=operator,
            c=self.c[keep],
            lo=self.lo[keep],
            hi=self.hi[keep],
            unit=self.unit[keep],
            eps=self.eps,
            dependent=self.dependent,
        )

    def around(self, supports: np.ndarray) -> tuple["StandardForm", np.ndarray]:
        """(a form with a stored matrix, the same supports in it); supports are rows of indices."""
        if not self.is_wide:
            return self, np.ascontiguousarray(supports, dtype=np.int64)
        features, place = np.unique(supports, return_inverse=True)
        return self.restricted(features, stored=True), place.reshape(supports.shape)

    def within(self, problem: Problem) -> "StandardForm":
        """The form of a problem that differs in its bounds alone; the matrix is shared."""
        lower, upper = problem.lower[self.features], problem.upper[self.features]
        return replace(self, problem=problem, lo=lower / self.unit, hi=upper / self.unit)

    def copies(self) -> np.ndarray:
        """Pairs (copy, original): features that repeat an earlier one up to a factor and rounding.

        Without ridge and bounds a copy adds nothing to any model, but makes A singular, and with
        it every relaxation worthless.
        """
        original: dict[int, int] = {}
        for start in range(0, self.p, 256):
            rows = self.A[start : start + 256]
            i, j = np.nonzero(np.abs(rows) >= 1.0 - 4.0 * self.eps)
            for first, second in zip((i + start).tolist(), j.tolist(), strict=True):
                known = first in original or second in original
                if first < second and not known and self._is_copy(first, second):
                    original[second] = first
        return np.array(sorted(original.items()), dtype=np.intp).reshape(-1, 2)

    def _is_copy(self, first: int, second: int) -> bool:
        M, _ = self.problem.columns(self.features[[first, second]])
        a, b = M.T / np.linalg.norm(M, axis=0)[:, None]
        return bool(np.linalg.norm(a - np.sign(a @ b) * b) <= 1e-14)

    @property
    def A(self) -> np.ndarray:
        """The matrix as an array; a wide form has none."""
        assert isinstance(self.operator, Stored)
        return self.operator.A

    @property
    def is_wide(self) -> bool:
        return isinstance(self.operator, ByRows)

    @property
    def p(self) -> int:
        return len(self.c)

    @cached_property
    def is_boxed(self) -> bool:
        return bool(np.isfinite(self.lo).any() or np.isfinite(self.hi).any())

    @cached_property
    def triangle(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(R, z) with A = R'R and c = R'z to full accuracy, from the data; None without them.

        A Gram matrix forgets angles below sqrt(eps) between features; R keeps them down to eps.
        """
        rows = self.problem._data
        if rows is None or len(rows.y) * self.p**2 > _QR_FLOPS:
            return None
        M, rhs = self.problem.columns(self.features)
        root = np.sqrt(self.problem.yy)
        M = M * (self.unit / self.problem.units[self.features] / root)
        (R,) = qr(np.column_stack([M, rhs / root]), mode="r")
        R = R[: self.p + 1]
        return np.ascontiguousarray(R[:, :-1]), np.ascontiguousarray(R[:, -1])


def _stored(problem: Problem, features, inverse, ridge) -> Stored:
    if problem.is_partial:
        return Stored(_by_rows(problem, features, inverse, ridge).block(np.arange(len(features))))
    every = len(features) == problem.n_features
    G = problem.gram if every else problem.gram[np.ix_(features, features)]
    A = np.empty_like(G, order="C")
    for start in range(0, len(G), _ROWS):
        rows = slice(start, start + _ROWS)
        # One factor per entry keeps A exactly symmetric.
        np.multiply(G[rows], inverse[rows, None] * inverse, out=A[rows])
    A[np.diag_indices(len(A))] = 1.0
    return Stored(A)


def _by_rows(problem: Problem, features, inverse, ridge) -> ByRows:
    Z = np.empty((len(features), problem.n_samples or 0))
    for start in range(0, len(features), _ROWS):
        part = slice(start, start + _ROWS)
        Z[part] = (problem.rows_of(features[part]) * inverse[part]).T
    return ByRows(Z, ridge * inverse**2)
