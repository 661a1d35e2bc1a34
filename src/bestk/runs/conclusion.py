"""What a run has found and proven, as users see it; no more than rounding allows."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from bestk.base.settings import Settings
from bestk.problem.regression import Regression
from bestk.results.gaps import relative_gap
from bestk.results.result import HISTORY, Result, Snapshot
from bestk.results.status import Status

# A share of an objective that is not told from rounding.
_ROUNDING = 1e-9
# Coefficients are at their bounds up to this share.
_AT_BOUND = 1e-9


class Model(Protocol):
    """The best model of a run: coefficients on a support, and their objective."""

    @property
    def support(self) -> np.ndarray: ...

    @property
    def coef(self) -> np.ndarray: ...

    @property
    def objective(self) -> float: ...


def result_of(
    problem: Regression,
    k: int,
    model: Model,
    include: np.ndarray,
    bound: float,
    status: Status,
    n_nodes: int,
    history: Sequence[tuple[float, int, float, float]],
    settings: Settings,
    started: float,
    engine: str,
    assumptions: tuple[str, ...],
    **more: Any,
) -> Result:
    """The result, still without a certificate; `more` are other fields of it."""
    searched, bound = bound, min(bound, _certain(problem, model))
    gap = relative_gap(model.objective, bound, problem.yy)
    if gap <= settings.gap_tol:
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL and bound < searched and gap > _ROUNDING:
        status = Status.NUMERICAL_LIMIT
    if status is Status.OPTIMAL and problem.box is not None:
        status = Status.CONDITIONAL
    coef = np.zeros(problem.n_features)
    coef[model.support] = model.coef
    seconds = perf_counter() - started
    end = Snapshot(
        seconds=seconds,
        n_nodes=n_nodes,
        n_open=0,
        objective=model.objective,
        lower_bound=min(bound, model.objective),
        yy=problem.yy,
    )
    points = [*history, (seconds, n_nodes, end.objective, end.lower_bound)]
    return Result(
        k=k,
        alpha=problem.alpha,
        coef=coef,
        intercept=float(problem.moments.y_shift - problem.moments.shift @ coef),
        support=np.union1d(model.support, include),
        objective=end.objective,
        lower_bound=end.lower_bound,
        gap=end.gap,
        explained_gap=end.explained_gap,
        status=status,
        n_nodes=n_nodes,
        seconds=seconds,
        yy=problem.yy,
        n_samples=problem.n_samples,
        fit_intercept=problem.fit_intercept,
        feature_names=problem.feature_names,
        settings=settings.summary(),
        engine=engine,
        assumptions=assumptions,
        at_bounds=_at_bounds(problem, coef),
        box=problem.box,
        history=np.array(points, dtype=HISTORY),
        **more,
    )


def _certain(problem: Regression, model: Model) -> float:
    """The model's objective, or what is certain of it where that is mostly rounding."""
    objective = model.objective
    least = problem.least_objective(model.support, model.coef, objective)
    return objective if least >= (1.0 - _ROUNDING) * objective else least


def _at_bounds(problem: Regression, coef: np.ndarray) -> tuple[int, ...]:
    """Features whose coefficient is not zero and lies at a bound, up to rounding."""
    near = 1.0 - _AT_BOUND
    held = (coef >= near * problem.upper) | (coef <= near * problem.lower)
    return tuple(np.flatnonzero(held & (coef != 0.0)).tolist())
