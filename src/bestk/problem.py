"""The data of one regression problem, reduced to what the solver needs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import lapack, lstsq

from bestk._kernels import UNIT_ROUNDOFF
from bestk.threads import blas_threads
from bestk.validation import (
    as_bounds,
    as_matrix,
    as_vector,
    as_weights,
    require_consistent_gram,
    require_count,
    require_finite,
    require_number,
)

_BLOCK_BYTES = 2**26
# Column norms outside this range would over- or underflow when squared.
_SAFE_SQUARES = (1e-200, 1e200)
_SMALLEST_YY = 1e-300
_RANK_TOLERANCE = 1e-14
_TINY_RIDGE = 1e-8
# Smallest pivot (a cosine-like number) at which refined normal equations are as good as QR.
_WELL_CONDITIONED = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """``min ||y - X b||^2 + alpha ||b||^2`` over ``lower <= b <= upper``, stored as Gram matrix.

    Make one with :meth:`from_data`, :meth:`from_gram` or :meth:`from_batches`, then call
    :meth:`solve` for as many k as you like: the passes over the data are made once.

    Attributes
    ----------
    gram, moment, yy : (p, p) array, (p,) array, float
        X'X, X'y and y'y of the (weighted) data; columns of X multiplied by ``units``.
    n_samples : int or None
        Number of rows, where known.
    alpha : float
        Ridge penalty.
    lower, upper : (p,) arrays
        Bounds on the coefficients; infinite where there are none.
    error : float
        Relative rounding error of the entries of gram, moment and yy.
    """

    gram: np.ndarray = field(repr=False)
    moment: np.ndarray = field(repr=False)
    yy: float
    n_samples: int | None
    alpha: float
    lower: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)
    error: float
    units: np.ndarray = field(repr=False)
    _data: "tuple[np.ndarray, np.ndarray, np.ndarray | None] | None" = field(
        default=None, repr=False
    )

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        *,
        alpha: float = 0.0,
        bounds: Any = None,
        sample_weight: Any = None,
        n_threads: int | None = None,
    ) -> "Problem":
        """Problem of X (n, p) and y (n,); X is neither copied nor changed.

        Parameters
        ----------
        X, y : array-like
            Finite real numbers; integers and single precision are converted block by block.
        alpha : float
            Ridge penalty, >= 0.
        bounds : pair (lower, upper) or None
            Scalars or (p,) arrays with lower <= 0 <= upper, as in scipy.optimize.lsq_linear.
        sample_weight : (n,) array or None
            Nonnegative weights of the squared residuals.
        """
        X = as_matrix("X", X)
        y = as_vector("y", y, length=X.shape[0], of="rows of X")
        weight = as_weights(sample_weight, X.shape[0])
        alpha = require_number("alpha", alpha, least=0.0)
        lower, upper = as_bounds(bounds, X.shape[1])
        with blas_threads(n_threads):
            units = np.ones(X.shape[1])
            gram, moment, yy = _accumulate(_blocks(X, y, weight, units), X.shape[1])
            squares = np.diag(gram)
            extreme = ~((squares > _SAFE_SQUARES[0]) & (squares < _SAFE_SQUARES[1]))
            if extreme.any() or not np.isfinite(yy):
                require_finite("X", X)
                require_finite("y", y)
                units = _safe_units(X, extreme)
                if (units != 1.0).any():
                    gram, moment, yy = _accumulate(_blocks(X, y, weight, units), X.shape[1])
        if not np.isfinite(yy):
            raise ValueError("y'y overflows: divide y by its largest absolute value")
        if yy < _SMALLEST_YY and np.any(y):
            raise ValueError("y'y underflows: divide y by its largest absolute value")
        return cls(
            gram=gram,
            moment=moment,
            yy=yy,
            n_samples=X.shape[0],
            alpha=alpha,
            lower=lower,
            upper=upper,
            error=(X.shape[0] + 12) * UNIT_ROUNDOFF,
            units=units,
            _data=(X, y, weight),
        )

    @classmethod
    def from_gram(
        cls,
        G: Any,
        c: Any,
        yy: float,
        n: int | None = None,
        *,
        alpha: float = 0.0,
        bounds: Any = None,
    ) -> "Problem":
        """Problem of G = X'X (p, p), c = X'y (p,), yy = y'y and the number of rows n.

        Directions whose relative variance is below rounding cannot be told from exact collinearity
        in a Gram matrix; prefer :meth:`from_data` for nearly collinear features.
        """
        G = np.array(as_matrix("G", G), dtype=np.float64)
        if G.shape[0] != G.shape[1]:
            raise ValueError(f"G must be square (X'X), got shape {G.shape}")
        c = np.array(as_vector("c", c, length=len(G), of="columns of G"), dtype=np.float64)
        yy = require_number("yy", yy, least=0.0)
        if n is not None:
            n = require_count("n", n, least=1)
        alpha = require_number("alpha", alpha, least=0.0)
        require_finite("G", G)
        require_finite("c", c)
        require_consistent_gram(G, c, yy)
        lower, upper = as_bounds(bounds, len(G))
        return cls(
            gram=0.5 * (G + G.T),
            moment=c,
            yy=yy,
            n_samples=n,
            alpha=alpha,
            lower=lower,
            upper=upper,
            error=12 * UNIT_ROUNDOFF,
            units=np.ones(len(G)),
        )

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[tuple[Any, Any]],
        *,
        alpha: float = 0.0,
        bounds: Any = None,
        n_threads: int | None = None,
    ) -> "Problem":
        """Problem of data that arrive as blocks (X_i, y_i) of rows, in one pass.

        Memory: one p x p matrix and one block. The blocks are not kept.
        """
        alpha = require_number("alpha", alpha, least=0.0)
        gram, moment, yy, rows = np.zeros((0, 0)), np.zeros(0), 0.0, 0
        with blas_threads(n_threads):
            for i, (X, y) in enumerate(_pairs(batches)):
                X = as_matrix(f"X of batch {i}", X)
                y = as_vector(f"y of batch {i}", y, length=X.shape[0], of="rows of X")
                if i == 0:
                    gram, moment = np.zeros((X.shape[1], X.shape[1])), np.zeros(X.shape[1])
                elif X.shape[1] != len(gram):
                    raise ValueError(
                        f"X of batch {i} has {X.shape[1]} columns, earlier ones {len(gram)}"
                    )
                blocks = _blocks(X, y, None, np.ones(X.shape[1]))
                gram_i, moment_i, yy_i = _accumulate(blocks, X.shape[1])
                if not (np.isfinite(gram_i.diagonal()).all() and np.isfinite(yy_i)):
                    require_finite(f"X of batch {i}", X)
                    require_finite(f"y of batch {i}", y)
                    raise ValueError(f"X'X of batch {i} overflows: rescale its largest columns")
                gram += gram_i
                moment += moment_i
                yy += yy_i
                rows += X.shape[0]
        if rows == 0:
            raise ValueError("batches must yield at least one pair (X, y) with rows")
        lower, upper = as_bounds(bounds, len(gram))
        return cls(
            gram=gram,
            moment=moment,
            yy=yy,
            n_samples=rows,
            alpha=alpha,
            lower=lower,
            upper=upper,
            error=(rows + 12) * UNIT_ROUNDOFF,
            units=np.ones(len(gram)),
        )

    @property
    def ridge(self) -> np.ndarray:
        """alpha as it acts on columns multiplied by ``units``; inf where it overwhelms one."""
        with np.errstate(over="ignore"):
            return (np.sqrt(self.alpha) * self.units) ** 2

    @property
    def n_features(self) -> int:
        return len(self.moment)

    @property
    def is_bounded(self) -> bool:
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def solve(self, k: int, **options: Any):
        """Best model with at most k features; options as in :func:`bestk.solve`."""
        from bestk.api import solve_problem

        return solve_problem(self, k, **options)

    def objective(self, coef: Any) -> float:
        """f(b) = ||y - X b||^2 + alpha ||b||^2, from the data where they are at hand."""
        coef = as_vector("coef", coef, length=self.n_features, of="features").astype(np.float64)
        support = np.flatnonzero(coef)
        return self._loss(support, coef[support])

    def fit(self, support: np.ndarray) -> tuple[np.ndarray, float]:
        """Exact least-squares fit on one support: (coefficients on it, objective).

        Solved by orthogonal factorisation of the chosen columns, not through the Gram matrix, so
        nearly collinear features keep their accuracy.
        """
        support = np.asarray(support, dtype=np.intp)
        if len(support) == 0:
            return np.zeros(0), self._loss(support, np.zeros(0))
        M, rhs = self.columns(support)
        norms = np.linalg.norm(M, axis=0)
        norms[norms == 0.0] = 1.0
        scale = norms / self.units[support]
        coef = _least_squares(M, norms, rhs) / scale
        lo, hi = self.lower[support], self.upper[support]
        if (coef < lo).any() or (coef > hi).any():
            from scipy.optimize import lsq_linear  # slow to import, seldom needed

            # The solver asks for lower < upper and for full rank: a ridge far below rounding of the
            # objective makes copies of a column share their coefficient.
            box = (lo * scale, np.maximum(hi * scale, lo * scale + 1e-300))
            M = np.vstack([M / norms, _TINY_RIDGE * np.eye(len(support))])
            rhs = np.concatenate([rhs, np.zeros(len(support))])
            coef = lsq_linear(M, rhs, bounds=box, method="bvls", tol=1e-14, max_iter=1000).x
            coef = np.clip(coef / scale, lo, hi)
        return coef, self._loss(support, coef)

    def columns(self, support: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(M, rhs) with ||rhs - M b||^2 = f + constant: weighted columns, then ridge rows."""
        if self._data is not None:
            X, y, weight = self._data
            M, rhs = X[:, support] * self.units[support], y.astype(np.float64)
            if weight is not None:
                root = np.sqrt(weight)
                M, rhs = M * root[:, None], rhs * root
        else:
            # Only products are known: a symmetric square root gives an equivalent system.
            values, vectors = np.linalg.eigh(self.gram[np.ix_(support, support)])
            keep = values > len(support) * UNIT_ROUNDOFF * 8 * max(values[-1], 0.0)
            root = np.sqrt(values[keep])
            M = root[:, None] * vectors[:, keep].T
            rhs = (vectors[:, keep].T @ self.moment[support]) / root
        if self.alpha > 0:
            M = np.vstack([M, np.diag(np.sqrt(self.alpha) * self.units[support])])
            rhs = np.concatenate([rhs, np.zeros(len(support))])
        return M, rhs

    def _loss(self, support: np.ndarray, coef: np.ndarray) -> float:
        shrunk = np.sqrt(self.alpha) * coef
        penalty = float(shrunk @ shrunk)
        if self._data is not None:
            X, y, weight = self._data
            units = self.units[support]
            residual = y - (X[:, support] * units) @ (coef / units)
            if weight is not None:
                return float(residual @ (weight * residual)) + penalty
            return float(residual @ residual) + penalty
        G = self.gram[np.ix_(support, support)]
        loss = self.yy - 2.0 * self.moment[support] @ coef + coef @ G @ coef
        return max(float(loss), 0.0) + penalty


