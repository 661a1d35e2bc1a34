"""Governing equations of measured trajectories, each the best of its size, with a proof."""

import warnings
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Context
from functools import cached_property
from typing import Any

import numpy as np
from pysindy import PDELibrary, PolynomialLibrary, SINDy, WeakPDELibrary
from pysindy.feature_library.base import BaseFeatureLibrary
from pysindy.optimizers import BaseOptimizer
from sklearn.exceptions import ConvergenceWarning

from bestk.estimators import warn_of_open_gaps
from bestk.jobs import run_jobs
from bestk.path import Path, as_sizes
from bestk.problem import Problem
from bestk.progress import percent
from bestk.result import PERFECT_FIT, Result, Status
from bestk.settings import Settings, settings_of
from bestk.sindy.differentiation import least_rows, method_for
from bestk.sindy.optimizer import OKRidge
from bestk.sindy.patience import Patience
from bestk.sindy.simulation import integrate, right_hand_side
from bestk.sindy.trajectories import Trajectories
from bestk.validation import as_penalties, as_real, require_count, require_number


def discover(
    x: Any,
    t: Any,
    *,
    degree: int = 5,
    library: Any = None,
    differentiation: Any = None,
    names: Any = None,
    ks: Iterable[int] = range(1, 6),
    alphas: Iterable[float] = (1e-5, 1e-3, 1e-2, 0.05, 0.2),
    validation: float = 1 / 3,
    gap_tol: float = 0.0,
    time_limit: float | None = 30.0,
    n_jobs: int | None = None,
    progress: Any = None,
) -> "Discovery":
    """Equations ``x' = Theta(x) xi`` of trajectories x(t), the best of their size, proven.

    For every equation the best models of all sizes and ridge penalties are found on the first part
    of each trajectory. The rest of it chooses among them, by least
    ``AICc = 2 K + m ln(RSS / m) + 2 (K + 1) (K + 2) / max(m - K - 2, 1)`` with K terms on m rows.
    The chosen size and penalty are then solved again on all rows.

    Parameters
    ----------
    x : (n, d) array or data frame, or a list of them
        States, one trajectory or several. Columns of data frames name the states.
    t : (n,) array or float, or a list of them
        Times of the rows, or the step between them.
    degree : int
        Candidate terms are all products of states up to this degree, with the constant.
    library : PySINDy feature library or None
        Other candidate terms; `degree` is then not used.
    differentiation : PySINDy differentiation method or None
        None means second-order differences of states that a Savitzky-Golay filter (window 9, order
        3) has smoothed, or, where steps are uneven, derivatives of the polynomials of that filter.
    names : list of str or None
        Names of the states; those of the data frame, or x0, x1, ..., by default.
    ks, alphas : iterables of int and of float
        Largest numbers of terms in an equation, and ridge penalties, to choose from.
    validation : float
        Share of each trajectory, at its end, that chooses k and alpha.
    gap_tol, time_limit : float, float or None
        As in :func:`bestk.solve`; the limit is for each single search.
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
    data = Trajectories.of(x, t, names)
    validation = require_number("validation", validation, least=0.0)
    if not 0.0 < validation < 1.0:
        raise ValueError(f"validation must be a share between 0 and 1, got {validation:g}")
    training, held_out = data.split(validation)
    _require_rows(training, held_out, least_rows(differentiation))
    library = _library(library, degree)
    method = deepcopy(method_for(differentiation, data))
    settings = settings_of({"gap_tol": gap_tol, "time_limit": time_limit, "progress": progress})
    sizes, penalties = as_sizes("ks", ks), as_penalties(alphas)

    rows, unseen = _rows(training, library, method), _rows(held_out, library, method)
    terms = tuple(library.get_feature_names(list(data.names)))
    sizes = sorted({min(k, len(terms)) for k in sizes})
    patience = Patience()
    grids = _grids(rows, terms, sizes, penalties, settings, n_jobs, patience)
    scores = np.array(
        [_scores(grid, sizes, penalties, *unseen.of(i)) for i, grid in enumerate(grids)]
    )
    choices = [_choice(grid, score) for grid, score in zip(grids, scores, strict=True)]
    model = _fit(data, library, method, terms, choices, patience.limited(settings), n_jobs)
    optimizer = model.optimizer
    patience.watch(optimizer.results_)
    return Discovery(
        model=model,
        results=optimizer.results_,
        runners_up=_runners_up(optimizer, settings, n_jobs, patience),
        states=data.names,
        terms=terms,
        ks=np.array(sizes),
        alphas=np.array(penalties),
        scores=scores,
        grids=grids,
        x=data.in_shape(data.x),
        t=data.in_shape(data.t),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Discovery:
    """Equations found by :func:`discover`, with what is proven about them.

    Attributes
    ----------
    model : pysindy.SINDy
        The fitted model, with its ``predict`` and all else that PySINDy offers.
    results : list of Result
        One per equation, for all rows and the chosen k and alpha.
    runners_up : list of Result or None
        The best model of each equation that lacks some of its terms, at the same k and alpha.
    states, terms : tuples of str
        Names of the states and of the candidate terms.
    ks, alphas : (m,) and (a,) arrays
        The grid, ascending.
    scores : (d, a, m) array
        AICc on the rows that were held out; inf where an interruption came first.
    grids : list of {alpha: Path}
        The models of the grid, fitted to the first part of each trajectory.
    x, t : arrays, or lists of them
        The data.
    """

    model: Any = field(repr=False)
    results: list[Result] = field(repr=False)
    runners_up: list[Result | None] = field(repr=False)
    states: tuple[str, ...]
    terms: tuple[str, ...] = field(repr=False)
    ks: np.ndarray
    alphas: np.ndarray
    scores: np.ndarray = field(repr=False)
    grids: list[dict[float, Path]] = field(repr=False)
    x: Any = field(repr=False)
    t: Any = field(repr=False)

    @property
    def coef(self) -> np.ndarray:
        """(d, p) coefficients, one row per equation."""
        return np.array([result.coef for result in self.results])

    @property
    def equations(self) -> list[str]:
        """The equations as text, such as ``x' = -10 x + 10 y``."""
        return [
            equation(state, self.terms, result.coef)
            for state, result in zip(self.states, self.results, strict=True)
        ]

    @property
    def is_proven(self) -> bool:
        """Whether every equation is proven the best of its size."""
        return all(map(_is_proven, self.results))

    @property
    def share_proven(self) -> float:
        """Share of the searches over ks and alphas that are proven."""
        paths = (path for grid in self.grids for path in grid.values())
        return sum(_is_proven(r) for path in paths for r in path.results) / self.scores.size

    @property
    def is_grid_proven(self) -> bool:
        """Whether the choice of ks and alphas was among proven models only."""
        return self.share_proven == 1.0

    @property
    def searches(self) -> list[Result]:
        """Every search that was made: the grid, the equations, the runners-up."""
        grid = [r for paths in self.grids for path in paths.values() for r in path.results]
        return [*grid, *self.results, *(other for other in self.runners_up if other)]

    @property
    def margins(self) -> np.ndarray:
        """(d,) by what share every model that lacks a term is worse, at least; inf if none can.

        0 says nothing: such a model may be as good, or better where the equation is not proven.
        """
        return np.array(
            [
                margin(result, other)
                for result, other in zip(self.results, self.runners_up, strict=True)
            ]
        )

    @property
    def derivative_errors(self) -> np.ndarray:
        """(d,) root mean square of x' - Theta(x) xi, relative to that of x'."""
        return np.array([np.sqrt(r.rss / r.yy) if r.yy > 0 else 0.0 for r in self.results])

    def simulate(self, t: Any = None, *, time_limit: float = 20.0) -> Any:
        """Integrate the equations from the first state of each trajectory.

        Parameters
        ----------
        t : (n,) array or None
            Times, the first that of the first state; None means those of the data.
        time_limit : float
            Seconds after which a simulation that creeps is given up.

        Returns
        -------
        (n, d) array, or a list of them if there are several trajectories
            Rows after a blow-up are NaN.
        """
        data = self.trajectories
        times = data.t if t is None else [_simulation_times(t)] * len(data.x)
        rhs, scale = right_hand_side(self.model), max(np.abs(x).max() for x in data.x)
        return data.in_shape(
            [
                integrate(rhs, x[0], each, scale, time_limit)
                for x, each in zip(data.x, times, strict=True)
            ]
        )

    def horizon(self, tolerance: float = 0.4) -> Any:
        """Time for which the simulation follows the data; a list if there are several trajectories.

        It ends where the difference, in standard deviations of each state and as root mean square
        over the states, first exceeds `tolerance`.
        """
        data = self.trajectories
        spread = np.concatenate(data.x).std(axis=0)
        spread[spread == 0.0] = 1.0
        times = []
        for x, t, simulated in zip(data.x, data.t, self.simulated, strict=True):
            error = np.sqrt(np.mean(((simulated - x) / spread) ** 2, axis=1))
            follows = error <= tolerance  # NaN, after a blow-up, does not
            last = len(t) - 1 if follows.all() else max(int(np.argmin(follows)) - 1, 0)
            times.append(float(t[last] - t[0]))
        return data.in_shape(times)

    @property
    def horizons(self) -> list[float]:
        """:meth:`horizon` as a list, whether there is one trajectory or several."""
        horizon = self.horizon()
        return horizon if isinstance(horizon, list) else [horizon]

    @cached_property
    def trajectories(self) -> Trajectories:
        """The data as lists, whether there is one trajectory or several."""
        return Trajectories.of(self.x, self.t, self.states)

    @cached_property
    def simulated(self) -> list[np.ndarray]:
        """One simulation per trajectory, at the times of the data."""
        simulated = self.simulate()
        return simulated if isinstance(simulated, list) else [simulated]

    def plot(self, path: Any = None, **options: Any) -> Any:
        """Data, simulations and scores (:func:`bestk.plots.discovery`); returns the Figure."""
        from bestk import plots

        return plots.discovery(self, path, **options)

    def to_html(self, path: Any = None, **options: Any) -> str:
        """One self-contained page (:func:`bestk.report.discovery_page`), written to a path."""
        from bestk import report

        return report.write(report.discovery_page(self, **options), path)

    def _repr_html_(self) -> str:
        from bestk import report

        return report.discovery_summary(self)

    def summary(self) -> str:
        """The equations and what is proven about each, as a table."""
        width = max(8, *(len(state) + 1 for state in self.states))
        lines = [*self.equations, ""]
        lines += [
            f"{'equation':>{width}} {'k':>3} {'alpha':>7} {'objective':>12} {'gap':>8} {'R²':>9}"
            "  status: next best terms, compared"
        ]
        for state, result, other in zip(self.states, self.results, self.runners_up, strict=True):
            head = state + "'"
            terms = f"{', '.join(other.names) or 'no terms'}, " if other else ""
            lines.append(
                f"{head:>{width}} {result.k:>3} {result.alpha:>7.2g} {result.objective:>12.6g} "
                f"{result.gap:>8.2g} {result.r2:>9.6f}  {result.status}: "
                f"{terms}{next_best(result, other)}"
            )
        return "\n".join([*lines, "", *self.verdict])

    @property
    def distances(self) -> list[str]:
        """How much worse the runner-up of each equation is, such as ``6.2% worse``."""
        return [
            next_best(result, other)
            for result, other in zip(self.results, self.runners_up, strict=True)
        ]

    @property
    def remarks(self) -> list[str]:
        """What is proven about each equation, such as ``proven; next best 6.2% worse``."""
        return [
            f"{'proven' if _is_proven(result) else f'gap {percent(result.gap)}'}; next best {worse}"
            for result, worse in zip(self.results, self.distances, strict=True)
        ]

    @property
    def verdict(self) -> tuple[str, str]:
        """What is proven: a headline, and the rest."""
        unproven = [result for result in self.results if not _is_proven(result)]
        gap, count = percent(max(result.gap for result in self.results)), self.scores.size
        text = (
            f"{len(self.terms)} candidate terms; k and alpha were chosen from {count} models, "
            f"{round(self.share_proven * count)} of them proven."
        )
        if not unproven:
            up_to = "" if gap == percent(0.0) else f", up to a gap of {gap}"
            return f"Every equation is proven the best of its size{up_to}.", text
        verb = "is" if len(unproven) == 1 else "are"
        head = f"{len(unproven)} of {len(self.results)} equations {verb} not proven."
        return head, f"{text} The largest gap is {gap}. {unproven[0].status.advice}"

    def __str__(self) -> str:
        return self.summary()


