"""Sums of products of rows: all that a least-squares problem keeps of its data."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.tuning import tuning

# A centred column this small beside its mean, in units of rounding, is a constant.
_CONSTANT = 64
# Column norms outside this range would over- or underflow when squared.
_SAFE_SQUARES = (1e-200, 1e200)


def is_wide(n: int, p: int) -> bool:
    """Whether p x p products of n rows cost more than working with the rows."""
    return p >= tuning().fewest_wide and p >= tuning().wide_from * n


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Weighted sums over rows of (x - shift), (y - y_shift) and of their products.

    Moments about one origin can be added and subtracted, so the rows outside a fold cost nothing
    once the whole and the fold are known; :meth:`centred` moves the origin to the mean. Columns of
    X are multiplied by ``units``, powers of two. ``error`` bounds the rounding of entry (i, j)
    relative to the root of the squares i and j, and so does it for the moment and y'y.

    Where p x p products would be too many, ``gram`` is its diagonal alone.
    """

    gram: np.ndarray = field(repr=False)
    moment: np.ndarray = field(repr=False)
    yy: float
    x_sum: np.ndarray = field(repr=False)
    y_sum: float
    weight: float
    n_rows: int | None
    shift: np.ndarray = field(repr=False)
    y_shift: float
    units: np.ndarray = field(repr=False)
    keep_sums: bool
    error: float = 0.0

    @classmethod
    def empty(
        cls, p: int, *, units: Any = None, means: Any = None, partial: bool = False
    ) -> "Moments":
        """No rows yet. Means (of X and of y, roughly) as origin if there is to be an intercept."""
        shift, y_shift = (np.zeros(p), 0.0) if means is None else means
        return cls(
            gram=np.zeros(p if partial else (p, p)),
            moment=np.zeros(p),
            yy=0.0,
            x_sum=np.zeros(p),
            y_sum=0.0,
            weight=0.0,
            n_rows=0,
            shift=shift,
            y_shift=y_shift,
            units=np.ones(p) if units is None else units,
            keep_sums=means is not None,
        )

    @property
    def n_features(self) -> int:
        return len(self.shift)

    @property
    def is_partial(self) -> bool:
        """Whether products of different columns are left out."""
        return self.gram.ndim == 1

    @property
    def is_small(self) -> bool:
        """Whether one BLAS thread is as fast as a pool on what a search makes of these sums."""
        if self.is_partial:
            return (self.n_rows or 0) * self.n_features <= tuning().small_wide_entries
        return self.n_features <= tuning().small_features

    @property
    def squares(self) -> np.ndarray:
        """Sums of squares of the columns."""
        return self.gram if self.is_partial else self.gram.diagonal()

    @property
    def extreme(self) -> np.ndarray:
        """Mask of columns that are zero, not finite, or too large or small to be squared."""
        return ~((self.squares > _SAFE_SQUARES[0]) & (self.squares < _SAFE_SQUARES[1]))

    @property
    def is_safe(self) -> bool:
        return bool(np.isfinite(self.yy) and not self.extreme.any())

    def of_rows(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> "Moments":
        """Moments of these rows alone, about the shift and in the units of `self`."""
        p = len(self.shift)
        gram, moment, yy, x_sum, y_sum = np.zeros(0), np.zeros(p), 0.0, np.zeros(p), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for chunk, target, root in self._chunks(X, y, weight):
                product = self._products(chunk)
                gram = product if len(gram) == 0 else np.add(gram, product, out=gram)
                moment += chunk.T @ target
                yy += float(target @ target)
                if self.keep_sums:
                    x_sum += root @ chunk
                    y_sum += float(root @ target)
        return replace(
            self,
            gram=gram if len(gram) else np.zeros_like(self.gram),
            moment=moment,
            yy=yy,
            x_sum=x_sum,
            y_sum=y_sum,
            weight=float(X.shape[0] if weight is None else weight.sum()),
            n_rows=X.shape[0],
            error=(X.shape[0] + 12) * UNIT_ROUNDOFF,
        )

    def with_target(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> "Moments":
        """Moments of the same rows X and weights with another y; the Gram matrix is shared."""
        if self.keep_sums:
            with np.errstate(over="ignore", invalid="ignore"):
                mean = float(np.average(y, weights=weight) if self.weight > 0 else 0.0)
            origin = replace(self, y_shift=mean)
        else:
            origin = self
        moment, yy, y_sum = np.zeros(self.n_features), 0.0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for chunk, target, root in origin._chunks(X, y, weight):
                moment += chunk.T @ target
                yy += float(target @ target)
                y_sum += float(root @ target)
        moment *= self.squares > 0.0
        return replace(origin, moment=moment, yy=yy, y_sum=y_sum if self.keep_sums else 0.0)

    def mean_squared_error(self, coef: np.ndarray, intercept: float) -> float:
        """Weighted mean of (y - intercept - x'coef)^2 over the rows of these moments."""
        assert not self.is_partial
        b = coef / self.units
        offset = self.y_shift - self.shift @ coef - intercept
        total = self.yy - 2.0 * self.moment @ b + b @ self.gram @ b
        total += 2.0 * offset * (self.y_sum - self.x_sum @ b) + self.weight * offset**2
        return max(float(total), 0.0) / self.weight

    def __add__(self, other: "Moments") -> "Moments":
        return self._combined(other, np.add)

    def __sub__(self, other: "Moments") -> "Moments":
        return self._combined(other, np.subtract)._lost_digits(self)

    def centred(self) -> "Moments":
        """The same moments about the mean of their rows; constant columns become zeros."""
        if self.weight <= 0:
            return self
        mean, y_mean = self.x_sum / self.weight, self.y_sum / self.weight
        moved = replace(
            self,
            gram=self.gram - self.weight * self._products(mean[None]) if mean.any() else self.gram,
            moment=self.moment - self.weight * y_mean * mean,
            yy=self.yy - self.weight * y_mean**2,
            x_sum=np.zeros_like(mean),
            y_sum=0.0,
            shift=self.shift + mean / self.units,
            y_shift=self.y_shift + y_mean,
            error=self.error + 4 * UNIT_ROUNDOFF,
        )
        return moved._lost_digits(self)

    def _combined(self, other: "Moments", operation: np.ufunc) -> "Moments":
        sums = ("gram", "moment", "yy", "x_sum", "y_sum", "weight", "n_rows")
        combined = {name: operation(getattr(self, name), getattr(other, name)) for name in sums}
        combined = {name: v if np.ndim(v) else v.item() for name, v in combined.items()}
        return replace(self, **combined, error=max(self.error, other.error) + UNIT_ROUNDOFF)

    def _lost_digits(self, before: "Moments") -> "Moments":
        """Account for cancellation: constants become zeros, the error grows for the rest.

        Entries were computed to `error` relative to the squares before, which may be much larger;
        the error is infinite where nothing is left of a column that need not be constant.
        """
        origin = np.append(self.shift * self.units, self.y_shift)
        old = np.append(before.squares, before.yy)
        new = np.append(self.squares, self.yy)
        noise = self.weight * (_CONSTANT * UNIT_ROUNDOFF * origin) ** 2
        constant = (old == 0.0) | (np.maximum(new, self.error * old) <= noise)
        alive, y_alive = ~constant[:-1], not constant[-1]
        gram, moment = self.gram, self.moment
        if constant.any():
            gram = gram * (alive if self.is_partial else alive * alive[:, None])
            moment = moment * (alive if y_alive else 0.0)
        # The products of two sums that centring subtracts carry the error of either.
        error = 4.0 * self.error * old[~constant] / np.maximum(new[~constant], 1e-300)
        error = float(error.max(initial=self.error))
        return replace(
            self,
            gram=gram,
            moment=moment,
            yy=self.yy if y_alive else 0.0,
            error=error if error < 0.5 else np.inf,
        )

    def _products(self, chunk: np.ndarray) -> np.ndarray:
        """Sums of products of rows, or of squares alone."""
        return np.einsum("ij,ij->j", chunk, chunk) if self.is_partial else chunk.T @ chunk

    def _chunks(self, X, y, weight) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Rows as float64, shifted and weighted, in chunks small enough to convert on the fly.

        A chunk is overwritten by the next one.
        """
        is_scaled = bool((self.units != 1.0).any())
        plain = X.dtype == np.float64 and weight is None and not (self.keep_sums or is_scaled)
        row_bytes = 8 * max(X.shape[1], 1)
        cached = tuning().cached_bytes // row_bytes
        is_cached = cached >= tuning().fewest_cached_rows
        step = max(1, cached if is_cached else tuning().chunk_bytes // row_bytes)
        if plain and not (X.flags.c_contiguous and is_cached):
            step = max(X.shape[0], 1)
        room = np.empty((0 if plain else min(step, X.shape[0]), X.shape[1]))
        for start in range(0, X.shape[0], step):
            chunk = X[start : start + step]
            target = np.asarray(y[start : start + step], dtype=np.float64)
            root = np.ones(len(chunk))
            if not plain:
                chunk = np.subtract(chunk, self.shift, out=room[: len(chunk)], dtype=np.float64)
                target = target - self.y_shift
                if is_scaled:
                    chunk *= self.units
                if weight is not None:
                    root = np.sqrt(weight[start : start + step])
                    chunk *= root[:, None]
                    target = target * root
            yield chunk, target, root
