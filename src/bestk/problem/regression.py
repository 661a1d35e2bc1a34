"""The data of one regression problem, reduced to what the solver needs."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.fingerprint import DataDigest, gram_digest
from bestk.base.threads import blas_threads
from bestk.base.validation import (
    as_bounds,
    as_matrix,
    as_penalties,
    as_vector,
    as_weights,
    is_auto,
    names_of,
    require_consistent_gram,
    require_count,
    require_finite,
    require_names,
    require_number,
)
from bestk.form.matrix import is_wide
from bestk.problem.compensated import residual_of
from bestk.problem.fits import bounded_least_squares, least_squares, root_of_products
from bestk.problem.moments import Moments
from bestk.problem.rows import (
    Rows,
    StandIn,
    blocks_of,
    centred_batches,
    joined_if_wide,
    mean_of,
    moments_of,
    moments_of_blocks,
    require_safe_target,
)

# Roundings of ||y|| and the ||x_j b_j|| by which a fit on rows may miss the best one.
_FIT = 16
# Rounding errors up to this share of a residual norm are left in an objective.
_VISIBLE = 1e-11


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """``min ||y - X b||^2 + alpha ||b||^2`` over ``lower <= b <= upper``, stored as Gram matrix.

    Make one with :meth:`from_data`, :meth:`from_gram` or :meth:`from_batches`, then call
    :meth:`solve` for as many k as you like: the passes over the data are made once.

    Attributes
    ----------
    moments : Moments
        Sums of products of the (weighted) rows, about their mean if there is an intercept.
        ``gram``, ``moment``, ``yy``, ``n_samples`` and others read from it. Of wide data (many more
        features than rows) only squares are summed, and the rows are used instead.
    alpha : float
        Ridge penalty.
    lower, upper : (p,) arrays
        Bounds on the coefficients; infinite where there are none.
    chooses_box : bool
        Whether bounds are to be chosen when the problem is solved (``bounds="auto"``).
    box : float or None
        The size of a box that was chosen, see :mod:`bestk.boxes`; None for bounds that were given.
    feature_names : tuple of str, or None
        Column names, where the data had any.
    """

    moments: Moments = field(repr=False)
    alpha: float
    lower: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)
    chooses_box: bool = False
    box: float | None = None
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    _data: Rows | None = field(default=None, repr=False)
    _digest: str | None = field(default=None, repr=False)

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
        feature_names: Any = None,
        n_threads: int | None = None,
    ) -> "Problem":
        """Problem of X (n, p) and y (n,); X is neither copied nor changed.

        Parameters
        ----------
        X, y : array-like
            Finite real numbers; integers and single precision are converted block by block.
        alpha : float
            Ridge penalty, >= 0.
        bounds : pair (lower, upper), "auto" or None
            Scalars or (p,) arrays with lower <= 0 <= upper, as in scipy.optimize.lsq_linear;
            "auto" chooses a box when the problem is solved, see :func:`bestk.solve`.
        sample_weight : (n,) array or None
            Nonnegative weights of the squared residuals.
        fit_intercept : bool
            Give every model a free intercept, which is neither penalised nor counted in k.
        feature_names : p strings, or None
            Those of the data frame by default.
        """
        names = feature_names or names_of(X)
        X = as_matrix("X", X)
        y = as_vector("y", y, length=X.shape[0], of="rows of X")
        weight = as_weights(sample_weight, X.shape[0])
        alpha = require_number("alpha", alpha, least=0.0)
        lower, upper = as_bounds(bounds, X.shape[1])
        with blas_threads(n_threads):
            moments = moments_of(X, y, weight, fit_intercept, partial=is_wide(*X.shape))
        return cls(
            moments=moments,
            alpha=alpha,
            lower=lower,
            upper=upper,
            chooses_box=is_auto(bounds),
            feature_names=require_names(names, X.shape[1]),
            _data=Rows(X, y, weight),
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
        moments = replace(
            Moments.empty(len(G)),
            gram=0.5 * (G + G.T),
            moment=c,
            yy=yy,
            n_rows=n,
            error=12 * UNIT_ROUNDOFF,
        )
        return cls(
            moments=moments,
            alpha=alpha,
            lower=lower,
            upper=upper,
            chooses_box=is_auto(bounds),
            feature_names=require_names(names, len(G)),
            _digest=gram_digest(G, c, yy),
        )

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[tuple[Any, ...]],
        *,
        alpha: float = 0.0,
        bounds: Any = None,
        fit_intercept: bool = False,
        n_threads: int | None = None,
    ) -> "Problem":
        """Problem of data that arrive as blocks (X_i, y_i) or (X_i, y_i, weight_i), in one pass.

        Memory: two p x p matrices and one block. The blocks are not kept, unless there are many
        more features than rows: then they take less than the products. Up to 200 features, nearly
        collinear ones are told apart as well as by :meth:`from_data`.
        """
        alpha = require_number("alpha", alpha, least=0.0)
        wide, blocks = joined_if_wide(blocks_of(batches))
        if wide is not None:
            return cls.from_data(
                wide.X, wide.y, alpha=alpha, bounds=bounds, sample_weight=wide.weight,
                fit_intercept=fit_intercept, feature_names=wide.names, n_threads=n_threads,
            )  # fmt: skip
        digest, rows = DataDigest(), StandIn(fit_intercept)
        with blas_threads(n_threads):
            (total,), names = moments_of_blocks(blocks, fit_intercept, watch=(digest.add, rows.add))
        lower, upper = as_bounds(bounds, total.n_features)
        return cls(
            moments=centred_batches(total) if fit_intercept else total,
            alpha=alpha,
            lower=lower,
            upper=upper,
            chooses_box=is_auto(bounds),
            feature_names=names,
            _data=rows.rows(),
            _digest=str(digest),
        )

    @property
    def digest(self) -> str:
        """Identifies the data (not penalty and bounds); see :mod:`bestk.fingerprint`."""
        if self._digest is None and self._data is not None:
            return self._data.digest
        return self._digest or gram_digest(self.gram, self.moment, self.yy)

    @property
    def is_partial(self) -> bool:
        """Whether the Gram matrix was left out: p x p is too large for wide data."""
        return self.moments.is_partial

    @property
    def gram(self) -> np.ndarray:
        """X'X, (p, p); columns of X multiplied by ``units``."""
        if self.is_partial:
            raise ValueError(
                f"X'X of {self.n_features} features is not formed for wide data; see `squares`"
            )
        return self.moments.gram

    @property
    def squares(self) -> np.ndarray:
        """The diagonal of X'X, (p,)."""
        return self.moments.squares

    @property
    def moment(self) -> np.ndarray:
        """X'y, (p,)."""
        return self.moments.moment

    @property
    def yy(self) -> float:
        """The objective of the model without features, y'y."""
        return self.moments.yy

    @property
    def n_samples(self) -> int | None:
        return self.moments.n_rows

    @property
    def fit_intercept(self) -> bool:
        """Whether a free intercept is part of every model."""
        return self.moments.keep_sums

    @property
    def x_mean(self) -> np.ndarray:
        """What was subtracted from the rows of X, (p,); zeros without an intercept."""
        return self.moments.shift

    @property
    def y_mean(self) -> float:
        return self.moments.y_shift

    @property
    def units(self) -> np.ndarray:
        return self.moments.units

    @property
    def error(self) -> float:
        """Rounding error of the entries of gram, moment and yy relative to their scale."""
        return self.moments.error

    @property
    def ridge(self) -> np.ndarray:
        """alpha as it acts on columns multiplied by ``units``; inf where it overwhelms one."""
        with np.errstate(over="ignore"):
            return (np.sqrt(self.alpha) * self.units) ** 2

    @property
    def n_features(self) -> int:
        return len(self.moment)

    def with_alpha(self, alpha: float) -> "Problem":
        """The same data with another ridge penalty."""
        return replace(self, alpha=require_number("alpha", alpha, least=0.0))

    def with_bounds(self, bounds: Any) -> "Problem":
        """The same data with other bounds on the coefficients."""
        lower, upper = as_bounds(bounds, self.n_features)
        return replace(self, lower=lower, upper=upper, chooses_box=is_auto(bounds), box=None)

    def with_target(self, y: Any) -> "Problem":
        """The same X, weights and options with another y; the Gram matrix is shared."""
        if self._data is None or self._data.stand_in:
            raise ValueError("a problem made from a Gram matrix or batches keeps no rows")
        X, weight = self._data.X, self._data.weight
        y = as_vector("y", y, length=X.shape[0], of="rows of X")
        moments = self.moments.with_target(X, y, weight)
        require_safe_target(moments, y)
        moments = moments.centred() if self.fit_intercept else moments
        return replace(self, moments=moments, _data=Rows(X, y, weight))

    def solve(self, k: int, **options: Any):
        """Best model with at most k features; options as in :func:`bestk.solve`."""
        from bestk.search.solve import solve_problem

        return solve_problem(self, k, **options)

    def solve_path(self, ks: Iterable[int] = range(1, 11), **options: Any):
        """Best models of several sizes; options as in :func:`bestk.solve_path`."""
        from bestk.base.settings import settings_of
        from bestk.selection.path import as_sizes, path_of

        include, exclude = options.pop("include", None), options.pop("exclude", None)
        return path_of(self, as_sizes("ks", ks), include, exclude, settings_of(options).for_many())

    def solve_grid(
        self, ks: Iterable[int] = range(1, 11), alphas: Iterable[float] = (0.0,), **options: Any
    ):
        """``{alpha: Path}``, the best models of several sizes for several ridge penalties.

        Penalties ascend, and each starts from the models of the one before. Options as in
        :func:`bestk.solve_path`.
        """
        from bestk.base.settings import settings_of
        from bestk.selection.path import as_sizes, grid_of

        include, exclude = options.pop("include", None), options.pop("exclude", None)
        sizes, penalties = as_sizes("ks", ks), as_penalties(alphas)
        return grid_of(self, sizes, penalties, include, exclude, settings_of(options).for_many())

    def runner_up(self, result: Any, **options: Any):
        """The best model that lacks some feature of `result`: how unique is the answer?

        `options` are those of :func:`bestk.solve`, `include` and `exclude` those of the run that
        gave the result. The answer is a Result proven for all models of at most ``result.k``
        features that lack at least one of ``result.support``; None where all must be included.
        With ``bounds="auto"`` it is the best in the box of the result.
        """
        from bestk.selection.runner_up import runner_up

        return runner_up(self, result, **options)

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
        chosen = None if self._data is None else self._chosen(support)
        M, rhs = self.columns(support, chosen)
        products = M.T @ M
        norms = np.sqrt(products.diagonal())
        norms[norms == 0.0] = 1.0
        scale = norms / self.units[support]
        coef = least_squares(M, products, norms, rhs) / scale
        lo, hi = self.lower[support], self.upper[support]
        if (coef < lo).any() or (coef > hi).any():
            coef = bounded_least_squares(M / norms, rhs, lo * scale, hi * scale)
            coef = np.clip(coef / scale, lo, hi)
        return coef, self._loss(support, coef, chosen)

    def _chosen(self, support: np.ndarray) -> np.ndarray:
        """Columns of the data about their means and in units; collecting them takes its time."""
        assert self._data is not None
        columns = self._data.X[:, support].astype(np.float64, copy=False)
        units = self.units[support]
        if self._is_centred:
            columns = columns - self.x_mean[support]
        return columns * units if (units != 1.0).any() else columns

    def columns(
        self, support: np.ndarray, chosen: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(M, rhs) with ||rhs - M b||^2 = f + constant: weighted columns, then ridge rows."""
        if self._data is None:
            # Only products are known: a root of them gives an equivalent system.
            G = self.gram[np.ix_(support, support)] + np.diag(self.ridge[support])
            return root_of_products(G, self.moment[support])
        M = self.rows_of(support, chosen)
        rhs = self._weighted(self._data.y.astype(np.float64) - self._means(support)[1])
        if self.alpha > 0:
            M = np.vstack([M, np.diag(np.sqrt(self.alpha) * self.units[support])])
            rhs = np.concatenate([rhs, np.zeros(len(support))])
        return M, rhs

    def rows_of(self, support: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """The columns of X as they enter products: about their means, in units, weighted."""
        return self._weighted(self._chosen(support) if chosen is None else chosen)

    def _weighted(self, rows: np.ndarray) -> np.ndarray:
        assert self._data is not None
        weight = self._data.weight
        if self._is_centred:  # means are rounded: what they left is subtracted, too
            rows = rows - mean_of(rows, weight)
        return rows if weight is None else (rows.T * np.sqrt(weight)).T

    def least_objective(self, support: np.ndarray, coef: np.ndarray, objective: float) -> float:
        """What the best model on a support may have, where its fit has this objective."""
        size = self._size(support, coef)
        if self._data is None:
            # A difference of squares, each known up to the error of the products.
            error = self.error + (2 * len(support) + 8) * UNIT_ROUNDOFF
            return max(objective - error * size**2, 0.0)
        rounding = _FIT * UNIT_ROUNDOFF * size
        if self._data.stand_in:  # rows that are themselves rounded
            return max(np.sqrt(objective) - rounding, 0.0) ** 2
        # Coefficients are off by roundings, which count as squares; the residual is not.
        return max(objective - rounding**2, 0.0)

    @property
    def _is_centred(self) -> bool:
        """Whether the means of the rows at hand are to be subtracted."""
        return self.fit_intercept and not (self._data is not None and self._data.stand_in)

    def _means(self, support: np.ndarray) -> tuple[np.ndarray, float]:
        if self._is_centred:
            return self.x_mean[support], self.y_mean
        return np.zeros(len(support)), 0.0

    def _size(self, support: np.ndarray, coef: np.ndarray) -> float:
        """||y|| + sum of ||x_j b_j||, ridge rows included."""
        squares = self.squares[support] + self.ridge[support]
        return float(np.sqrt(self.yy) + np.sqrt(squares) @ np.abs(coef / self.units[support]))

    def _loss(
        self, support: np.ndarray, coef: np.ndarray, chosen: np.ndarray | None = None
    ) -> float:
        shrunk = np.sqrt(self.alpha) * coef
        penalty = float(shrunk @ shrunk)
        units = self.units[support]
        b = coef / units
        if self._data is None:
            # A difference of squares; more digits than double has, where there are any.
            G, b = self.gram[np.ix_(support, support)].astype(np.longdouble), np.longdouble(b)
            loss = self.yy + b @ (G @ b - 2.0 * self.moment[support])
            return max(float(loss), 0.0) + penalty
        y, (x_mean, y_mean) = self._data.y, self._means(support)
        chosen = self._chosen(support) if chosen is None else chosen
        residual = y.astype(np.float64) - y_mean - chosen @ b
        loss = self._squares(residual)
        rounding = (len(support) + 2) * UNIT_ROUNDOFF * self._size(support, coef)
        if rounding > _VISIBLE * np.sqrt(loss + penalty):
            X = self._data.X[:, support]
            loss = self._squares(residual_of(y, y_mean, X, x_mean, units, b))
        return loss + penalty

    def _squares(self, residual: np.ndarray) -> float:
        """Weighted sum of squares, after the best intercept."""
        assert self._data is not None
        weight = self._data.weight
        if self._is_centred:
            residual = residual - mean_of(residual, weight)
        return float(residual @ (residual if weight is None else weight * residual))