def equation(state: str, terms: Iterable[str], coef: np.ndarray, digits: int = 4) -> str:
    """``x' = 2 - 0.5 x y`` of a state and the coefficients of its terms."""
    text = ""
    for term, value in zip(terms, coef, strict=True):
        if value != 0.0:
            factor = "" if term == "1" else f" {term}"
            text += f" {'-' if value < 0 else '+'} {abs(value):.{digits}g}{factor}"
    if not text:
        return f"{state}' = 0"
    return f"{state}' = {text[3:] if text.startswith(' + ') else '-' + text[3:]}"


def margin(result: Result, other: Result | None) -> float:
    """By what share of the objective every model that lacks a term is worse, at least."""
    if other is None:
        return np.inf
    excess = other.lower_bound - result.objective
    if excess <= 0.0 or other.status is Status.INTERRUPTED:  # which leaves some models unseen
        return 0.0
    return excess / max(result.objective, PERFECT_FIT * result.yy)


def next_best(result: Result, other: Result | None) -> str:
    """How much worse the runner-up is, in words; what is not proven is not claimed."""
    if other is None:
        return "none"
    share = margin(result, other)
    if share == 0.0:
        return "may be as good"
    # Rounded down: a difference must not look larger than what is proven.
    digits = Context(prec=3, rounding=ROUND_FLOOR)
    least = "at least " if other.gap > 0.0 else ""
    if share < 10.0:
        return f"{least}{float(digits.create_decimal(100 * share)):g}% worse"
    return f"{least}{float(digits.create_decimal(1 + share)):g} times the objective"


