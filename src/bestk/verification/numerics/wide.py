"""Columns of wide data in place of their products: centred, weighted, in safe units.

Features are taken a few at a time, so that beside the data only the result is as large as they are.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bestk.verification.limits import limits
from bestk.verification.numerics.matrices import ByColumns
from bestk.verification.numerics.rounding import gamma
from bestk.verification.numerics.rows import short_sums, sum_length

_NOTHING = np.zeros((0, 0))
_SAFE = (1e-200, 1e200)
# Sums of weights outside of this have no digits to spare.
_SAFE_WEIGHT = (1e-300, 1e300)


class _Part(NamedTuple):
    """Some columns (rows of W), W = (x - origin) 2^-exponent root(weight) less its mean."""

    W: np.ndarray
    origin: np.ndarray
    exponent: np.ndarray
    squares: np.ndarray
    error: np.ndarray
    tau: np.ndarray
    is_constant: np.ndarray
    extreme: np.ndarray


@dataclass(kw_only=True, eq=False)
class WideColumns:
    """All columns, one after the other, and what is known about them; the last entry is y.

    ``error`` bounds how far products of columns are from the exact ones, relative to the lengths:
    W is off by e |W|, products by 2.05 e, and their sums over n rows by n roundings more. ``tau``
    is the share of a column that its remaining mean had, as in `sums.Sums`.
    """

    table: np.ndarray = field(repr=False)
    moments: np.ndarray
    origin: np.ndarray
    exponent: np.ndarray
    squares: np.ndarray
    error: np.ndarray
    tau: np.ndarray
    is_constant: np.ndarray
    extreme: np.ndarray
    weight: float
    centre: bool

    def matrix(self, features: np.ndarray, scale: np.ndarray, alpha: np.ndarray) -> ByColumns:
        """A over some features (ascending) in units of `scale`. The table is used up for it."""
        table, step = self.table, max(1, limits().wide_entries // (self.table.shape[1] + 1))
        for start in range(0, len(features), step):
            chosen = features[start : start + step]
            # Columns move to the front only, into places that were read before.
            table[start : start + len(chosen)] = table[chosen] / scale[chosen, None]
        ridge = alpha[features] / scale[features] / scale[features]
        return ByColumns(table[: len(features)], ridge)


def wide_columns(X, y, weight, centre: bool) -> WideColumns:
    n, p = X.shape
    prepare = _Preparation(n, weight, centre)
    table, moments, parts = np.empty((p, n)), np.empty(p), []
    step = max(1, limits().wide_entries // (n + 1))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        target = prepare(np.array(y[None], dtype=np.float64))
        for start in range(0, p, step):
            part = prepare(np.array(X[:, start : start + step].T, dtype=np.float64, order="C"))
            table[start : start + step] = part.W
            moments[start : start + step] = part.W @ target.W[0]
            parts.append(part._replace(W=_NOTHING))  # a second copy of the data else
    known = {
        name: np.concatenate([getattr(part, name) for part in (*parts, target)])
        for name in _Part._fields[1:]
    }
    known["error"] = 2.05 * known["error"] + gamma(n + 4)
    return WideColumns(table=table, moments=moments, weight=prepare.total, centre=centre, **known)


class _Preparation:
    """Takes a block of raw columns, which it may overwrite, to columns of the problem."""

    def __init__(self, n: int, weight, centre: bool) -> None:
        self.n, self.centre = n, centre
        self.total = float(n if weight is None else weight.sum())
        self.root = None if weight is None else np.sqrt(weight)
        self.used = slice(None) if weight is None else weight > 0.0
        self.share = np.ones(n) if weight is None else weight
        self.heaviest = 1.0 if weight is None else float(weight.max(initial=0.0))
        safe = _SAFE_WEIGHT[0] < self.total < _SAFE_WEIGHT[1]
        self.is_safe = weight is None or safe or self.total == 0.0

    def __call__(self, V: np.ndarray) -> _Part:
        nothing = np.zeros(len(V))
        used, origin, is_constant = V[:, self.used], nothing, np.zeros(len(V), dtype=bool)
        if self.centre:
            low, high = used.min(axis=1, initial=np.inf), used.max(axis=1, initial=-np.inf)
            is_constant = low >= high
            origin = self._means(V)
            V -= origin[:, None]
            used = V[:, self.used]
        is_zero = ~used.any(axis=1)
        W, squares = self._weighted(V)
        exponent = np.zeros(len(V), dtype=np.int64)
        bad = self._extreme(squares) & ~is_zero
        if bad.any():
            largest = np.abs(used[bad]).max(axis=1)
            exponent[bad] = np.frexp(largest)[1] + np.frexp(np.sqrt(self.heaviest))[1]
            W[bad], squares[bad] = self._weighted(np.ldexp(V[bad], -exponent[bad, None]))
            bad = self._extreme(squares) & ~is_zero
        # Difference, root of the weight, product, and in the end the unit: four roundings.
        error, tau = nothing + gamma(4), nothing
        if self.centre and self.total > 0.0:
            W, squares, error, tau = self._about_mean(W, squares)
        return _Part(W, origin, exponent, squares, error, tau, is_zero | is_constant, bad)

    def _means(self, V: np.ndarray) -> np.ndarray:
        """Weighted means, roughly: any origin will do, since the intercept absorbs it."""
        mean = np.zeros(len(V))
        if self.total <= 0.0:
            return mean
        share = self.share / self.total
        # Half of everything: sums of the largest numbers must not overflow.
        for _ in range(2):
            mean = mean + 2.0 * ((0.5 * V - 0.5 * mean[:, None]) @ share)
        return mean

    def _weighted(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        W = V if self.root is None else V * self.root
        return W, np.einsum("ij,ij->i", W, W)

    def _extreme(self, squares: np.ndarray) -> np.ndarray:
        """Too large or too small to be squared, or weights that are."""
        fine = (squares > _SAFE[0]) & (squares < _SAFE[1])
        return ~fine if self.is_safe else np.ones(len(squares), dtype=bool)

    def _about_mean(self, W, squares):
        """(W less its mean, squares, relative error, tau).

        The mean of W about its origin is a sum of s roundings and has an error of
        gamma_s |W| / root(total); weights and their sum have one of n roundings of the mean itself,
        a share tau of W. All that counts against the length that is left.
        """
        root = np.ones(self.n) if self.root is None else self.root
        mean = short_sums(W * root) / self.total
        W = W - mean[:, None] * root
        left = np.einsum("ij,ij->i", W, W)
        with np.errstate(divide="ignore", invalid="ignore"):
            tau = np.abs(mean) * np.sqrt(self.total) / np.sqrt(squares)
            beside = np.sqrt(squares / left)
        tau = np.where(squares > 0.0, tau, 0.0)
        error = (gamma(sum_length(self.n) + 16) + tau * gamma(self.n + 16)) * beside * 1.01
        return W, left, np.where(left > 0.0, error, np.inf), tau
