"""From arrays and batches to what a problem keeps of them."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from bestk.base.device.dense import Dense
from bestk.base.fingerprint import DataDigest, rows_digest
from bestk.base.threads import blas_threads
from bestk.base.tuning import tuning
from bestk.base.validation import (
    as_matrix,
    as_vector,
    as_weights,
    names_of,
    require_distinct,
    require_finite,
    require_same_names,
    require_some_weight,
    rows_in,
)
from bestk.problem.moments import Moments, is_wide
from bestk.problem.sums_on_device import DeviceSums
from bestk.problem.triangles import Triangle

_SMALLEST_YY = 1e-300
# Rows whose mean is close to that of all: sums on a device begin from there.
_ROWS_FOR_ORIGIN = 8192


@dataclass(frozen=True, eq=False)
class Rows:
    """The data themselves, checked, kept by reference; or a few rows that stand for them.

    ``stand_in`` rows give every model the objective of the real ones, its intercept included. They
    are rounded as columns were that are longer by ``offset``, y last: by the distance of the means
    from where sums began.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    stand_in: bool = False
    offset: np.ndarray | None = None
    known_digest: str | None = None

    @cached_property
    def digest(self) -> str:
        return self.known_digest or rows_digest(self.X, self.y, self.weight)


def moments_of(X, y, weight, fit_intercept, *, partial: bool | None = None) -> Moments:
    """Moments of checked arrays in units that are safe to square, or an error that says why not.

    `partial` ones leave out products of different columns: by default, those of wide data.
    """
    return moments_and_digest(X, y, weight, fit_intercept, partial=partial)[0]


