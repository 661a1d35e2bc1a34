"""Sums of products of parts of a table, made wherever the parts lie, and joined two at a time.

Every part is summed up about a mean of its own, so no part has to wait for another, and none is
far from its origin. Two of them meet about their common mean: squares hardly shrink on the way, so
few digits are lost (theory: parts).
"""

from dataclasses import dataclass, field, replace

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.problem.moments import Moments
from bestk.problem.rows import Rows, origin_of, stand_in_of
from bestk.problem.triangles import Triangle

# Rows whose mean is close to that of a part.
_ROWS_FOR_ORIGIN = 1024
# Smallest eigenvalue of correlations below which they tell too little: of angles, its root.
_NEARLY_DEPENDENT = 1e-6
# Roundings of an entry when the origin of its sum is moved, and when two sums are added.
_MOVING = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """What is kept of some rows: sums about their mean, and a triangle if it is wanted.

    Entry (i, j) of the sums is exact up to ``error * reach[i] * reach[j]``; the last entry of
    ``reach`` is that of y. It is the root of the squares of a column, where no origin was moved.
    """

    moments: Moments = field(repr=False)
    reach: np.ndarray = field(repr=False)
    error: float
    triangle: Triangle | None = field(repr=False, default=None)

    @classmethod
    def of_rows(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None,
        fit_intercept: bool,
        *,
        with_triangle: bool = False,
    ) -> "Part":
        # A few rows that weigh much may be anywhere.
        step = 1 if weight is not None else max(1, len(y) // _ROWS_FOR_ORIGIN)
        origin = origin_of(X[::step], y[::step], weight, fit_intercept)
        moments = origin.of_rows(X, y, weight)
        triangle = None
        if with_triangle:
            rows = X.astype(np.float64) - moments.shift, y.astype(np.float64) - moments.y_shift
            triangle = Triangle.empty(X.shape[1]).with_rows(*rows, weight)
        return cls(
            moments=moments,
            reach=np.sqrt(np.append(moments.squares, moments.yy)),
            error=moments.error,
            triangle=triangle,
        )

    def __add__(self, other: "Part") -> "Part":
        """Both parts, about their common mean."""
        ours, theirs = self, other
        if self.moments.keep_sums:
            a, b = self.moments, other.moments
            share = b.weight / ((a.weight + b.weight) or 1.0)
            shift = a.shift + share * (b.shift - a.shift)
            y_shift = a.y_shift + share * (b.y_shift - a.y_shift)
            ours, theirs = self.about(shift, y_shift), other.about(shift, y_shift)
        triangle = None
        if ours.triangle is not None and theirs.triangle is not None:
            triangle = ours.triangle + theirs.triangle
        return Part(
            moments=ours.moments + theirs.moments,
            reach=np.hypot(ours.reach, theirs.reach),
            error=max(ours.error, theirs.error) + UNIT_ROUNDOFF,
            triangle=triangle,
        )

    def about(self, shift: np.ndarray, y_shift: float) -> "Part":
        """The same sums about another origin."""
        m = self.moments
        # Origins are numbers as they are: their difference has one rounding.
        d, e = (m.shift - shift) * m.units, m.y_shift - y_shift
        with np.errstate(over="ignore", invalid="ignore"):
            cross = np.multiply.outer(m.x_sum + 0.5 * m.weight * d, d)
            moved = replace(
                m,
                gram=m.gram + cross + cross.T,
                moment=m.moment + m.x_sum * e + (m.y_sum + m.weight * e) * d,
                yy=m.yy + e * (2.0 * m.y_sum + m.weight * e),
                x_sum=m.x_sum + m.weight * d,
                y_sum=m.y_sum + m.weight * e,
                shift=shift,
                y_shift=y_shift,
            )
        steps = np.sqrt(m.weight) * np.abs(np.append(d, e))
        triangle = None
        if self.triangle is not None:
            triangle = self.triangle.moved(m.shift - shift, e)
        return Part(
            moments=moved,
            reach=self.reach + steps,
            error=self.error + _MOVING * UNIT_ROUNDOFF,
            triangle=triangle,
        )

    def sums(self) -> Moments:
        """The moments, with their error in the terms of :class:`Moments`."""
        m = self.moments
        squares = np.append(m.squares, m.yy)
        # Columns that are constant up to rounding have no say: they become zeros.
        origin = np.append(m.shift * m.units, m.y_shift)
        lives = squares > m.weight * (UNIT_ROUNDOFF * origin) ** 2
        ratio = np.square(self.reach[lives]) / squares[lives]
        error = self.error * float(ratio.max(initial=1.0))
        return replace(m, error=error if error < 0.5 else np.inf)

    @property
    def is_doubtful(self) -> bool:
        """Whether products of [X y] tell too little about it: it is nearly dependent, or few rows.

        What is decided here is how exact models are; no proof depends on it.
        """
        m = self.sums()
        m = m.centred() if m.keep_sums else m
        squares = np.append(m.squares, m.yy)
        products = np.block([[m.gram, m.moment[:, None]], [m.moment[None], np.array([[m.yy]])]])
        lives = squares > 0.0
        root = np.sqrt(squares[lives])
        correlations = products[np.ix_(lives, lives)] / np.multiply.outer(root, root)
        smallest = np.linalg.eigvalsh(correlations)[0] if lives.any() else 1.0
        return bool(smallest < _NEARLY_DEPENDENT)

    def rows(self) -> Rows | None:
        """A few rows that stand for all of them."""
        if self.triangle is None:
            return None
        return stand_in_of(self.triangle, self.moments.keep_sums)
