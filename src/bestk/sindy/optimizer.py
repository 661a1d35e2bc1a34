"""An optimizer for PySINDy that proves each equation."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from pysindy.optimizers import BaseOptimizer
from sklearn.utils.validation import check_is_fitted

from bestk.base.settings import Settings, settings_of
from bestk.base.validation import (
    as_real,
    counted,
    require_count,
    require_distinct,
    require_flag,
    require_names,
)
from bestk.choices.run import correlations
from bestk.results.result import Result
from bestk.selection.estimators import warn_of_open_gaps
from bestk.selection.jobs import run_jobs
from bestk.selection.path import Path, path_of
from bestk.selection.problem import Problem
from bestk.sindy.patience import Patience
from bestk.sindy.rows import Rows
from bestk.sindy.stacked import cross_constraints, solve_stacked, split_up, stacked_asked
from bestk.structure.asked import Asked

# Options that may be given as {equation: value}.
_PER_EQUATION = ("bounds", "include", "exclude", "free", "rules", "constraints")


class OKRidge(BaseOptimizer):
    """``min ||x' - Theta xi||^2 + alpha ||xi||^2`` with at most k terms in each equation, proven.

    Terms are scaled inside the solver, so ``normalize_columns`` is not needed, and alpha keeps the
    meaning of the formula.

    Parameters
    ----------
    k : int, or one int per equation
        Most terms in each equation.
    total_k : int or None
        Most terms in all equations together. They are shared out in the best way: exactly, by
        dynamic programming over the proven paths of the equations, each with at most `k` terms.
    alpha : float, or one float per equation
        Ridge penalty.
    bounds : pair (lower, upper) or "auto", or {equation: one of these}
        Bounds on coefficients, as in :func:`bestk.solve`; "auto" chooses a box for each equation,
        and the proof of the equation holds inside it only.
    include, exclude : list of terms, or {equation: list}
        Terms that must, or must not, be in all equations or in some, by index or by name.
    free : list of terms, or {equation: list}
        Terms that may be used without being counted in `k` or `total_k`: a constant, a known force.
    rules : list of rules of :mod:`bestk.rules`, or {equation: list}
        Which terms may be chosen together.
    constraints : as in :func:`bestk.solve`, or {equation: constraints}
        Linear constraints on the coefficients of an equation.
    constraint_lhs, constraint_rhs : (m, n_equations * n_terms) and (m,) arrays, or None
        Constraints across equations, ``constraint_lhs @ xi = constraint_rhs``, in PySINDy's format.
        All equations are then one problem with at most `k` terms in each and `total_k` in all, and
        one proof: ``result_``.
    constraint_order : {"target", "feature"}
        Whether coefficients stand one equation after the other, or one term after the other.
    equality : bool
        False for ``constraint_lhs @ xi <= constraint_rhs``.
    feature_names : list of str or None
        Names of the terms, ``library.get_feature_names()``, for all options that name terms.
    gap_tol, time_limit, device, client : float, float or None, str, Client or None
        As in :func:`bestk.solve`; the limit is for each equation (and each size, with `total_k`).
    n_jobs : int or None
        Equations solved in parallel; None means one, which uses all cores.
    unbias, normalize_columns, initial_guess, copy_X
        As in PySINDy. An initial guess only helps to find good models sooner.
    verbose : bool
        Print a line for each equation (and each size, with `total_k`) as soon as its search has
        ended: terms, objective, gap, R², seconds and status. With a client all lines come at the
        end; with `constraint_lhs` there is one search, and one line.

    Attributes
    ----------
    coef_ : (n_equations, n_terms) array
    results_ : list of Result
        One per equation, with its bound and certificate; see :meth:`summary`.
    problems_ : list of Problem
        What was solved, for other questions such as ``problem.runner_up(result)``.
    result_ : Result
        Of all equations together, where constraints tie them; only then.
    objective_, lower_bound_ : float
        Sums over equations. With `total_k` the bound holds for every way to share out the terms.

    Examples
    --------
    >>> import pysindy as ps
    >>> from bestk.datasets import make_dynamics
    >>> from bestk.sindy import OKRidge
    >>> data = make_dynamics("lorenz", duration=4.0, degree=2)
    >>> optimizer = OKRidge(k=[2, 3, 2]).fit(data.X, data.derivatives)
    >>> [result.status.name for result in optimizer.results_]
    ['OPTIMAL', 'OPTIMAL', 'OPTIMAL']
    """

    def __init__(
        self,
        k: Any = 5,
        *,
        total_k: int | None = None,
        alpha: Any = 0.0,
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
        feature_names: Any = None,
        gap_tol: float = 1e-4,
        time_limit: float | None = None,
        device: str = "cpu",
        client: Any = None,
        n_jobs: int | None = None,
        unbias: bool = False,
        normalize_columns: bool = False,
        initial_guess: np.ndarray | None = None,
        copy_X: bool = True,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            unbias=unbias,
            normalize_columns=normalize_columns,
            copy_X=copy_X,
        )
        self.initial_guess = initial_guess  # as given: PySINDy would reshape it
        self.k = k
        self.total_k = total_k
        self.alpha = alpha
        self.bounds = bounds
        self.include = include
        self.exclude = exclude
        self.free = free
        self.rules = rules
        self.constraints = constraints
        self.constraint_lhs = constraint_lhs
        self.constraint_rhs = constraint_rhs
        self.constraint_order = constraint_order
        self.equality = equality
        self.feature_names = feature_names
        self.gap_tol = gap_tol
        self.time_limit = time_limit
        self.device = device
        self.client = client
        self.n_jobs = n_jobs
        self.verbose = verbose

    def set_params(self, **params: Any) -> "OKRidge":
        super().set_params(**params)
        return self

    def fit(self, x_: Any, y: Any, sample_weight: Any = None, **reduce_kws: Any) -> "OKRidge":
        """Find the equations of terms ``x_`` (n, n_terms) and derivatives y (n, n_equations).

        Rows with missing values are left out, as everywhere in PySINDy.
        """
        require_flag("unbias", self.unbias)
        require_flag("normalize_columns", self.normalize_columns)
        rows = Rows.of(x_, y, sample_weight)
        x, y, weight = rows
        norms = np.ones(x.shape[1])
        if self.normalize_columns:
            norms = np.linalg.norm(rows.weighted()[0], axis=0)
            norms = np.where(norms > 0, norms, 1.0)
        self.Theta_, self.n_features_in_, self.iters = x, x.shape[1], 0
        self.coef_ = np.zeros((y.shape[1], x.shape[1]))
        self._reduce(x / norms if self.normalize_columns else x, y, weight, **reduce_kws)
        self.ind_ = self.coef_ != 0.0
        if self.unbias:
            weighted_x, weighted_y = rows.weighted()
            self._unbias(weighted_x / norms, weighted_y)
        self.coef_ = self.coef_ / norms
        self.history_ = [self.coef_]
        self.intercept_ = 0.0
        return self

    def _reduce(self, x: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> None:
        self._require_plain_columns()
        settings = settings_of(
            {
                "gap_tol": self.gap_tol,
                "time_limit": self.time_limit,
                "device": self.device,
                "client": self.client,
            }
        )
        n_equations = y.shape[1]
        sizes = self._sizes(n_equations, x.shape[1])
        alphas = _one_each("alpha", self.alpha, n_equations)
        guesses = self._guesses(n_equations, x.shape[1])
        require_equations(n_equations, {name: getattr(self, name) for name in _PER_EQUATION})
        first = Problem.from_data(
            x,
            y[:, 0],
            sample_weight=sample_weight,
            feature_names=require_names(self.feature_names, x.shape[1], require_distinct_terms),
        )
        targets = [first, *(first.with_target(y[:, i]) for i in range(1, n_equations))]
        self.problems_ = [
            target.with_alpha(alphas[i]).with_bounds(of_equation(self.bounds, i))
            for i, target in enumerate(targets)
        ]
        patience, problems = Patience(), self.problems_
        # What is sent to workers must not print there.
        lines = _Lines() if self.verbose and self.client is None else None

        def question(i: int) -> _Question:
            include, exclude = of_equation(self.include, i), of_equation(self.exclude, i)
            ks = [sizes[i]]
            if self.total_k is not None:
                least = 0 if include is None else len(np.atleast_1d(include))
                ks = list(range(min(least, sizes[i]), sizes[i] + 1))
            asked = Asked(
                include=include,
                exclude=exclude,
                free=of_equation(self.free, i),
                rules=of_equation(self.rules, i),
                constraints=of_equation(self.constraints, i),
            )
            return _Question(i, ks, asked, guesses[i])

        def solve(one: _Question, settings: Settings) -> Path:
            problem, limited = problems[one.equation], patience.limited(settings)
            path = path_of(problem, one.ks, one.asked, limited, one.guess)
            patience.watch(path.results)
            if lines is not None:
                lines.add(one.equation, path.results)
            return path

        questions = [question(i) for i in range(n_equations)]
        if self.constraint_lhs is not None or self.constraint_rhs is not None:
            self._solve_together([one.asked for one in questions], sizes, settings)
            return
        paths = run_jobs(solve, questions, settings, self.n_jobs)
        if self.verbose and lines is None:
            lines = _Lines()
            for one, path in zip(questions, paths, strict=True):
                lines.add(one.equation, path.results)
        if self.total_k is None:
            self.results_ = [path.results[-1] for path in paths]
            self.lower_bound_ = sum(result.lower_bound for result in self.results_)
        else:
            self.results_ = share_out(paths, self.total_k)
            self.lower_bound_ = _least_total([p.lower_bounds for p in paths], paths, self.total_k)
        self.objective_ = sum(result.objective for result in self.results_)
        self.coef_ = np.array([result.coef for result in self.results_])
        warn_of_open_gaps(self.results_, "equations")

    def _solve_together(self, asked: list[Asked], sizes: list[int], settings: Settings) -> None:
        """One problem of all equations, which constraints tie together."""
        problems = self.problems_
        n_terms = problems[0].n_features
        cross = cross_constraints(
            self.constraint_lhs, self.constraint_rhs, self.constraint_order, self.equality,
            len(problems), n_terms,
        )  # fmt: skip
        together = stacked_asked(
            asked, sizes, cross, n_terms, problems[0].feature_names,
            partial(correlations, problems[0]),
        )  # fmt: skip
        total = sum(sizes) if self.total_k is None else self.total_k
        self.result_ = solve_stacked(problems, together, total, settings)
        if self.verbose:
            _Lines().add("all", [self.result_])
        self.results_ = split_up(self.result_, problems)
        self.lower_bound_, self.objective_ = self.result_.lower_bound, self.result_.objective
        self.coef_ = np.array([result.coef for result in self.results_])
        warn_of_open_gaps([self.result_])

    def _require_plain_columns(self) -> None:
        """Constraints are about the coefficients that users see."""
        constrained = self.constraints is not None or self.constraint_lhs is not None
        for word in ("unbias", "normalize_columns"):
            if constrained and getattr(self, word):
                raise ValueError(
                    f"{word}=True does not go with constraints: it would change coefficients after "
                    "they were fitted; terms are scaled inside the solver anyway"
                )

    def _sizes(self, n_equations: int, n_terms: int) -> list[int]:
        ks = _one_each("k", self.k, n_equations)
        most = n_terms
        if self.total_k is not None:
            most = min(most, require_count("total_k", self.total_k, least=0))
        return [min(require_count("k", k, least=0), most) for k in ks]

    def _guesses(self, n_equations: int, n_terms: int) -> list[np.ndarray | None]:
        if self.initial_guess is None:
            return [None] * n_equations
        guess = np.atleast_2d(as_real("initial_guess", self.initial_guess))
        if guess.shape != (n_equations, n_terms):
            raise ValueError(
                f"initial_guess has shape {guess.shape}; pass an array of shape "
                f"{(n_equations, n_terms)}, a row for each equation and a column for each term"
            )
        return [np.flatnonzero(row) for row in guess]

    def summary(self, feature_names: Sequence[str] | None = None) -> str:
        """What is proven about each equation, as a table.

        PySINDy does not tell an optimizer what its terms are called: ``model.get_feature_names()``
        has the names. Without them, and without the option `feature_names`, terms are numbered.
        """
        check_is_fitted(self, "results_")
        names = require_names(feature_names, self.n_features_in_)
        lines = [f"{'equation':>8} {'terms':>5} {'objective':>13} {'gap':>9} {'R²':>10}  status"]
        for i, r in enumerate(self.results_):
            terms = r.names if names is None else [names[j] for j in r.support]
            lines.append(
                f"{i:>8} {len(r.support):>5} {r.objective:>13.6g} {r.gap:>9.2g} {r.r2:>10.6f}  "
                f"{r.status}: {', '.join(terms)}"
            )
        return "\n".join(lines)


class _Lines:
    """Prints what came of each search, as PySINDy's optimizers do; from whichever thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._has_begun = False

    def add(self, equation: int | str, results: Sequence[Result]) -> None:
        with self._lock:
            if not self._has_begun:
                heads = f"{'equation':>8} {'k':>4} {'terms':>5} {'objective':>13} {'gap':>9}"
                sys.stdout.write(f"{heads} {'R²':>10} {'seconds':>8}  status\n")
                self._has_begun = True
            for r in results:
                size = f"{equation:>8} {r.k:>4} {len(r.support):>5} {r.objective:>13.6g}"
                line = f"{size} {r.gap:>9.2g} {r.r2:>10.6f} {r.seconds:>8.2f}  {r.status}"
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