def moments_and_digest(
    X,
    y,
    weight,
    fit_intercept,
    *,
    partial: bool | None = None,
    dense: Dense | None = None,
    names: tuple[str, ...] | None = None,
) -> tuple[Moments, str | None]:
    """`moments_of`, summed up by `dense` if it is given; then the digest is known as well.

    `names` are those of the columns, for messages.
    """
    partial = is_wide(*X.shape) if partial is None else partial
    if dense is None or partial:
        origin = origin_of(X, y, weight, fit_intercept, partial=partial)
    else:  # some rows of the whole table tell where it is
        some = slice(None, None, max(1, len(y) // _ROWS_FOR_ORIGIN))
        origin = origin_of(X[some], y[some], None, fit_intercept)

    def sums_about(origin: Moments) -> tuple[Moments, str | None]:
        if dense is None or partial:
            return origin.of_rows(X, y, weight), None
        try:
            sums = DeviceSums(origin, dense)
            sums.add(X, y, weight)
            return sums.moments(), str(sums.digest)
        except MemoryError:
            text = "the device has too little memory for sums of products; the CPU makes them"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return origin.of_rows(X, y, weight), None

    moments, digest = sums_about(origin)
    if not moments.is_safe:
        require_finite("X", X, names)
        require_finite("y", y)
        units = _safe_units(X, moments.extreme)
        if (units != 1.0).any():
            moments, digest = sums_about(replace(origin, units=units))
    require_safe_target(moments, y, weight)
    return moments.centred() if fit_intercept else moments, digest


def require_safe_target(moments: Moments, y: np.ndarray, weight: np.ndarray | None) -> None:
    """Rows without weight do not count."""
    if not np.isfinite(moments.yy):
        require_finite("y", y)
        raise ValueError("y'y overflows: divide y by its largest absolute value")
    counts = y != moments.y_shift if weight is None else (y != moments.y_shift) & (weight > 0.0)
    if moments.yy < _SMALLEST_YY and np.any(counts):
        raise ValueError("y'y underflows: divide y by its largest absolute value")


class Batch(NamedTuple):
    """One of the batches of rows, checked."""

    number: int
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    names: tuple[str, ...] | None


def checked_batches(batches: Any) -> Iterator[Batch]:
    """The batches that have rows, checked one by one as they come."""
    p, first = None, None
    for i, (rows, target, weight) in enumerate(rows_in(batches)):
        X = as_matrix(f"X of batch {i}", rows)
        y = as_vector(f"y of batch {i}", target, length=X.shape[0], of="rows of X")
        weight = as_weights(weight, X.shape[0], f"weight of batch {i}")
        if len(y) == 0:
            continue
        p = p or X.shape[1]
        if X.shape[1] != p:
            raise ValueError(
                f"X of batch {i} has {X.shape[1]} columns, earlier batches have {p}; give all "
                "batches the same columns"
            )
        names = names_of(rows)
        require_distinct(names, f" in X of batch {i}")
        first = first or names
        require_same_names(
            f"X of batch {i}", names, first, "earlier batches", "give all batches the same columns"
        )
        yield Batch(i, X, y, weight, names)
    if p is None:
        raise ValueError(
            "batches must yield at least one pair (X, y) with rows, and there are no rows; an "
            "iterator that was used before is empty, so make a new one"
        )


def joined_if_wide(batches: Iterator[Batch]) -> tuple[Batch | None, Iterator[Batch]]:
    """(all rows in one batch, nothing) if they are wide, else (None, the batches as they were).

    Rows of wide data are fewer numbers than sums of their products, so they are kept.
    """
    kept: list[Batch] = []
    n = 0
    for batch in batches:
        n += len(batch.y)
        if not is_wide(n, batch.X.shape[1]):
            return None, chain(kept, [batch], batches)
        # Whoever makes the batches may use the same memory for all of them.
        kept.append(batch._replace(X=batch.X.copy(), y=batch.y.copy()))
    weights = [batch.weight for batch in kept]
    if any(weight is not None for weight in weights):
        ones = (np.ones(len(batch.y)) if batch.weight is None else batch.weight for batch in kept)
        weight = np.concatenate(list(ones))
    else:
        weight = None
    X, y = (np.concatenate([getattr(batch, name) for batch in kept]) for name in "Xy")
    return Batch(0, X, y, weight, kept[0].names), iter(())


def moments_of_batches(
    batches: Iterable[Batch],
    fit_intercept: bool,
    n_parts: int = 1,
    seed: int = 0,
    watch: Sequence[Callable[..., None]] = (),
    digest: DataDigest | None = None,
    dense: Callable[[], Dense] | None = None,
) -> tuple[list[Moments], tuple[str, ...] | None]:
    """Moments about one origin of batches of rows, dealt out to parts at random, in one pass.

    Whoever watches gets each batch, as checked arrays; `digest` is told of their rows. Sums of all
    rows, without parts, may be made by what `dense` opens, if there are many columns.
    """
    parts: list[Moments] = []
    names, sums = None, None
    rng = np.random.default_rng(seed)
    n_rows = 0
    for i, X, y, weight, own in batches:
        names = names or own
        for add in watch:
            add(X, y, weight)
        if not parts:
            # The mean of the first batch is close enough as origin for the others.
            parts = [origin_of(X, y, weight, fit_intercept)] * n_parts
            if dense is not None and n_parts == 1 and X.shape[1] >= tuning().device_columns:
                sums = DeviceSums(parts[0], dense(), digest)
        if sums is not None:
            sums.add(X, y, weight)
            continue
        if digest is not None:
            digest.add(X, y, weight)
        part = dealt(rng, n_rows, len(y), n_parts)
        n_rows += len(y)
        for j in range(n_parts):
            rows = slice(None) if n_parts == 1 else np.flatnonzero(part == j)
            # Of few columns, products are small: threads would wait more than they work.
            with blas_threads(1 if X.shape[1] <= tuning().triangle_features else None):
                w = None if weight is None else weight[rows]
                moments = parts[j].of_rows(X[rows], y[rows], w)
            if not (np.isfinite(moments.squares).all() and np.isfinite(moments.yy)):
                require_finite(f"X of batch {i}", X)
                require_finite(f"y of batch {i}", y)
                raise ValueError(f"X'X of batch {i} overflows; rescale its largest columns")
            parts[j] = parts[j] + moments
    if sums is not None:
        parts = [sums.moments()]
        if not (np.isfinite(parts[0].squares).all() and np.isfinite(parts[0].yy)):
            raise ValueError(
                "batches: X or y has infinite or missing values, or X'X overflows; look for such "
                "values, or rescale the largest columns"
            )
    if parts:
        require_some_weight(sum(part.weight for part in parts), "the weight of the batches")
    return parts, names


def dealt(rng: np.random.Generator, first: int, count: int, n_parts: int) -> np.ndarray:
    """The part of each of `count` rows, at random, parts of equal size up to one row."""
    return rng.permutation((first + np.arange(count)) % n_parts)


def stand_in_of(triangle: Triangle, fit_intercept: bool) -> Rows:
    X, y = triangle.rows(fit_intercept)
    return Rows(X, y, None, stand_in=True, offset=triangle.offset if fit_intercept else None)


class StandIn:
    """Rows that stand for all batches: their triangular factor, if it is not too large."""

    def __init__(self, fit_intercept: bool) -> None:
        self.fit_intercept = fit_intercept
        self.triangle: Triangle | None = None

    def add(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        if X.shape[1] > tuning().triangle_features:
            return
        if weight is not None:  # what does not count must not decide where the mean is
            X, y, weight = X[weight > 0.0], y[weight > 0.0], weight[weight > 0.0]
        if len(y) == 0:
            return
        X, y = X.astype(np.float64), y.astype(np.float64)
        if self.triangle is None:
            self.triangle = Triangle.empty(X.shape[1])
            # Digits of a column are relative to its size: begin near the mean.
            means = np.zeros(X.shape[1] + 1)
            if self.fit_intercept:
                means = np.average(np.column_stack([X, y]), axis=0, weights=weight)
            self.origin = (means[:-1], means[-1])
        if X.shape[1] == self.triangle.n_features:
            X, y = X - self.origin[0], y - self.origin[1]
            with blas_threads(1):
                self.triangle = self.triangle.with_rows(X, y, weight)

    def rows(self) -> Rows | None:
        if self.triangle is None:
            return None
        return stand_in_of(self.triangle, self.fit_intercept)


def centred_batches(total: Moments) -> Moments:
    moments = total.centred()
    if np.isinf(moments.error):
        raise ValueError(
            "some columns vary too little beside their means, so that one pass over batches cannot "
            "subtract the means; shuffle the rows if batches differ much, or else subtract a "
            "typical row from all rows"
        )
    return moments


def origin_of(X, y, weight, fit_intercept, partial=False) -> Moments:
    """Empty moments about the (weighted) means of the rows, or about zero."""
    if not fit_intercept:
        return Moments.empty(X.shape[1], partial=partial)
    share = np.ones(len(y)) if weight is None else weight
    share = share / (share.sum() or 1.0)
    x_mean = np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(y), 4096):  # a few rows: X may have to be converted
            rows = slice(start, start + 4096)
            x_mean += share[rows] @ X[rows]
        return Moments.empty(X.shape[1], means=(x_mean, float(share @ y)), partial=partial)


def _safe_units(X, extreme):
    """Powers of two that bring columns with extreme norms to order one."""
    units = np.ones(X.shape[1])
    for j in np.flatnonzero(extreme):
        largest = np.abs(X[:, j].astype(np.float64)).max(initial=0.0)
        if largest > 0.0:
            units[j] = 2.0 ** (-np.clip(np.frexp(largest)[1], -1000, 1000))
    return units


def mean_of(rows, weight):
    """Weighted mean over rows; the plain one if there is no weight."""
    if weight is None:
        return rows.mean(axis=0)
    total = weight.sum()
    return (weight @ rows) / total if total > 0.0 else 0.0