def _is_proven(result: Result) -> bool:
    return result.status is Status.OPTIMAL


# Steps of discover


class _Rows(BaseOptimizer):
    """Keeps the rows that PySINDy would fit: what the grid sees is what the final model sees."""

    def _reduce(self, x, y):
        raise NotImplementedError

    def fit(self, x_: Any, y: Any, sample_weight: Any = None, **options: Any) -> "_Rows":
        terms, derivatives = np.asarray(x_, dtype=np.float64), np.asarray(y, dtype=np.float64)
        known = ~np.isnan(derivatives).any(axis=1)  # some methods give none at the ends
        self.terms, self.derivatives = terms[known], derivatives[known]
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


def _rows(data: Trajectories, library: Any, method: Any) -> _Rows:
    rows = _Rows()
    model = SINDy(optimizer=rows, feature_library=library, differentiation_method=method)
    with np.errstate(over="ignore", invalid="ignore"):
        model.fit(data.x, t=data.clock, feature_names=list(data.names))
    return rows


def _grids(
    rows: _Rows,
    terms: tuple[str, ...],
    ks: list[int],
    alphas: list[float],
    settings: Settings,
    n_jobs: Any,
    patience: Patience,
) -> list[dict[float, Path]]:
    first = Problem.from_data(*rows.of(0), feature_names=terms)

    def search(i: int, settings: Settings) -> dict[float, Path]:
        problem = first if i == 0 else first.with_target(rows.of(i)[1])
        options = patience.limited(settings).as_options()
        grid = problem.solve_grid(ks, alphas, **options)
        patience.watch(result for path in grid.values() for result in path.results)
        return grid

    return run_jobs(search, range(rows.derivatives.shape[1]), settings, n_jobs)


