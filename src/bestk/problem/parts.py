"""Sums of products of parts of a table, made wherever the parts lie, and joined two at a time.

Every part is summed up about its own mean, so no part has to wait for another, and none is far
from its origin. Two of them meet about their common mean: squares only grow on the way, so no
digits are lost (theory: parts).
"""

from dataclasses import dataclass, field, replace

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.tuning import tuning
from bestk.problem.moments import Moments
from bestk.problem.rows import Rows, origin_of
from bestk.problem.triangles import Triangle

# Roundings of an entry when the origin of its sum is moved, and when two sums are added.
_MOVING = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """What is kept of some rows: sums about their mean, and a triangle if there are few features.

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
        moments = origin_of(X, y, weight, fit_intercept).of_rows(X, y, weight)
        triangle = None
        if with_triangle and X.shape[1] <= tuning().triangle_features:
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

    def rows(self) -> Rows | None:
        """A few rows that stand for all of them."""
        if self.triangle is None:
            return None
        return Rows(*self.triangle.rows(self.moments.keep_sums), None, stand_in=True)
