"""Sums of products of rows, and how far they may be from the exact ones."""

from dataclasses import dataclass, field

import numpy as np

from bestk.verification.numerics.rounding import UNIT, gamma

# Rows of one product: short sums have small errors (the sums of blocks are added one by one), and
# with many columns longer ones are worth adding them.
_ROWS = 512
_ROWS_PER_COLUMN, _MOST_ROWS = 32, 32768
_SAFE = (1e-200, 1e200)


@dataclass(kw_only=True, eq=False)
class Sums:
    """Weighted sums over rows of z = (x - origin) 2^-exponent and of their products, y likewise.

    The last entry everywhere is y. With an intercept any origin is as good as the mean, since the
    intercept absorbs it; `centred` subtracts what the true mean of z is.
    """

    origin: np.ndarray
    exponent: np.ndarray
    centre: bool
    n_rows: int = 0
    n_blocks: int = 0
    block_rows: int = 0
    weight: float = 0.0
    is_plain: bool = True
    products: np.ndarray = field(init=False)
    totals: np.ndarray = field(init=False)
    is_zero: np.ndarray = field(init=False)
    low: np.ndarray = field(init=False)
    high: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.origin)
        self.products = np.zeros((size, size))
        self.totals, self.is_zero = np.zeros(size), np.ones(size, dtype=bool)
        self.low, self.high = np.full(size, np.inf), np.full(size, -np.inf)

    def add(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
        step = min(max(_ROWS, _ROWS_PER_COLUMN * X.shape[1]), _MOST_ROWS)
        for start in range(0, len(y), step):
            rows = slice(start, start + step)
            part = None if weight is None else weight[rows]
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                self._add_block(X[rows], y[rows].astype(np.float64), part)

    def _add_block(self, X, y, weight) -> None:
        X = X.astype(np.float64, copy=False)
        if self.centre:
            used = slice(None) if weight is None else weight > 0.0
            for i, column in ((slice(0, -1), X[used]), (slice(-1, None), y[used][:, None])):
                self.low[i] = np.minimum(self.low[i], column.min(axis=0, initial=np.inf))
                self.high[i] = np.maximum(self.high[i], column.max(axis=0, initial=-np.inf))
        root = np.ones(len(y))
        if self.centre or weight is not None or self.exponent.any():
            self.is_plain = False
            root = root if weight is None else np.sqrt(weight)
            X = np.ldexp(X - self.origin[:-1], -self.exponent[:-1]) * root[:, None]
            y = np.ldexp(y - self.origin[-1], -self.exponent[-1]) * root
        p = X.shape[1]
        product = X.T @ X
        self.products[:p, :p] += product
        self.products[:p, p] += X.T @ y
        self.products[p, p] += y @ y
        # A square that is not zero says enough; one that is may have underflown.
        for j in np.flatnonzero(self.is_zero[:p]):
            self.is_zero[j] = not (product[j, j] > 0.0 or X[:, j].any())
        self.is_zero[p] &= not y.any()
        if self.centre:
            self.totals[:p] += root @ X
            self.totals[p] += root @ y
        self.weight += float(len(y) if weight is None else weight.sum())
        self.n_rows += len(y)
        self.n_blocks += 1
        self.block_rows = max(self.block_rows, len(y))

    @property
    def extreme(self) -> np.ndarray:
        """Columns that are not zero, but too large or too small to be squared."""
        squares = self.products.diagonal()
        fine = (squares > _SAFE[0]) & (squares < _SAFE[1])
        return ~fine & ~self.is_zero

    @property
    def is_constant(self) -> np.ndarray:
        """Columns without any effect: zeros, and constants where there is an intercept."""
        return self.is_zero | (self.centre & (self.low >= self.high))

    def finished(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Gram matrix of [X y] about the mean, relative error of each column, tau of each).

        tau_j = |mean of z_j| / root mean square is what centring takes away, at most 1. Entry
        (i, j) is exact up to error * root(G_ii G_jj). One product of r rows and the sum of b such
        blocks have an error of gamma_(r + b) |z_i||z_j|; forming z costs three roundings.
        """
        G = self.products
        G[-1, :-1] = G[:-1, -1]
        error = gamma(self.block_rows + self.n_blocks + (2 if self.is_plain else 10))
        if not self.centre or self.weight <= 0.0:
            return G, np.full(len(G), error), np.zeros(len(G))
        squares = G.diagonal().copy()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            tau = np.abs(self.totals) / np.sqrt(self.weight * squares)
        tau = np.where(squares > 0.0, tau, 0.0)
        G = G - np.outer(self.totals, self.totals / self.weight)
        # The sums are known to error * |z_j| root(weight), and so are the products subtracted.
        lost = error * (1.0 + 2.0 * tau) ** 2 + UNIT
        left = 1.0 - np.minimum(tau, 1.0) ** 2 - lost
        with np.errstate(divide="ignore"):
            relative = np.where(left > 0.0, lost / left, np.inf)
        return G, relative, tau


def scaled_sums(X, y, weight, centre: bool) -> Sums:
    """The sums of rows at hand, about accurate means, in units that are safe to square."""
    origin = means(X, y, weight) if centre else np.zeros(X.shape[1] + 1)
    exponent = np.zeros(X.shape[1] + 1, dtype=np.int64)
    sums = Sums(origin=origin, exponent=exponent, centre=centre)
    sums.add(X, y, weight)
    extreme = sums.extreme
    if extreme.any():
        largest, heaviest = _largest(X, y, origin), 1.0 if weight is None else weight.max()
        exponent[extreme] = np.frexp(largest[extreme])[1] + np.frexp(np.sqrt(heaviest))[1]
        sums = Sums(origin=origin, exponent=exponent, centre=centre)
        sums.add(X, y, weight)
    return sums


def _largest(X, y, origin) -> np.ndarray:
    largest = np.zeros(X.shape[1] + 1)
    for start in range(0, len(y), _ROWS):
        rows = slice(start, start + _ROWS)
        block = np.abs(X[rows].astype(np.float64) - origin[:-1])
        largest[:-1] = np.maximum(largest[:-1], block.max(axis=0, initial=0.0))
        largest[-1] = max(largest[-1], np.abs(y[rows].astype(np.float64) - origin[-1]).max())
    return largest


def means(X, y, weight) -> np.ndarray:
    """Weighted means of the columns of [X y], the second pass correcting the first."""
    share = np.ones(len(y)) if weight is None else weight
    total = float(share.sum())
    mean = np.zeros(X.shape[1] + 1)
    if total <= 0.0:
        return mean
    # Half of everything: sums of the largest numbers must not overflow.
    for _ in range(2):
        step = np.zeros_like(mean)
        for start in range(0, len(y), _ROWS):
            rows = slice(start, start + _ROWS)
            part = share[rows] / total
            step[:-1] += part @ (0.5 * X[rows].astype(np.float64) - 0.5 * mean[:-1])
            step[-1] += part @ (0.5 * y[rows].astype(np.float64) - 0.5 * mean[-1])
        mean = mean + 2.0 * step
    return mean
