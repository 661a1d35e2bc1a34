"""One enumeration for several ridge penalties.

The objective of a support grows with alpha: what is too bad for the smallest penalty is too bad
for all (theory: penalties). Where bounds are useless and all supports have to be tried, as in
libraries of collinear monomials, most of that work is done once.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from time import perf_counter

import numpy as np

from bestk.base.settings import Settings
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.form.presolve import Presolved
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.search.lessons import Lessons
from bestk.search.run import solve_presolved
from bestk.supports.enumeration import (
    LimitReached,
    Remainder,
    Shortlist,
    by_length,
    closing_cost,
    hits,
    may_beat,
)


def shortlists(
    problems: Sequence[Presolved],
    k: int,
    starts: Sequence[list[np.ndarray]],
    settings: Settings,
    lessons: Sequence[Lessons],
) -> list[Shortlist | None]:
    """A shortlist for each of several penalties (ascending), None where none pays."""
    nothing: list[Shortlist | None] = [None] * len(problems)
    if not _may_share(problems, k, settings):
        return nothing
    parts = zip(problems, starts, lessons, strict=True)
    known = [_first_model(*part, k, settings) for part in parts]
    if any(result.status is Status.INTERRUPTED for result in known):
        raise KeyboardInterrupt  # a search keeps it to itself
    if known[0].lower_bound > tuning().share_useless * known[0].objective:
        return nothing
    started = perf_counter()

    def stop() -> bool:
        limit = settings.time_limit
        return limit is not None and perf_counter() - started >= limit * len(problems)

    found = nothing
    with Workers(settings.n_threads, cluster=settings.cluster()) as workers:
        for group in _groups(known):
            try:
                found[group] = _share(problems[group], known[group], k, workers, stop)
            except LimitReached:
                break
    return found


def _groups(known: list[Result]) -> list[slice]:
    """Penalties whose models are so close that few supports lie below the worst of them."""
    edges = [0]
    for i, result in enumerate(known):
        if result.objective > tuning().share_close * known[edges[-1]].objective:
            edges.append(i)
    return [slice(*edge) for edge in pairwise([*edges, len(known)])]


def _share(problems, known, k, workers, stop) -> list[Shortlist | None]:
    """One enumeration for a group of penalties."""
    nothing: list[Shortlist | None] = [None] * len(problems)
    reach = max(result.objective for result in known)
    core = _core(problems[0], known, reach)
    if len(problems) < 2 or len(core) == 0:
        return nothing
    shared = _without_some_of(problems[0], core, k, reach, workers, stop)
    if shared is None:
        return nothing
    return [
        _with_all_of(problem, core, k, result.objective, shared, workers, stop)
        for problem, result in zip(problems, known, strict=True)
    ]


def _may_share(problems: Sequence[Presolved], k: int, settings: Settings) -> bool:
    first = problems[0]
    # Without a ridge, copies of a feature add nothing; with one they do.
    if len(problems) < 2 or first.form is None or first.problem.alpha == 0.0:
        return False
    if settings.device != "cpu":  # which enumerates for each of them in no time
        return False
    features = first.form.features
    if any(p.form is None or not np.array_equal(p.form.features, features) for p in problems):
        return False
    n_inside, size = len(first.inside), first.size(k)
    most = (
        tuning().share_most if settings.time_limit is None else settings.time_limit * len(problems)
    )
    cost = closing_cost(first.form.p - n_inside, n_inside, size - n_inside)
    allowed = settings.advanced.enumeration and settings.node_limit is None
    return allowed and size > n_inside and tuning().share_least <= cost <= most


def _first_model(
    presolved: Presolved, starts: list[np.ndarray], lessons: Lessons, k: int, settings: Settings
) -> Result:
    """Warm start and root bound."""
    quiet = replace(settings, node_limit=1, progress=None, callback=None)
    return solve_presolved(presolved, k, starts, quiet, perf_counter(), lessons=lessons)


def _core(presolved: Presolved, known: list[Result], reach: float) -> np.ndarray:
    """Features of all known models that cannot be left out of the first, the weightiest first."""
    support = known[0].support
    losses = [presolved.problem.fit(np.setdiff1d(support, [j]))[1] for j in support]
    return np.array(
        [
            support[i]
            for i in np.argsort(losses)[::-1]
            if losses[i] > reach
            and support[i] not in presolved.required
            and all(support[i] in result.support for result in known)
        ],
        dtype=np.intp,
    )


def _without_some_of(presolved, core, k, reach, workers, stop) -> list[np.ndarray] | None:
    """Supports that lack some of the core, by the first they lack; None if they are too many."""
    listed: list[np.ndarray] = []
    for i, feature in enumerate(core):
        found = _listed(presolved, core[:i], feature, k, reach, workers, stop)
        if found is None:
            return None
        listed += found
    return listed


def _with_all_of(presolved, core, k, objective, shared, workers, stop) -> Shortlist | None:
    """The supports that have the core, and those of the others that are still good enough."""
    found = _listed(presolved, core, None, k, objective, workers, stop)
    if found is None:
        return None
    form, value = presolved.form, objective / presolved.problem.yy
    for rows in by_length(shared):
        found += list(rows[may_beat(form, rows, value)])
    return Shortlist([form.features[support] for support in found], objective)


def _listed(presolved, inside, outside, k, objective, workers, stop) -> list[np.ndarray] | None:
    """Supports with some features and without another that may be better than an objective."""
    form = presolved.form
    is_chosen = np.isin(form.features, np.union1d(inside, presolved.required))
    chosen = np.flatnonzero(is_chosen)
    free = np.flatnonzero(~is_chosen & (form.features != outside))
    r = presolved.size(k) - len(chosen)
    value = objective / presolved.problem.yy
    most = tuning().share_hits if outside is not None else None
    node = Remainder(chosen, free, r)
    return hits(form, node, value, workers, stop, most=most, copies_matter=True)
