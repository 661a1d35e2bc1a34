"""The data of one regression problem, reduced to what the solver needs."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack, lstsq

from bestk._kernels import UNIT_ROUNDOFF
from bestk.moments import Moments
from bestk.threads import blas_threads
from bestk.validation import (
    as_bounds,
    as_matrix,
    as_vector,
    as_weights,
    names_of,
    require_consistent_gram,
    require_count,
    require_finite,
    require_names,
    require_number,
)

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
        X'X, X'y and y'y of the (weighted) data, centred if there is an intercept; columns of X
        multiplied by ``units``.
    n_samples : int or None
        Number of rows, where known.
    alpha : float
        Ridge penalty.
    lower, upper : (p,) arrays
        Bounds on the coefficients; infinite where there are none.
    feature_names : tuple of str, or None
        Column names, where the data had any.
    fit_intercept : bool
        Whether a free intercept is part of every model.
    x_mean, y_mean : (p,) array, float
        What was subtracted from the data; zeros without an intercept.
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
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    fit_intercept: bool = False
    x_mean: np.ndarray = field(repr=False)
    y_mean: float = 0.0
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
        fit_intercept: bool = False,
        n_threads: int | None = None,
    ) -> "Problem":
        """Problem of X (n, p) and y (n,); X is neither copied nor changed.

        Parameters
        ----------
        X, y : array-like
            Finite real numbers; integers and single precision are converted block by block. The
            column names of a data frame become ``feature_names``.
        alpha : float
            Ridge penalty, >= 0.
        bounds : pair (lower, upper) or None
            Scalars or (p,) arrays with lower <= 0 <= upper, as in scipy.optimize.lsq_linear.
        sample_weight : (n,) array or None
            Nonnegative weights of the squared residuals.
        fit_intercept : bool
            Give every model a free intercept, which is neither penalised nor counted in k.
        """
        names = names_of(X)
        X = as_matrix("X", X)
        y = as_vector("y", y, length=X.shape[0], of="rows of X")
        weight = as_weights(sample_weight, X.shape[0])
        alpha = require_number("alpha", alpha, least=0.0)
        lower, upper = as_bounds(bounds, X.shape[1])
        with blas_threads(n_threads):
            moments = moments_of(X, y, weight, fit_intercept)
        return cls.from_moments(
            moments,
            alpha=alpha,
            lower=lower,
            upper=upper,
            feature_names=names,
            data=(X, y, weight),
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
        feature_names: Any = None,
    ) -> "Problem":
        """Problem of G = X'X (p, p), c = X'y (p,), yy = y'y and the number of rows n.

        Directions whose relative variance is below rounding cannot be told from exact collinearity
        in a Gram matrix; prefer :meth:`from_data` for nearly collinear features.
        """
        names = feature_names or names_of(G)
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
            feature_names=require_names(names, len(G)),
            x_mean=np.zeros(len(G)),
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
        fit_intercept: bool = False,
        n_threads: int | None = None,
    ) -> "Problem":
        """Problem of data that arrive as blocks (X_i, y_i) of rows, in one pass.

        Memory: one p x p matrix and one block. The blocks are not kept.
        """
        alpha = require_number("alpha", alpha, least=0.0)
        total: Moments | None = None
        names = None
        with blas_threads(n_threads):
            for i, (X, y) in enumerate(_pairs(batches)):
                names = names or names_of(X)
                X = as_matrix(f"X of batch {i}", X)
                y = as_vector(f"y of batch {i}", y, length=X.shape[0], of="rows of X")
                if total is None:
                    # The mean of the first batch is close enough as origin for the others.
                    total = _origin(X, y, None, fit_intercept and len(y) > 0)
                elif X.shape[1] != total.n_features:
                    raise ValueError(
                        f"X of batch {i} has {X.shape[1]} columns, earlier ones {total.n_features}"
                    )
                moments = total.of_rows(X, y)
                if not (np.isfinite(moments.gram.diagonal()).all() and np.isfinite(moments.yy)):
                    require_finite(f"X of batch {i}", X)
                    require_finite(f"y of batch {i}", y)
                    raise ValueError(f"X'X of batch {i} overflows: rescale its largest columns")
                total = total + moments
        if total is None or total.n_rows == 0:
            raise ValueError("batches must yield at least one pair (X, y) with rows")
        lower, upper = as_bounds(bounds, total.n_features)
        return cls.from_moments(
            total.centred() if fit_intercept else total,
            alpha=alpha,
            lower=lower,
            upper=upper,
            feature_names=names,
        )

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        *,
        alpha: float,
        lower: np.ndarray,
        upper: np.ndarray,
        feature_names: tuple[str, ...] | None,
        data: Any = None,
    ) -> "Problem":
        """Problem of checked moments; `data` are the rows they come from, if at hand."""
        return cls(
            gram=moments.gram,
            moment=moments.moment,
            yy=moments.yy,
            n_samples=moments.n_rows,
            alpha=alpha,
            lower=lower,
            upper=upper,
            feature_names=feature_names,
            fit_intercept=moments.keep_sums,
            x_mean=moments.shift,
            y_mean=moments.y_shift,
            error=moments.error,
            units=moments.units,
            _data=data,
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

    def solve_path(self, ks: Iterable[int] = range(1, 11), **options: Any):
        """Best models of several sizes; options as in :func:`bestk.solve_path`."""
        from bestk.api import settings_of
        from bestk.path import as_sizes, path_of

        include, exclude = options.pop("include", None), options.pop("exclude", None)
        return path_of(self, as_sizes("ks", ks), include, exclude, settings_of(options))

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
            M = (X[:, support] - self.x_mean[support]) * self.units[support]
            rhs = y - self.y_mean
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
            chosen = (X[:, support] - self.x_mean[support]) * units
            residual = (y - self.y_mean) - chosen @ (coef / units)
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


def moments_of(X, y, weight, fit_intercept) -> Moments:
    """Moments of checked arrays in units that are safe to square, or an error that says why not."""
    origin = _origin(X, y, weight, fit_intercept)
    moments = origin.of_rows(X, y, weight)
    squares = moments.gram.diagonal()
    extreme = ~((squares > _SAFE_SQUARES[0]) & (squares < _SAFE_SQUARES[1]))
    if extreme.any() or not np.isfinite(moments.yy):
        require_finite("X", X)
        require_finite("y", y)
        units = _safe_units(X, extreme)
        if (units != 1.0).any():
            moments = replace(origin, units=units).of_rows(X, y, weight)
    if not np.isfinite(moments.yy):
        raise ValueError("y'y overflows: divide y by its largest absolute value")
    if moments.yy < _SMALLEST_YY and np.any(y):
        raise ValueError("y'y underflows: divide y by its largest absolute value")
    return moments.centred() if fit_intercept else moments


def _origin(X, y, weight, fit_intercept) -> Moments:
    """Empty moments about the (weighted) means of the rows, or about zero."""
    if not fit_intercept:
        return Moments.empty(X.shape[1])
    share = np.ones(len(y)) if weight is None else weight
    share = share / (share.sum() or 1.0)
    x_mean = np.zeros(X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(y), 4096):  # blocks: X may have to be converted
            rows = slice(start, start + 4096)
            x_mean += share[rows] @ X[rows]
        return Moments.empty(X.shape[1], means=(x_mean, float(share @ y)))


def _safe_units(X, extreme):
    """Powers of two that bring columns with extreme norms to order one."""
    units = np.ones(X.shape[1])
    for j in np.flatnonzero(extreme):
        largest = np.abs(X[:, j].astype(np.float64)).max(initial=0.0)
        if largest > 0.0:
            units[j] = 2.0 ** (-np.clip(np.frexp(largest)[1], -1000, 1000))
    return units
