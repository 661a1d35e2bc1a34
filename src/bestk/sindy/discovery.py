"""What was found in trajectories, and what is proven about it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from functools import cached_property
from typing import Any

import numpy as np

from bestk.base.validation import as_real, as_vector, counted
from bestk.results import formula
from bestk.results.gaps import PERFECT_FIT, percent
from bestk.results.interactive import Latex, as_printed
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.rivals.models import NearOptimal
from bestk.selection.path import Path
from bestk.selection.problem import Problem
from bestk.sindy.simulation import integrate, right_hand_side
from bestk.sindy.trajectories import Trajectories, new_control

# A runner-up that is worse by a smaller share cannot be told from the equation.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Discovery:
    """Equations found by :func:`bestk.sindy.discover`, with what is proven about them.

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
        The grid, ascending; penalties as they are in the objective, times the mean square of the
        smallest term.
    criterion : str
        What chose k and alpha.
    scores : (d, a, m) array
        Its values on the rows that were held out; inf where an interruption came first.
    grids : list of {alpha: Path}
        The models of the grid, fitted to the first part of each trajectory.
    x, t : arrays, or lists of them
        The data.
    u, control_names : arrays, lists of them or None, and a tuple of str
        Control inputs, if there were any.
    """

    model: Any = field(repr=False)
    results: list[Result] = field(repr=False)
    runners_up: list[Result | None] = field(repr=False)
    states: tuple[str, ...]
    terms: tuple[str, ...] = field(repr=False)
    ks: np.ndarray
    alphas: np.ndarray
    criterion: str
    scores: np.ndarray = field(repr=False)
    grids: list[dict[float, Path]] = field(repr=False)
    x: Any = field(repr=False)
    t: Any = field(repr=False)
    u: Any = field(default=None, repr=False)
    control_names: tuple[str, ...] = ()

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

    def to_latex(self, digits: int = 4) -> str:
        """The system for LaTeX, one equation per state, such as ``\\dot{x} &= -10\\,x + 10\\,y``.

        An ``aligned`` environment of the package amsmath, without dollars around it. Terms are read
        as by :meth:`bestk.Result.to_latex`.
        """
        reader = formula.Reader(self.terms, self.states)
        lines = [
            rf"\dot{{{formula.symbol(state)}}} &= {formula.latex_sum(terms, reader, digits)}"
            for state, terms in zip(self.states, self._sums, strict=True)
        ]
        return Latex("\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}")

    def to_sympy(self) -> dict[str, Any]:
        """The right-hand sides as expressions of SymPy, by the names of the states."""
        reader = formula.Reader(self.terms, self.states)
        sums = (formula.sympy_sum(terms, reader) for terms in self._sums)
        return dict(zip(self.states, sums, strict=True))

    @property
    def _sums(self) -> list[list[formula.Term]]:
        names = [None if term == "1" else term for term in self.terms]
        return [
            [(value, name) for value, name in zip(result.coef, names, strict=True) if value != 0.0]
            for result in self.results
        ]

    @property
    def is_proven(self) -> bool:
        """Whether every equation is proven the best of its size."""
        return all(result.is_proven for result in self.results)

    @property
    def share_proven(self) -> float:
        """Share of the searches over ks and alphas that are proven."""
        paths = (path for grid in self.grids for path in grid.values())
        return sum(r.is_proven for path in paths for r in path.results) / self.scores.size

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

    def near_optimal(
        self, within: float = 0.02, *, time_limit: float | None = 30.0, **options: Any
    ) -> dict[str, NearOptimal]:
        """All models that are nearly as good as each equation: which of its terms are certain?

        Those of :func:`bestk.near_optimal`, by the name of the state, for all rows and for the k
        and alpha of the equation. Terms that all of them have are certain up to this tolerance.

        Parameters
        ----------
        within : float
            Near-optimal are objectives of at most (1 + within) times the best.
        time_limit : float or None
            Seconds for each equation; a list that takes longer is not complete.
        **options
            Others of :func:`bestk.near_optimal`. Lists without any are kept, and not searched again
            when they are asked for again.
        """
        if self.model.optimizer.constraint_lhs is not None:
            raise ValueError(
                "constraints tie these equations together: they are one problem, and have no lists "
                "of their own; leave constraint_lhs out, or use bestk.near_optimal"
            )
        key = (within, time_limit)
        if not options and key in self._lists:
            return self._lists[key]
        lists: dict[str, NearOptimal] = {}
        limits = {"within": within, "time_limit": time_limit}
        for state, problem, result in zip(self.states, self._problems, self.results, strict=True):
            found = problem.near_optimal(result.k, **limits, **_asked_of(result), **options)
            lists[state] = found
            if found.status is Status.INTERRUPTED:  # the others give what they can at once
                limits["time_limit"] = 0.0
        if not options and limits["time_limit"] == time_limit:
            self._lists[key] = lists
        return lists

    @property
    def _problems(self) -> list[Problem]:
        return self.model.optimizer.problems_

    @cached_property
    def _lists(self) -> dict[tuple[float, float | None], dict[str, NearOptimal]]:
        return {}

    @property
    def derivative_errors(self) -> np.ndarray:
        """(d,) root mean square of x' - Theta(x) xi, relative to that of x'."""
        return np.array([np.sqrt(r.rss / r.yy) if r.yy > 0 else 0.0 for r in self.results])

    def simulate(
        self, t: Any = None, *, start: Any = None, u: Any = None, time_limit: float = 20.0
    ) -> Any:
        """Integrate the equations from the first state of each trajectory, or from another state.

        Control inputs are linear between rows, and constant outside.

        Parameters
        ----------
        t : (n,) array or None
            Times, the first that of the first state; None means those of the data.
        start : (d,) array or None
            Another first state: an experiment that is not among the data.
        u : function, (n,) array or (n, c) array, or None
            Its control inputs, as a function of the time or at the times t.
        time_limit : float
            Seconds after which a simulation that creeps is given up.

        Returns
        -------
        (n, d) array, or a list of them if there are several trajectories and no `start`
            Rows after a blow-up are NaN.
        """
        data = self.trajectories
        times = data.t if t is None else [_simulation_times(t)] * len(data.x)
        scale = max(np.abs(x).max() for x in data.x)
        if start is not None:
            state = as_vector("start", start, length=len(self.states), of="states")
            control = new_control(u, times[0], len(self.control_names))
            rhs = right_hand_side(self.model, control)
            return integrate(rhs, state.astype(np.float64), times[0], scale, time_limit)
        if u is not None:
            raise ValueError(
                "u belongs to a new experiment: pass its first state as start; the control inputs "
                "of the data are known"
            )
        return data.in_shape(
            [
                integrate(
                    right_hand_side(self.model, data.control(i)), x[0], each, scale, time_limit
                )
                for i, (x, each) in enumerate(zip(data.x, times, strict=True))
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
        called = self.control_names or None
        return Trajectories.of(self.x, self.t, self.states, self.u, called)

    @cached_property
    def simulated(self) -> list[np.ndarray]:
        """One simulation per trajectory, at the times of the data."""
        simulated = self.simulate()
        return simulated if isinstance(simulated, list) else [simulated]

    def plot(self, path: Any = None, **options: Any) -> Any:
        """Data, simulations and scores (:func:`bestk.plots.discovery`); returns the Axes."""
        from bestk.show import plots

        return plots.discovery(self, path, **options)

    def to_html(self, path: Any = None, **options: Any) -> str:
        """One self-contained page (:func:`bestk.report.discovery_page`), written to a path."""
        from bestk.show import report

        return report.write(report.discovery_page(self, **options), path)

    def _repr_html_(self) -> str:
        from bestk.show import report

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
            f"{_remark(result)}; next best {worse}"
            for result, worse in zip(self.results, self.distances, strict=True)
        ]

    @property
    def verdict(self) -> tuple[str, str]:
        """What is proven: a headline, and the rest."""
        unproven = [result for result in self.results if not result.is_proven]
        gap, count = percent(max(result.gap for result in self.results)), self.scores.size
        text = (
            f"{counted(len(self.terms), 'candidate term')}; k and alpha were chosen from "
            f"{counted(count, 'model')}, "
            f"{round(self.share_proven * count)} of them proven."
        )
        if not unproven:
            up_to = "" if gap == percent(0.0) else f", up to a gap of {gap}"
            return f"Every equation is proven the best of its size{up_to}.", text
        verb = "is" if len(unproven) == 1 else "are"
        head = f"{len(unproven)} of {len(self.results)} equations {verb} not proven."
        return head, f"{text} The largest gap is {gap}. {unproven[0].status.advice}"

    _repr_pretty_ = as_printed

    def __str__(self) -> str:
        return self.summary()


def _remark(result: Result) -> str:
    if result.is_closed:
        return "proven" if result.is_proven else "conditional"
    return f"gap {percent(result.gap)}"


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
    if share < _ROUNDING:
        return "as good up to rounding" if share > 0.0 and other.gap == 0.0 else "may be as good"
    # Rounded down: a difference must not look larger than what is proven.
    digits = Context(prec=3, rounding=ROUND_FLOOR)
    least = "at least " if other.gap > 0.0 else ""
    if share < 10.0:
        return f"{least}{float(digits.create_decimal(100 * share)):g}% worse"
    return f"{least}{float(digits.create_decimal(1 + share)):g} times the objective"


def _simulation_times(t: Any) -> np.ndarray:
    times = np.asarray(as_real("t", t), dtype=np.float64)
    if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0).all():
        raise ValueError(
            f"t must be at least two times that increase, got shape {times.shape}; "
            "sort them and drop repeated ones"
        )
    return times


def _asked_of(result: Result) -> dict[str, Any]:
    """What was asked of an equation besides its size, as far as its certificate says so."""
    asked: dict[str, Any] = {"structure": result.structure}
    if result.certificate is not None:
        names = ("include", "exclude", "free")
        asked |= {name: getattr(result.certificate, name) for name in names}
    return asked
