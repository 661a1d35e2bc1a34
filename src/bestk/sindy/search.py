"""From trajectories to equations: derivatives, terms, a grid of models, a choice, a refit."""

import warnings
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from pysindy import PDELibrary, PolynomialLibrary, SINDy, WeakPDELibrary
from pysindy.feature_library.base import BaseFeatureLibrary
from pysindy.optimizers import BaseOptimizer
from sklearn.exceptions import ConvergenceWarning

from bestk.base.settings import Settings, settings_of
from bestk.base.validation import (
    as_penalties,
    counted,
    require_choice,
    require_count,
    require_share,
)
from bestk.results.criteria import CRITERIA
from bestk.results.result import Result
from bestk.selection.estimators import warn_of_open_gaps
from bestk.selection.jobs import run_jobs
from bestk.selection.path import Path, as_sizes
from bestk.selection.problem import Problem
from bestk.sindy.differentiation import least_rows, method_for
from bestk.sindy.discovery import Discovery
from bestk.sindy.optimizer import OKRidge, of_equation, require_distinct_terms, require_equations
from bestk.sindy.patience import Patience
from bestk.sindy.scoring import scores_of
from bestk.sindy.stacked import cross_constraints
from bestk.sindy.trajectories import Trajectories


def discover(
    x: Any,
    t: Any,
    *,
    u: Any = None,
    degree: int = 5,
    library: Any = None,
    differentiation: Any = None,
    names: Any = None,
    control_names: Any = None,
    ks: Iterable[int] = range(1, 6),
    alphas: Iterable[float] = (1e-5, 1e-3, 1e-2, 0.05, 0.2),
    validation: float = 1 / 3,
    criterion: str = "aicc",
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    free: Any = None,
    rules: Any = None,
    constraints: Any = None,
    constraint_lhs: Any = None,
    constraint_rhs: Any = None,
    constraint_order: str = "target",
    equality: bool = True,
    gap_tol: float = 0.0,
    time_limit: float | None = 30.0,
    device: str = "cpu",
    client: Any = None,
    n_jobs: int | None = None,
    progress: Any = None,
) -> Discovery:
    """Equations ``x' = Theta(x) xi`` of trajectories x(t), the best of their size, proven.

    For every equation the best models of all sizes and ridge penalties are found on the first part
    of each trajectory. The rest of it chooses among them, by least
    ``AICc = 2 K + m ln(RSS / rows) + 2 (K + 1) (K + 2) / max(m - K - 2, 1)`` with K terms, or by
    another criterion. Rows close in time are not independent: m is how many independent rows they
    are worth (theory: rows-worth). The chosen size and penalty are then solved again on all rows.

    Parameters
    ----------
    x : (n, d) array or data frame, or a list of them
        States, one trajectory or several. Columns of data frames name the states. Where something
        is conserved, it takes several to tell a term from its product with what is constant.
    t : (n,) array or float, or a list of them
        Times of the rows, or the step between them.
    u : (n, c) array, (n,) array or data frame, or a list of them, or None
        Control inputs at the times of the rows: known forces, which terms may contain but which
        have no equations of their own.
    degree : int
        Candidate terms are all products of states (and control inputs) up to this degree, with the
        constant.
    library : PySINDy feature library or None
        Other candidate terms; `degree` is then not used.
    differentiation : PySINDy differentiation method or None
        None means second-order differences of states that a Savitzky-Golay filter (window 9, order
        3) has smoothed; where steps are uneven, derivatives of the polynomials of that filter; and
        where states have no noise, those of polynomials of degree 8.
    names : list of str or None
        Names of the states; those of the data frame, or x0, x1, ..., by default.
    control_names : list of str or None
        Names of the control inputs; those of the data frame, or u0, u1, ..., by default.
    ks, alphas : iterables of int and of float
        Largest numbers of terms in an equation, and ridge penalties, to choose from. Penalties are
        in units of the mean square of the smallest term, so that states of any size need no others.
    validation : float
        Share of each trajectory, at its end, that chooses k and alpha.
    criterion : {"aicc", "bic", "ebic"}
        What is least for the chosen model. BIC, ``K ln m + m ln(RSS / rows)``, and EBIC, which adds
        ``2 ln C(p, K)`` for p candidates, ask for more evidence than AICc.
    bounds, include, exclude, free, rules, constraints
        What is asked of all equations or, as {equation: ...}, of some; terms by name or number. See
        :class:`bestk.sindy.OKRidge`.
    constraint_lhs, constraint_rhs, constraint_order, equality
        Constraints across equations, as for :class:`bestk.sindy.OKRidge`. Sizes and one penalty for
        all equations are then chosen without them, and the final equations are one problem.
    gap_tol, time_limit, device, client : float, float or None, str, Client or None
        As in :func:`bestk.solve`; the limit is for each single search. With a client, equations are
        shared out to its workers.
    n_jobs : int or None
        Equations solved in parallel; None means one, which uses all cores.
    progress : object or None
        As in :func:`bestk.solve`, for the searches over ks and alphas.

    Returns
    -------
    Discovery
        The equations with their bounds and runners-up, and the fitted PySINDy model.

    Examples
    --------
    >>> from bestk.datasets import simulate
    >>> from bestk.sindy import discover
    >>> states = simulate("lorenz", 4.0, noise=0.002)
    >>> found = discover(states, 0.002, degree=3, names=["x", "y", "z"])
    >>> for equation in found.equations:
    ...     print(equation)
    x' = -9.997 x + 9.996 y
    y' = 28.01 x - 1.002 y - 1 x z
    z' = -2.665 z + 0.9997 x y
    >>> found.is_proven, found.share_proven
    (True, 1.0)
    """
    data = Trajectories.of(x, t, names, u, control_names)
    validation = require_share("validation", validation, such_as=0.33)
    training, held_out = data.split(validation)
    _require_rows(training, held_out, least_rows(differentiation))
    library = _library(library, degree)
    method = deepcopy(method_for(differentiation, data))
    require_choice("criterion", criterion, CRITERIA)
    settings = settings_of(
        {
            "gap_tol": gap_tol,
            "time_limit": time_limit,
            "device": device,
            "client": client,
            "progress": progress,
        }
    )
    sizes, penalties = as_sizes("ks", ks), as_penalties(alphas)
    asked = {
        "bounds": bounds, "include": include, "exclude": exclude, "free": free, "rules": rules,
        "constraints": constraints,
    }  # fmt: skip
    require_equations(len(data.names), asked)

    rows, unseen = _rows(training, library, method), _rows(held_out, library, method)
    penalties = as_penalties([alpha * rows.smallest for alpha in penalties])
    terms = tuple(library.get_feature_names(data.inputs))
    require_distinct_terms(terms)
    sizes = sorted({min(k, len(terms)) for k in sizes})
    patience = Patience()
    cross = {
        "constraint_lhs": constraint_lhs, "constraint_rhs": constraint_rhs,
        "constraint_order": constraint_order, "equality": equality,
    }  # fmt: skip
    if constraint_lhs is not None or constraint_rhs is not None:
        # They are part of the last search only, but what is wrong with them is said before.
        cross_constraints(
            constraint_lhs, constraint_rhs, constraint_order, equality, len(data.names), len(terms)
        )
    grids = _grids(rows, terms, sizes, penalties, asked, settings, n_jobs, patience)
    scores = np.array(
        [
            scores_of(grid, sizes, penalties, criterion, *unseen.of(i), unseen.lengths)
            for i, grid in enumerate(grids)
        ]
    )
    shared = None if constraint_lhs is None else _shared_penalty(scores)
    pairs = zip(grids, scores, strict=True)
    choices = [_choice(grid, score, sizes, shared) for grid, score in pairs]
    limited = patience.limited(settings)
    model = _fit(data, library, method, terms, choices, asked | cross, limited, n_jobs)
    optimizer = model.optimizer
    patience.watch(optimizer.results_)
    return Discovery(
        model=model,
        results=optimizer.results_,
        runners_up=_runners_up(optimizer, asked, settings, n_jobs, patience),
        states=data.names,
        terms=terms,
        ks=np.array(sizes),
        alphas=np.array(penalties),
        criterion=criterion,
        scores=scores,
        grids=grids,
        x=data.in_shape(data.x),
        t=data.in_shape(data.t),
        u=None if data.u is None else data.in_shape(data.u),
        control_names=data.control_names,
    )