class _Question(NamedTuple):
    """What is asked about one equation: plain data, which may go to a worker."""

    equation: int
    ks: list[int]
    asked: Asked
    guess: np.ndarray | None


def share_out(paths: list[Path], total_k: int) -> list[Result]:
    """One result from each path, at most total_k features in all, with the least sum.

    Exact: dynamic programming over the number of features used so far.
    """
    chosen = _choices([path.objectives for path in paths], paths, total_k)
    return [path.results[j] for path, j in zip(paths, chosen, strict=True)]


def _least_total(values: list[np.ndarray], paths: list[Path], total_k: int) -> float:
    chosen = _choices(values, paths, total_k)
    return float(sum(v[j] for v, j in zip(values, chosen, strict=True)))


def _choices(values: list[np.ndarray], paths: list[Path], total_k: int) -> list[int]:
    """Index into each path that makes the sum of values least within total_k features."""
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for value, path in zip(values, paths, strict=True):
        extended: dict[int, tuple[float, tuple[int, ...]]] = {}
        for used, (total, chosen) in best.items():
            for j, k in enumerate(path.ks.tolist()):
                size, candidate = used + k, (total + float(value[j]), (*chosen, j))
                if size <= total_k and candidate[0] < extended.get(size, (np.inf,))[0]:
                    extended[size] = candidate
        best = extended
    if not best:
        raise ValueError(
            f"total_k = {total_k} is too small for the terms that must be included; raise total_k, "
            "or name fewer terms in include"
        )
    return list(min(best.values())[1])


