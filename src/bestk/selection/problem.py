"""A problem that many questions can be asked of: the data of a regression, and the searches."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from bestk.base.settings import settings_of
from bestk.base.validation import as_penalties
from bestk.problem.regression import Regression
from bestk.results.result import Result
from bestk.rivals.models import NearOptimal
from bestk.rivals.near_optimal import near_optimal_of
from bestk.search.solve import solve_problem
from bestk.selection.path import Path, as_sizes, grid_of, path_of
from bestk.selection.runner_up import runner_up
from bestk.structure.asked import Asked


class Problem(Regression):
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
        The size of a box that was chosen, see :attr:`bestk.Result.box`; None for bounds that were
        given.
    feature_names : tuple of str, or None
        Column names, where the data had any.
    """

    def solve(self, k: int, **options: Any) -> Result:
        """Best model with at most k features; options as in :func:`bestk.solve`."""
        return solve_problem(self, k, **options)

    def solve_path(self, ks: Iterable[int] = range(1, 11), **options: Any) -> Path:
        """Best models of several sizes; options as in :func:`bestk.solve_path`."""
        asked = Asked.taken_from(options)
        settings = settings_of(options).for_many()
        return path_of(self, as_sizes("ks", ks), asked, settings)

    def solve_grid(
        self, ks: Iterable[int] = range(1, 11), alphas: Iterable[float] = (0.0,), **options: Any
    ) -> dict[float, Path]:
        """``{alpha: Path}``, the best models of several sizes for several ridge penalties.

        Penalties ascend, and each starts from the models of the one before. Options as in
        :func:`bestk.solve_path`.
        """
        asked = Asked.taken_from(options)
        sizes, penalties = as_sizes("ks", ks), as_penalties(alphas)
        settings = settings_of(options).for_many()
        return grid_of(self, sizes, penalties, asked, settings)

    def near_optimal(self, k: int, **options: Any) -> NearOptimal:
        """All near-optimal models, proven to be all; options as in :func:`bestk.near_optimal`."""
        return near_optimal_of(self, k, **options)

    def runner_up(self, result: Result, **options: Any) -> Result | None:
        """The best model that lacks some feature of `result`: how unique is the answer?

        `options` are those of :func:`bestk.solve`; `include`, `exclude` and `free` those of the run
        that gave the result; its groups, rules and constraints are known. With groups it lacks some
        group of the result. The answer is a Result proven for all models of at most ``result.k``
        features that lack at least one of ``result.support``; None where all must be included.
        With ``bounds="auto"`` it is the best in the box of the result.
        """
        return runner_up(self, result, **options)

    @property
    def gram(self) -> np.ndarray:
        """X'X, (p, p); columns of X multiplied by ``units``. Not formed for wide data."""
        if self.moments.is_partial:
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
    def x_mean(self) -> np.ndarray:
        """What was subtracted from the rows of X, (p,); zeros without an intercept."""
        return self.moments.shift

    @property
    def y_mean(self) -> float:
        """What was subtracted from y; zero without an intercept."""
        return self.moments.y_shift

    @property
    def units(self) -> np.ndarray:
        """Powers of two by which columns are multiplied, so that they can be squared; mostly 1."""
        return self.moments.units

    @property
    def error(self) -> float:
        """Rounding error of the entries of gram, moment and yy relative to their scale."""
        return self.moments.error

    @property
    def is_partial(self) -> bool:
        """Whether the Gram matrix was left out: p x p is too large for wide data."""
        return self.moments.is_partial