def _scores(
    grid: dict[float, Path],
    ks: list[int],
    alphas: list[float],
    terms: np.ndarray,
    derivative: np.ndarray,
) -> np.ndarray:
    """(a, m) AICc of the models of a grid on rows they have not seen."""
    scores = np.full((len(alphas), len(ks)), np.inf)
    least = PERFECT_FIT * float(derivative @ derivative)
    for alpha, path in grid.items():
        for k, result in path.items():
            residual = derivative - terms[:, result.support] @ result.coef[result.support]
            rss = max(float(residual @ residual), least)
            score = aicc(rss, len(derivative), int(np.count_nonzero(result.coef)))
            scores[alphas.index(alpha), ks.index(k)] = score
    return scores


def aicc(rss: float, m: int, size: int) -> float:
    """``2 K + m ln(RSS / m) + 2 (K + 1) (K + 2) / max(m - K - 2, 1)`` of K = size terms, m rows."""
    fit = m * np.log(rss / m) if rss > 0 else -np.inf
    return float(2 * size + fit + 2 * (size + 1) * (size + 2) / max(m - size - 2, 1))


def _choice(grid: dict[float, Path], scores: np.ndarray) -> Result:
    """The model of least score; of ties the one with fewer terms, then the first alpha."""
    ranked = [
        (scores[i, j], np.count_nonzero(result.coef), i, j)
        for i, path in enumerate(grid.values())
        for j, result in enumerate(path.results)
    ]
    _, _, i, j = min(ranked)
    return list(grid.values())[i].results[j]


