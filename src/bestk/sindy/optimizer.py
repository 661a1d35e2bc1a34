"""An optimizer for PySINDy that proves each equation."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pysindy.optimizers import BaseOptimizer
from sklearn.utils.validation import check_X_y

from bestk.base.settings import Settings, settings_of
from bestk.base.validation import require_count, require_names
from bestk.results.result import Result
from bestk.selection.estimators import warn_of_open_gaps
from bestk.selection.jobs import run_jobs
from bestk.selection.path import Path, path_of
from bestk.selection.problem import Problem
from bestk.sindy.patience import Patience


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
    feature_names : list of str or None
        Names of the terms, ``library.get_feature_names()``, for `include`, `exclude` and `free`.
    gap_tol, time_limit, device, client : float, float or None, str, Client or None
        As in :func:`bestk.solve`; the limit is for each equation (and each size, with `total_k`).
    n_jobs : int or None
        Equations solved in parallel; None means one, which uses all cores.
    unbias, normalize_columns, initial_guess, copy_X
        As in PySINDy. An initial guess only helps to find good models sooner.

    Attributes
    ----------
    coef_ : (n_equations, n_terms) array
    results_ : list of Result
        One per equation, with its bound and certificate; ``print(optimizer.summary())``.
    problems_ : list of Problem
        What was solved, for other questions such as ``problem.runner_up(result)``.
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
    ) -> None:
        super().__init__(
            unbias=unbias,
            normalize_columns=normalize_columns,
            initial_guess=initial_guess,
            copy_X=copy_X,
        )
        self.k = k
        self.total_k = total_k
        self.alpha = alpha
        self.bounds = bounds
        self.include = include
        self.exclude = exclude
        self.free = free
        self.feature_names = feature_names
        self.gap_tol = gap_tol
        self.time_limit = time_limit
        self.device = device
        self.client = client
        self.n_jobs = n_jobs

    def set_params(self, **params: Any) -> "OKRidge":
        super().set_params(**params)
        return self

    def fit(self, x_: Any, y: Any, sample_weight: Any = None, **reduce_kws: Any) -> "OKRidge":
        """Find the equations of terms ``x_`` (n, n_terms) and derivatives y (n, n_equations).

        Rows with missing values are left out, as everywhere in PySINDy.
        """
        x, y = np.asarray(x_, dtype=np.float64), np.asarray(y, dtype=np.float64)
        y = y.reshape(len(y), -1)
        known = ~(np.isnan(x).any(axis=1) | np.isnan(y).any(axis=1))
        x, y = check_X_y(x[known], y[known], y_numeric=True, multi_output=True)
        if sample_weight is not None:
            sample_weight = np.broadcast_to(sample_weight, known.shape)[known]
        scaled, norms = x, np.ones(x.shape[1])
        if self.normalize_columns:
            norms = np.linalg.norm(x, axis=0)
            norms = np.where(norms > 0, norms, 1.0)
            scaled = x / norms
        self.Theta_, self.n_features_in_, self.iters = x, x.shape[1], 0
        self.coef_ = np.zeros((y.shape[1], x.shape[1]))
        self._reduce(scaled, y, sample_weight, **reduce_kws)
        self.ind_ = self.coef_ != 0.0
        if self.unbias:
            self._unbias(scaled, y)
        self.coef_ = self.coef_ / norms
        self.history_ = [self.coef_]
        self.intercept_ = 0.0
        return self

    def _reduce(self, x: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> None:
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
        first = Problem.from_data(
            x,
            y[:, 0],
            sample_weight=sample_weight,
            feature_names=require_names(self.feature_names, x.shape[1]),
        )
        targets = [first, *(first.with_target(y[:, i]) for i in range(1, n_equations))]
        self.problems_ = [
            target.with_alpha(alphas[i]).with_bounds(_of_equation(self.bounds, i))
            for i, target in enumerate(targets)
        ]
        patience, problems = Patience(), self.problems_

        def question(i: int) -> _Question:
            include, exclude = _of_equation(self.include, i), _of_equation(self.exclude, i)
            ks = [sizes[i]]
            if self.total_k is not None:
                least = 0 if include is None else len(np.atleast_1d(include))
                ks = list(range(min(least, sizes[i]), sizes[i] + 1))
            return _Question(i, ks, include, exclude, _of_equation(self.free, i), self._guess(i))

        def solve(asked: _Question, settings: Settings) -> Path:
            problem, limited = problems[asked.equation], patience.limited(settings)
            choices = asked.include, asked.exclude
            more = {"guess": asked.guess, "free": asked.free}
            path = path_of(problem, asked.ks, *choices, limited, **more)
            patience.watch(path.results)
            return path

        questions = [question(i) for i in range(n_equations)]
        paths = run_jobs(solve, questions, settings, self.n_jobs)
        if self.total_k is None:
            self.results_ = [path.results[-1] for path in paths]
            self.lower_bound_ = sum(result.lower_bound for result in self.results_)
        else:
            self.results_ = share_out(paths, self.total_k)
            self.lower_bound_ = _least_total([p.lower_bounds for p in paths], paths, self.total_k)
        self.objective_ = sum(result.objective for result in self.results_)
        self.coef_ = np.array([result.coef for result in self.results_])
        warn_of_open_gaps(self.results_)

    def _sizes(self, n_equations: int, n_terms: int) -> list[int]:
        ks = _one_each("k", self.k, n_equations)
        most = n_terms
        if self.total_k is not None:
            most = min(most, require_count("total_k", self.total_k, least=0))
        return [min(require_count("k", k, least=0), most) for k in ks]

    def _guess(self, equation: int) -> np.ndarray | None:
        if self.initial_guess is None:
            return None
        return np.flatnonzero(np.atleast_2d(self.initial_guess)[equation])

    def summary(self) -> str:
        """What is proven about each equation, as a table."""
        lines = [f"{'equation':>8} {'terms':>5} {'objective':>13} {'gap':>9} {'R²':>10}  status"]
        lines += [
            f"{i:>8} {len(r.support):>5} {r.objective:>13.6g} {r.gap:>9.2g} {r.r2:>10.6f}  "
            f"{r.status}: {', '.join(r.names)}"
            for i, r in enumerate(self.results_)
        ]
        return "\n".join(lines)


class _Question(NamedTuple):
    """What is asked about one equation: plain data, which may go to a worker."""

    equation: int
    ks: list[int]
    include: Any
    exclude: Any
    free: Any
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
        raise ValueError(f"total_k = {total_k} is too small for the terms that must be included")
    return list(min(best.values())[1])


def _one_each(name: str, option: Any, n_equations: int) -> list:
    """An option that may be given once for all equations or in a list."""
    if not isinstance(option, Sequence | np.ndarray):
        return [option] * n_equations
    if len(option) != n_equations:
        raise ValueError(f"{name} has {len(option)} entries, but there are {n_equations} equations")
    return list(option)


def _of_equation(option: Any, equation: int) -> Any:
    """An option that may be given for all equations at once or as {equation: value}."""
    return option.get(equation) if isinstance(option, Mapping) else option
