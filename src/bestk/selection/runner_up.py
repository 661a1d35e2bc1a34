"""How unique is the answer? The best model that differs from it."""

from dataclasses import replace
from typing import Any

import numpy as np

from bestk.base.settings import settings_of
from bestk.base.validation import as_features
from bestk.problem.regression import Regression
from bestk.results.result import Result, Snapshot
from bestk.results.status import Status
from bestk.search.automatic_box import in_box
from bestk.search.solve import solve_problem
from bestk.structure.asked import Asked
from bestk.structure.compose import NoModel, named_features


def runner_up(
    problem: Regression,
    result: Result,
    **options: Any,
) -> Result | None:
    """The best model of at most ``result.k`` features that lacks some feature of `result`.

    `options` are those of :func:`bestk.solve`. With groups it lacks some group of the result.

    Its bound is proven for all such models. None where all features of the result must be included
    or are free.
    A problem that chooses its box takes that of the result: both are known for the same models.

    Models that lack a feature are sorted by the first one they lack: the i-th part of the search
    leaves out feature i and includes those before it. Each part has one feature less to choose than
    the one before, so the first one decides the time.
    """
    asked = Asked.taken_from(options)
    settings_of(options).for_many()
    if not isinstance(result, Result):
        raise TypeError(f"result must be a bestk.Result, got one of type {type(result).__name__}")
    if len(result.coef) != problem.n_features:
        raise ValueError(
            f"result has {len(result.coef)} features, but the problem has {problem.n_features}; "
            "pass a result of this problem"
        )
    if result.structure is not None:
        asked = replace(asked, structure=result.structure)
    if problem.chooses_box:
        problem = in_box(problem, result.box)
    required, forbidden, uncounted = (
        _features(problem, result, word, getattr(asked, word))
        for word in ("include", "exclude", "free")
    )
    parts: list[Result] = []
    for features in _choices(result, np.union1d(required, uncounted)):
        choices = {
            "include": required,
            "exclude": np.append(forbidden, features),
            "free": uncounted,
            "structure": asked.structure,
        }
        required = np.append(required, features)
        try:
            part = solve_problem(problem, result.k, **choices, **options)
        except NoModel:  # the rules ask for these features
            continue
        parts.append(part)
        if part.status is Status.INTERRUPTED:
            # The bound of the result holds for the parts not searched, if it holds outside boxes.
            holds = result.box is None or result.box == problem.box
            return _best_of(parts, result.lower_bound if holds else 0.0)
    return _best_of(parts) if parts else None


def _features(problem: Regression, result: Result, word: str, value: Any) -> np.ndarray:
    """Features by name or number, also by names of groups where there are some."""
    if result.structure is not None:
        return named_features(result.structure, word, value, problem.feature_names)
    return as_features(word, value, problem.n_features, problem.feature_names)


def _choices(result: Result, given: np.ndarray) -> list[np.ndarray]:
    """Features of the result, or those of its groups, that are not given."""
    if result.structure is None:
        return [np.array([feature]) for feature in np.setdiff1d(result.support, given)]
    groups = [result.structure.members(g) for g in result.chosen]
    return [members for members in groups if not np.isin(members, given).all()]


def _best_of(parts: list[Result], floor: float = np.inf) -> Result:
    """The best result, with the bound that all of them, and the floor, prove together."""
    best = min(parts, key=lambda part: part.objective)
    unproven = [part.status for part in parts if not part.is_closed]
    end = Snapshot(
        seconds=sum(part.seconds for part in parts),
        n_nodes=sum(part.n_nodes for part in parts),
        n_open=0,
        objective=best.objective,
        lower_bound=min(floor, *(part.lower_bound for part in parts)),
        yy=best.yy,
    )
    return replace(
        best,
        lower_bound=end.lower_bound,
        gap=end.gap,
        explained_gap=end.explained_gap,
        status=unproven[0] if unproven else best.status,
        seconds=end.seconds,
        n_nodes=end.n_nodes,
        certificate=None,
    )
