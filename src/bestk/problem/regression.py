"""One regression: its data, reduced to what a search needs, and exact fits on them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from bestk.base.cluster.client import client_for
from bestk.base.cluster.collections import is_collection
from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.device.dense import open_dense
from bestk.base.fingerprint import DataDigest, gram_digest
from bestk.base.threads import blas_threads, each_on_threads
from bestk.base.tuning import tuning
from bestk.base.validation import (
    as_bounds,
    as_matrix,
    as_vector,
    as_weights,
    is_auto,
    names_of,
    require_consistent_gram,
    require_count,
    require_device,
    require_finite,
    require_flag,
    require_names,
    require_number,
    require_rows,
    require_same_names,
    require_some_weight,
    require_threads,
)
from bestk.problem.compensated import residual_of
from bestk.problem.fits import bounded_least_squares, least_squares, root_of_products
from bestk.problem.moments import Moments
from bestk.problem.rows import (
    Rows,
    StandIn,
    centred_batches,
    checked_batches,
    joined_if_wide,
    mean_of,
    moments_and_digest,
    moments_of_batches,
    require_safe_target,
)
from bestk.problem.table import Table

# Roundings of ||y|| and the ||x_j b_j|| by which a fit on rows may miss the best one.
_FIT = 16
# Rounding errors up to this share of a residual norm are left in an objective.
_VISIBLE = 1e-11
# Numbers that are worth threads to gather, and rows of a piece of that.
_MANY, _AT_ONCE = 2**20, 2**16


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """``min ||y - X b||^2 + alpha ||b||^2`` over ``lower <= b <= upper``.

    Attributes
    ----------
    moments : Moments
        Sums of products of the (weighted) rows, about their mean if there is an intercept. Of wide
        data (many more features than rows) only squares are summed, and the rows are used instead.
    alpha : float
        Ridge penalty.
    lower, upper : (p,) arrays
        The box of the coefficients; infinite where there is none.
    chooses_box : bool
        Whether a box is to be chosen when the problem is solved (``bounds="auto"``).
    box : float or None
        The size of a box that was chosen, see :mod:`bestk.search.automatic_box`; None for bounds
        that were given.
    feature_names : tuple of str, or None
        Column names, where the data had any.
    rows : Rows or None
        The data themselves, or a few rows that stand for them; None if only sums are known.
    known_digest : str or None
        What identifies the data, where their rows do not.
    """

    moments: Moments = field(repr=False)
    alpha: float
    lower: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)
    chooses_box: bool = False
    box: float | None = None
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    rows: Rows | None = field(default=None, repr=False)
    known_digest: str | None = field(default=None, repr=False)

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        *,
        alpha: float = 0.0,
        bounds: Any = None,
        feature_names: Any = None,
        rows: Rows | None = None,
        digest: str | None = None,
    ) -> Self:
        """Problem of sums that are already there; `rows` are the data behind them, if at hand."""
        names = require_names(feature_names, moments.n_features)
        lower, upper = as_bounds(bounds, moments.n_features, names)
        return cls(
            moments=moments,
            alpha=require_number("alpha", alpha, least=0.0),
            lower=lower,
            upper=upper,
            chooses_box=is_auto(bounds),
            feature_names=names,
            rows=rows,
            known_digest=digest,
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
        feature_names: Any = None,
        n_threads: int | None = None,
        device: str = "cpu",
        client: Any = None,
    ) -> Self:
        """Problem of X (n, p) and y (n,); X is neither copied nor changed.

        Parameters
        ----------
        X, y : array-like
            Finite real numbers; integers and single precision are converted a part at a time.
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
        n_threads : int or None
            Threads of BLAS for sums of products; None leaves BLAS as it is.
        device : {"cpu", "cuda", "cuda:1", ...}
            Where sums of products of large data are computed; see :func:`bestk.solve`.
        client : dask.distributed.Client or None
            Who sums up X and y that are Dask arrays or data frames: by default, the client that
            they bring with them, or else threads of this process.
        """
        require_threads(n_threads)
        require_device(device)
        if is_collection(X):
            alpha = require_number("alpha", alpha, least=0.0)
            table = Table.of_collections(X, y, sample_weight, client_for(X, client), feature_names)
            return cls.from_table(table, alpha=alpha, bounds=bounds, fit_intercept=fit_intercept)
        names = names_of(X) if feature_names is None else feature_names
        X = as_matrix("X", X)
        require_rows("X", X)
        names = require_names(names, X.shape[1])
        y = as_vector("y", y, length=X.shape[0], of="rows of X")
        weight = as_weights(sample_weight, X.shape[0])
        if weight is not None:
            require_some_weight(weight.sum())
        alpha = require_number("alpha", alpha, least=0.0)
        require_flag("fit_intercept", fit_intercept)
        as_bounds(bounds, X.shape[1], names)  # what is wrong with them is said before any work
        # Sums of small data come out the same whatever the number of threads.
        is_small = X.shape[0] * X.shape[1] ** 2 <= tuning().small_sums
        dense = None
        if device != "cpu" and X.shape[0] * X.shape[1] ** 2 >= tuning().device_sums:
            dense = open_dense(device)
        with blas_threads(1 if is_small else n_threads):
            moments, digest = moments_and_digest(
                X, y, weight, fit_intercept, dense=dense, names=names
            )
        rows = Rows(X, y, weight, known_digest=digest)
        return cls.from_moments(moments, alpha=alpha, bounds=bounds, feature_names=names, rows=rows)

    @classmethod
    def from_table(
        cls, table: Table, *, alpha: float = 0.0, bounds: Any = None, fit_intercept: bool = False
    ) -> Self:
        """Problem of rows in partitions, summed up where they lie; of wide data they come here."""
        require_flag("fit_intercept", fit_intercept)
        # What is wrong with bounds is said before any work.
        as_bounds(bounds, table.n_features, table.names)
        if table.is_wide:
            X, y, weight = table.gathered()
            return cls.from_data(
                X, y, alpha=alpha, bounds=bounds, sample_weight=weight,
                fit_intercept=fit_intercept, feature_names=table.names,
            )  # fmt: skip
        total, digest = table.sums(fit_intercept)
        moments = total.sums()
        return cls.from_moments(
            centred_batches(moments) if fit_intercept else moments,
            alpha=alpha,
            bounds=bounds,
            feature_names=table.names,
            rows=total.rows(),
            digest=digest,
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
    ) -> Self:
        """Problem of G = X'X (p, p), c = X'y (p,), yy = y'y and the number of rows n.

        Directions whose relative variance is below rounding cannot be told from exact collinearity
        in a Gram matrix; prefer :meth:`from_data` for nearly collinear features.
        """
        columns = names_of(G)
        require_same_names("G", _index_of(G), columns, "its columns", "pass X.T @ X")
        names = columns if feature_names is None else feature_names
        G = np.array(as_matrix("G", G), dtype=np.float64)
        if G.shape[0] != G.shape[1]:
            raise ValueError(f"G must be square, got shape {G.shape}; pass X.T @ X")
        way = "give both the same columns, in one order"
        require_same_names("c", _index_of(c), columns, "columns of G", way)
        c = np.array(as_vector("c", c, length=len(G), of="columns of G"), dtype=np.float64)
        yy = require_number("yy", yy, least=0.0)
        if n is not None:
            n = require_count("the number of rows n", n, least=1)
        alpha = require_number("alpha", alpha, least=0.0)
        require_finite("G", G)
        require_finite("c", c)
        require_consistent_gram(G, c, yy)
        moments = replace(
            Moments.empty(len(G)),
            gram=0.5 * (G + G.T),
            moment=c,
            yy=yy,
            n_rows=n,
            error=12 * UNIT_ROUNDOFF,
        )
        digest = gram_digest(G, c, yy)
        return cls.from_moments(
            moments, alpha=alpha, bounds=bounds, feature_names=names, digest=digest
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
        device: str = "cpu",
    ) -> Self:
        """Problem of data that arrive as batches (X_i, y_i) or (X_i, y_i, weight_i), in one pass.

        Memory: two p x p matrices and one batch. Batches are not kept, unless there are many
        more features than rows: then they take less than the products. Up to 200 features, nearly
        collinear ones are told apart as well as by :meth:`from_data`.
        """
        alpha = require_number("alpha", alpha, least=0.0)
        require_threads(n_threads)
        require_device(device)
        require_flag("fit_intercept", fit_intercept)
        wide, checked = joined_if_wide(checked_batches(batches))
        if wide is not None:
            return cls.from_data(
                wide.X, wide.y, alpha=alpha, bounds=bounds, sample_weight=wide.weight,
                fit_intercept=fit_intercept, feature_names=wide.names, n_threads=n_threads,
                device=device,
            )  # fmt: skip
        digest, rows = DataDigest(), StandIn(fit_intercept)
        dense = None if device == "cpu" else partial(open_dense, device)
        with blas_threads(n_threads):
            (total,), names = moments_of_batches(
                checked, fit_intercept, watch=(rows.add,), digest=digest, dense=dense
            )
        return cls.from_moments(
            centred_batches(total) if fit_intercept else total,
            alpha=alpha,
            bounds=bounds,
            feature_names=names,
            rows=rows.rows(),
            digest=str(digest),
        )

    @property
    def digest(self) -> str:
        """Identifies the data (not penalty and bounds); see :mod:`bestk.base.fingerprint`."""
        if self.known_digest is None and self.rows is not None:
            return self.rows.digest
        moments = self.moments
        return self.known_digest or gram_digest(moments.gram, moments.moment, moments.yy)

    @property
    def yy(self) -> float:
        """The objective of the model without features, y'y."""
        return self.moments.yy

    @property
    def n_samples(self) -> int | None:
        return self.moments.n_rows

    @property
    def n_features(self) -> int:
        return self.moments.n_features

    @property
    def fit_intercept(self) -> bool:
        """Whether a free intercept is part of every model."""
        return self.moments.keep_sums

    @property
    def ridge(self) -> np.ndarray:
        """alpha as it acts on columns in the units of the moments; inf where it overwhelms one."""
        with np.errstate(over="ignore"):
            return (np.sqrt(self.alpha) * self.moments.units) ** 2

    def with_alpha(self, alpha: float) -> Self:
        """The same data with another ridge penalty."""
        return replace(self, alpha=require_number("alpha", alpha, least=0.0))

    def with_bounds(self, bounds: Any) -> Self:
        """The same data with other bounds on the coefficients."""
        lower, upper = as_bounds(bounds, self.n_features, self.feature_names)
        return replace(self, lower=lower, upper=upper, chooses_box=is_auto(bounds), box=None)

    def with_target(self, y: Any) -> Self:
        """The same X, weights and options with another y; the Gram matrix is shared."""
        if self.rows is None or self.rows.stand_in:
            raise ValueError(
                "a problem of a Gram matrix or of batches keeps no rows, so y cannot be replaced; "
                "make a new problem from the sums of the other target"
            )
        X, weight = self.rows.X, self.rows.weight
        y = as_vector("y", y, length=X.shape[0], of="rows of X")
        moments = self.moments.with_target(X, y, weight)
        require_safe_target(moments, y, weight)
        moments = moments.centred() if self.fit_intercept else moments
        return replace(self, moments=moments, rows=Rows(X, y, weight))

    def with_moments(self, moments: Moments, rows: Rows | None = None) -> Self:
        """The same penalty, bounds and names with the sums of other rows."""
        return replace(self, moments=moments, rows=rows, known_digest=None)

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
        chosen = None if self.rows is None else self._chosen(support)
        M, rhs = self.columns(support, chosen)
        products = M.T @ M
        norms = np.sqrt(products.diagonal())
        norms[norms == 0.0] = 1.0
        scale = norms / self.moments.units[support]
        coef = least_squares(M, products, norms, rhs) / scale
        lo, hi = self.lower[support], self.upper[support]
        if (coef < lo).any() or (coef > hi).any():
            coef = bounded_least_squares(M / norms, rhs, lo * scale, hi * scale)
            coef = np.clip(coef / scale, lo, hi)
        return coef, self._loss(support, coef, chosen)

    def _chosen(self, support: np.ndarray) -> np.ndarray:
        """Columns of the data about their means and in units; collecting them takes its time."""
        assert self.rows is not None
        columns = _gathered(self.rows.X, support).astype(np.float64, copy=False)
        units = self.moments.units[support]
        if self._is_centred:
            columns = columns - self.moments.shift[support]
        return columns * units if (units != 1.0).any() else columns

    def columns(
        self, support: np.ndarray, chosen: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(M, rhs) with ||rhs - M b||^2 = f + constant: weighted columns, then ridge rows."""
        if self.rows is None:
            # Only products are known: a root of them gives an equivalent system.
            G = self.moments.gram[np.ix_(support, support)] + np.diag(self.ridge[support])
            return root_of_products(G, self.moments.moment[support])
        M = self.rows_of(support, chosen)
        rhs = self._weighted(self.rows.y.astype(np.float64) - self._means(support)[1])
        if self.alpha > 0:
            M = np.vstack([M, np.diag(np.sqrt(self.alpha) * self.moments.units[support])])
            rhs = np.concatenate([rhs, np.zeros(len(support))])
        return M, rhs

    def rows_of(self, support: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
        """The columns of X as they enter products: about their means, in units, weighted."""
        return self._weighted(self._chosen(support) if chosen is None else chosen)

    def _weighted(self, rows: np.ndarray) -> np.ndarray:
        assert self.rows is not None
        weight = self.rows.weight
        if self._is_centred:  # means are rounded: what they left is subtracted, too
            rows = rows - mean_of(rows, weight)
        return rows if weight is None else (rows.T * np.sqrt(weight)).T

    def least_objective(self, support: np.ndarray, coef: np.ndarray, objective: float) -> float:
        """What the best model on a support may have, where its fit has this objective."""
        size = self._size(support, coef)
        if self.rows is None:
            # A difference of squares, each known up to the error of the products.
            error = self.moments.error + (2 * len(support) + 8) * UNIT_ROUNDOFF
            return max(objective - error * size**2, 0.0)
        if self.rows.stand_in:  # rows that are themselves rounded
            if self.rows.offset is not None:
                size += self.rows.offset[-1] + float(self.rows.offset[support] @ np.abs(coef))
            return max(np.sqrt(objective) - _FIT * UNIT_ROUNDOFF * size, 0.0) ** 2
        rounding = _FIT * UNIT_ROUNDOFF * size
        # Coefficients are off by roundings, which count as squares; the residual is not.
        return max(objective - rounding**2, 0.0)

    @property
    def _is_centred(self) -> bool:
        """Whether the means of the rows at hand are to be subtracted."""
        return self.fit_intercept and not (self.rows is not None and self.rows.stand_in)

    def _means(self, support: np.ndarray) -> tuple[np.ndarray, float]:
        if self._is_centred:
            return self.moments.shift[support], self.moments.y_shift
        return np.zeros(len(support)), 0.0

    def _size(self, support: np.ndarray, coef: np.ndarray) -> float:
        """||y|| + sum of ||x_j b_j||, ridge rows included."""
        squares = self.moments.squares[support] + self.ridge[support]
        return float(
            np.sqrt(self.yy) + np.sqrt(squares) @ np.abs(coef / self.moments.units[support])
        )

    def _loss(
        self, support: np.ndarray, coef: np.ndarray, chosen: np.ndarray | None = None
    ) -> float:
        shrunk = np.sqrt(self.alpha) * coef
        penalty = float(shrunk @ shrunk)
        units = self.moments.units[support]
        b = coef / units
        if self.rows is None:
            # A difference of squares; more digits than double has, where there are any.
            G, b = (
                self.moments.gram[np.ix_(support, support)].astype(np.longdouble),
                np.longdouble(b),
            )
            loss = self.yy + b @ (G @ b - 2.0 * self.moments.moment[support])
            return max(float(loss), 0.0) + penalty
        y, (x_mean, y_mean) = self.rows.y, self._means(support)
        chosen = self._chosen(support) if chosen is None else chosen
        residual = y.astype(np.float64) - y_mean - chosen @ b
        loss = self._squares(residual)
        rounding = (len(support) + 2) * UNIT_ROUNDOFF * self._size(support, coef)
        if rounding > _VISIBLE * np.sqrt(loss + penalty):
            X = self.rows.X[:, support]
            loss = self._squares(residual_of(y, y_mean, X, x_mean, units, b))
        return loss + penalty

    def _squares(self, residual: np.ndarray) -> float:
        """Weighted sum of squares, after the best intercept."""
        assert self.rows is not None
        weight = self.rows.weight
        if self._is_centred:
            residual = residual - mean_of(residual, weight)
        return float(residual @ (residual if weight is None else weight * residual))


def _index_of(table: Any) -> tuple[str, ...] | None:
    """Names of the rows of a table of pandas, if they are names."""
    index = getattr(table, "index", None)
    if index is None or callable(index) or not all(isinstance(name, str) for name in index):
        return None
    return tuple(index)


def _gathered(X: np.ndarray, support: np.ndarray) -> np.ndarray:
    """X[:, support], by threads where that takes long: every number is in a line of its own."""
    if len(X) * len(support) < _MANY or not X.flags.c_contiguous:
        return X[:, support]
    chosen = np.empty((len(X), len(support)), X.dtype, order="F")  # as NumPy has it

    def gather(start: int) -> None:
        chosen[start : start + _AT_ONCE] = X[start : start + _AT_ONCE, support]

    each_on_threads(gather, range(0, len(X), _AT_ONCE))
    return chosen