class _Rows(BaseOptimizer):
    """Keeps the rows that PySINDy would fit: what the grid sees is what the final model sees."""

    def __init__(self, lengths: list[int]) -> None:
        super().__init__()
        self.lengths = lengths

    def _reduce(self, x, y):
        raise NotImplementedError

    def fit(self, x_: Any, y: Any, sample_weight: Any = None, **options: Any) -> "_Rows":
        terms, derivatives = np.asarray(x_, dtype=np.float64), np.asarray(y, dtype=np.float64)
        known = ~np.isnan(derivatives).any(axis=1)  # some methods give none at the ends
        self.terms, self.derivatives = terms[known], derivatives[known]
        self.lengths = [int(part.sum()) for part in np.split(known, np.cumsum(self.lengths)[:-1])]
        if not np.isfinite(self.terms).all():
            raise ValueError(
                "library has terms that are NaN or infinite on these states; leave such terms out, "
                "lower degree, or rescale x"
            )
        if len(self.terms) == 0:
            raise ValueError("differentiation gives no derivatives; use a longer trajectory")
        return self

    def of(self, equation: int) -> tuple[np.ndarray, np.ndarray]:
        return self.terms, self.derivatives[:, equation]

    @property
    def smallest(self) -> float:
        """The mean square of the smallest term that is not zero; 1 if all of them are."""
        squares = np.mean(self.terms**2, axis=0)
        return float(squares[squares > 0.0].min()) if squares.any() else 1.0