def _pairs(batches):
    """The items of batches, each checked to be a pair (X, y)."""
    if not isinstance(batches, Iterable):
        raise TypeError("batches must be an iterable of pairs (X, y)")
    for item in batches:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise TypeError("batches must yield pairs (X, y) of a block of rows and its targets")
        yield item


def _least_squares(M, norms, rhs):
    """argmin ||rhs - (M / norms) b||: normal equations with refinement, or QR if they are poor."""
    G = (M.T @ M) / np.outer(norms, norms)
    factor, failed = lapack.dpotrf(G, lower=1)
    if failed or factor.diagonal().min() < _WELL_CONDITIONED:
        return lstsq(M / norms, rhs, cond=_RANK_TOLERANCE, lapack_driver="gelsy")[0]
    b = np.zeros(M.shape[1])
    for _ in range(2):  # each step gains at least as many digits as the first one has
        b += lapack.dpotrs(factor, (M.T @ (rhs - M @ (b / norms))) / norms, lower=1)[0]
    return b


def _blocks(X, y, weight, units):
    """Rows of (X, y) as float64, weighted, in blocks small enough to convert on the fly."""
    plain = X.dtype == np.float64 and weight is None and (units == 1.0).all()
    rows = max(1, _BLOCK_BYTES // (8 * max(X.shape[1], 1)))
    step = max(X.shape[0], 1) if plain else rows
    for start in range(0, X.shape[0], step):
        block = X[start : start + step]
        target = np.asarray(y[start : start + step], dtype=np.float64)
        if not plain:
            block = block.astype(np.float64) * units
            if weight is not None:
                root = np.sqrt(weight[start : start + step])
                block, target = block * root[:, None], target * root
        yield block, target


def _accumulate(blocks, p):
    gram, moment, yy = None, np.zeros(p), 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for X, y in blocks:
            product = X.T @ X
            if gram is None:
                gram = product
            else:
                gram += product
            moment += X.T @ y
            yy += float(y @ y)
    return (np.zeros((p, p)) if gram is None else gram), moment, yy


def _safe_units(X, extreme):
    """Powers of two that bring columns with extreme norms to order one."""
    units = np.ones(X.shape[1])
    for j in np.flatnonzero(extreme):
        largest = np.abs(X[:, j].astype(np.float64)).max(initial=0.0)
        if largest > 0.0:
            units[j] = 2.0 ** (-np.clip(np.frexp(largest)[1], -1000, 1000))
    return units