def _fit(
    data: Trajectories,
    library: Any,
    method: Any,
    terms: tuple[str, ...],
    choices: list[Result],
    settings: Settings,
    n_jobs: Any,
) -> SINDy:
    """A plain PySINDy model of all rows with the chosen sizes and penalties."""
    optimizer = OKRidge(
        k=[choice.k for choice in choices],
        alpha=[choice.alpha for choice in choices],
        gap_tol=settings.gap_tol,
        time_limit=settings.time_limit,
        feature_names=list(terms),
        n_jobs=n_jobs,
    )
    model = SINDy(optimizer=optimizer, feature_library=library, differentiation_method=method)
    with warnings.catch_warnings():
        # Given again below, for the line that called discover.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.x, t=data.clock, feature_names=list(data.names))
    warn_of_open_gaps(optimizer.results_)
    return model


def _runners_up(
    optimizer: OKRidge, settings: Settings, n_jobs: Any, patience: Patience
) -> list[Result | None]:
    def search(i: int, settings: Settings) -> Result | None:
        options = patience.limited(replace(settings, progress=None)).as_options()
        other = optimizer.problems_[i].runner_up(optimizer.results_[i], **options)
        patience.watch([] if other is None else [other])
        return other

    return run_jobs(search, range(len(optimizer.results_)), settings, n_jobs)


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
                f"{where} has {len(first) + len(last)} rows, {len(first)} to fit and {len(last)} "
                f"for validation, but derivatives need {least} in each part; use longer "
                "trajectories, another validation share, or "
                "differentiation=pysindy.FiniteDifference(), which needs 3"
            )


def _simulation_times(t: Any) -> np.ndarray:
    times = np.asarray(as_real("t", t), dtype=np.float64)
    if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
        raise ValueError("t must be at least two times that increase")
    return times