def _rows(data: Trajectories, library: Any, method: Any) -> _Rows:
    rows = _Rows([len(x) for x in data.x])
    model = SINDy(optimizer=rows, feature_library=library, differentiation_method=method)
    with np.errstate(over="ignore", invalid="ignore"):
        model.fit(data.x, **data.given)
    return rows


def _grids(
    rows: _Rows,
    terms: tuple[str, ...],
    ks: list[int],
    alphas: list[float],
    asked: dict[str, Any],
    settings: Settings,
    n_jobs: Any,
    patience: Patience,
) -> list[dict[float, Path]]:
    first = Problem.from_data(*rows.of(0), feature_names=terms)

    def search(i: int, settings: Settings) -> dict[float, Path]:
        problem = first if i == 0 else first.with_target(rows.of(i)[1])
        own = {name: of_equation(value, i) for name, value in asked.items()}
        problem = problem.with_bounds(own.pop("bounds"))
        options = patience.limited(settings).as_options()
        grid = problem.solve_grid(ks, alphas, **own, **options)
        patience.watch(result for path in grid.values() for result in path.results)
        return grid

    n_searches = len(ks) * len(alphas)
    return run_jobs(search, range(rows.derivatives.shape[1]), settings, n_jobs, n_searches)


def _shared_penalty(scores: np.ndarray) -> int:
    """The place of the penalty whose best models of all equations have the least total score."""
    return int(np.argmin(scores.min(axis=2).sum(axis=0)))


def _choice(
    grid: dict[float, Path], scores: np.ndarray, ks: list[int], shared: int | None = None
) -> Result:
    """The model of least score; of ties the one with fewer terms, then the first alpha.

    With a penalty that is shared, among its models alone.
    """
    ranked = [
        (scores[i, ks.index(result.k)], np.count_nonzero(result.coef), i, j)
        for i, path in enumerate(grid.values())
        for j, result in enumerate(path.results)
        if shared is None or i == shared
    ]
    _, _, i, j = min(ranked)
    return list(grid.values())[i].results[j]


def _fit(
    data: Trajectories,
    library: Any,
    method: Any,
    terms: tuple[str, ...],
    choices: list[Result],
    asked: dict[str, Any],
    settings: Settings,
    n_jobs: Any,
) -> SINDy:
    """A plain PySINDy model of all rows with the chosen sizes and penalties."""
    optimizer = OKRidge(
        k=[choice.k for choice in choices],
        alpha=[choice.alpha for choice in choices],
        gap_tol=settings.gap_tol,
        time_limit=settings.time_limit,
        device=settings.device,
        client=settings.client,
        feature_names=list(terms),
        n_jobs=n_jobs,
        **asked,
    )
    model = SINDy(optimizer=optimizer, feature_library=library, differentiation_method=method)
    with warnings.catch_warnings():
        # Given again below, for the line that called discover.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.x, **data.given)
    warn_of_open_gaps(optimizer.results_, "equations")
    return model


def _runners_up(
    optimizer: OKRidge, asked: dict[str, Any], settings: Settings, n_jobs: Any, patience: Patience
) -> list[Result | None]:
    problems, results = optimizer.problems_, optimizer.results_
    if optimizer.constraint_lhs is not None:
        return [None] * len(results)  # they are one problem, with a proof for all

    def search(i: int, settings: Settings) -> Result | None:
        options = patience.limited(settings).as_options()
        own = {name: of_equation(asked[name], i) for name in ("include", "exclude", "free")}
        other = problems[i].runner_up(results[i], **own, **options)
        patience.watch([] if other is None else [other])
        return other

    return run_jobs(search, range(len(results)), replace(settings, progress=None), n_jobs)


def _library(library: Any, degree: Any) -> Any:
    if library is None:
        return PolynomialLibrary(degree=require_count("degree", degree, least=1))
    if not isinstance(library, BaseFeatureLibrary):
        raise TypeError(
            "library must be a PySINDy feature library such as pysindy.PolynomialLibrary(3), "
            f"got {library!r}"
        )
    if isinstance(library, PDELibrary | WeakPDELibrary):
        raise TypeError(
            f"library={type(library).__name__} is for fields, which discover cannot split in time; "
            "use pysindy.SINDy with optimizer=bestk.sindy.OKRidge(...)"
        )
    return deepcopy(library)


def _require_rows(training: Trajectories, held_out: Trajectories, least: int) -> None:
    for i, (first, last) in enumerate(zip(training.x, held_out.x, strict=True)):
        if min(len(first), len(last)) < least:
            where = f"x[{i}]" if training.are_many else "x"
            raise ValueError(
                f"{where} has {counted(len(first) + len(last), 'row')}, {len(first):,} to fit and "
                f"{len(last):,} for validation, but derivatives need {least} in each part; use "
                "longer trajectories, another validation share, or "
                "differentiation=pysindy.FiniteDifference(), which needs 3"
            )