def _one_each(name: str, option: Any, n_equations: int) -> list:
    """An option that may be given once for all equations or in a list."""
    if isinstance(option, str) or not isinstance(option, Sequence | np.ndarray):
        return [option] * n_equations
    if len(option) != n_equations:
        raise ValueError(
            f"{name} has {counted(len(option), 'entry', 'entries')} for "
            f"{counted(n_equations, 'equation')}; pass one entry per equation, or one value for all"
        )
    return list(option)


def of_equation(option: Any, equation: int) -> Any:
    """An option that may be given for all equations at once or as {equation: value}."""
    return option.get(equation) if isinstance(option, Mapping) else option


def require_equations(n_equations: int, options: Mapping[str, Any]) -> None:
    """What is asked of an equation that is not there would be forgotten."""
    for name, option in options.items():
        for key in option if isinstance(option, Mapping) else ():
            if key not in range(n_equations):
                raise ValueError(
                    f"{name}: there is no equation {key!r}; equations are numbered 0 to "
                    f"{n_equations - 1}"
                )


def require_distinct_terms(terms: Any) -> None:
    """A library that has a term twice, such as the constant of two libraries that were added."""
    advice = (
        "leave repeated terms out of the library: add libraries that have no term in common, for "
        "instance with include_bias=False in all but one of them"
    )
    require_distinct(terms, " in the library", advice)
