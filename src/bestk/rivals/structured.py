"""Lists of near-optimal models with structure: size by size, over choices of groups.

That no choice may contain a known one is a rule like others. So the proof that a list is complete
is one for a question with these rules: its best model is not below the threshold.
"""

from time import perf_counter
from typing import NamedTuple

import numpy as np

from bestk.base.fingerprint import fingerprint
from bestk.base.settings import Settings
from bestk.choices.incumbent import ChoiceCollector, Fitted, TooManyChoices
from bestk.choices.record import ChoiceRecord
from bestk.choices.run import Collected, Prepared, collect_choices, solve_prepared
from bestk.results.completeness import CompletenessCertificate, ListedModel, SizeProof
from bestk.results.gaps import PERFECT_FIT
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.rivals.models import NearModel, NearOptimal
from bestk.structure.compose import NoModel

# A share of an objective that is not told from rounding.
_ROUNDING = 1e-9


class _Searched(NamedTuple):
    """Irreducible choices with their fits, and the searches for them.

    The last one is the proof that nothing is left, if there was anything to search.
    """

    found: list[tuple[np.ndarray, Fitted]]
    collected: list[Collected]
    is_rest_searched: bool

    @property
    def unfinished(self) -> list[Collected]:
        return [one for one in self.collected if not one.is_complete]


def near_optimal_choices(
    prepared: Prepared,
    k: int,
    settings: Settings,
    started: float,
    *,
    within: float,
    below: float | None,
    max_models: int,
) -> NearOptimal:
    """All irreducible choices up to the threshold, or below what `max_models` of them allow."""
    if settings.checkpoint is not None:
        raise ValueError(
            "checkpoint cannot be used for lists of models with groups, rules or constraints; "
            "leave it out"
        )
    best = solve_prepared(prepared, k, [], settings, started)
    share = within if below is None else None
    threshold = (1.0 + within) * best.objective if below is None else float(below)
    level, searched = threshold, None
    if not best.is_closed and best.gap > settings.gap_tol:  # a limit came, or Ctrl-C
        searched = _Searched([], [], False)
    while searched is None:
        slack = _slack(prepared, level)
        try:
            searched = _size_by_size(prepared, k, level + slack, max_models, settings, started)
        except _Lower as lower:
            level = lower.level
    return _listed(prepared, k, searched, best, threshold, level, share, started)


class _Lower(Exception):
    """There are too many models: a level below which there are fewer."""

    def __init__(self, level: float) -> None:
        self.level = level


def _slack(prepared: Prepared, level: float) -> float:
    return _ROUNDING * level + PERFECT_FIT * prepared.problem.yy


def _size_by_size(
    prepared: Prepared, k: int, level: float, most: int, settings: Settings, started: float
) -> _Searched:
    found: list[tuple[np.ndarray, Fitted]] = []
    collected: list[Collected] = []
    is_searched = False
    sizes = [*range(k + 1), k]  # the last time to see that nothing is left
    for place, size in enumerate(sizes):
        rest = prepared.without([chosen for chosen, _ in found])
        collector = ChoiceCollector(prepared.fits, level, most - len(found))
        try:
            one = collect_choices(rest, size, collector, settings, started)
        except NoModel:
            is_searched = False  # nothing else is admissible, or nothing so small
            continue
        except TooManyChoices:
            every = [fitted for _, fitted in [*found, *collector.found.values()]]
            objectives = sorted(fitted.objective for fitted in every)
            # Half of them, so that the next try is likely to be the last one.
            lower = float(np.nextafter(objectives[most // 2] - _slack(prepared, level), 0.0))
            if lower <= 0.0:  # perfect fits cannot be told apart
                is_searched = False
                break
            raise _Lower(lower) from None
        collected.append(one)
        is_searched = True
        found += collector.found.values()
        if not one.is_complete or (place >= k and not collector.found):
            break
    return _Searched(found, collected, is_searched)


def _listed(prepared, k, searched, best: Result, threshold, level, share, started) -> NearOptimal:
    problem, structure = prepared.problem, prepared.structure
    unfinished = searched.unfinished
    stopped = unfinished[0].status if unfinished else best.status
    is_complete = not unfinished and best.is_closed
    bounds = [level, *(one.bound for one in unfinished)]
    if not is_complete:
        bounds.append(best.lower_bound)
    names = problem.feature_names or tuple(f"x{j}" for j in range(problem.n_features))
    slack = _slack(prepared, threshold)
    order = sorted(searched.found, key=lambda one: (one[1].objective, len(one[0]), *one[0]))
    models = []
    for chosen, fitted in order:
        support = structure.features_of(chosen)
        shift = problem.moments.shift[support] @ fitted.coef
        models.append(
            NearModel(
                support=support,
                values=fitted.coef,
                intercept=float(problem.moments.y_shift - shift),
                objective=fitted.objective,
                is_borderline=abs(fitted.objective - threshold) <= slack
                and not np.array_equal(chosen, best.chosen),
                all_names=names,
            )
        )
    is_whole = is_complete and level == threshold
    return NearOptimal(
        k=k,
        alpha=problem.alpha,
        threshold=threshold,
        within=share,
        best=best,
        models=tuple(models),
        complete=is_whole,
        complete_below=min(bounds),
        status=Status.OPTIMAL if is_complete else stopped,
        copies=(),
        include=prepared.include,
        exclude=prepared.exclude,
        free=prepared.free,
        only_k=False,
        n_nodes=best.n_nodes + sum(one.tree.n_nodes for one in searched.collected),
        seconds=perf_counter() - started,
        engine=best.engine,
        names=names,
        problem=problem,
        structure=structure,
        certificate=_certificate(prepared, k, searched, best, models, level)
        if is_complete
        else None,
    )


def _certificate(
    prepared: Prepared, k: int, searched: _Searched, best: Result, models: list[NearModel], level
) -> CompletenessCertificate | None:
    """The list, and the proof that nothing else is below the level."""
    record = ChoiceRecord(prepared.form, np.inf)
    record.recorder.close_by_enumeration(0)  # where nothing else is admissible
    if searched.is_rest_searched:
        record = searched.collected[-1].tree.record
    proof = record.proof(best.chosen)
    if proof is None:
        return None
    question = prepared.question(k)
    return CompletenessCertificate(
        **question.as_dict(),
        fingerprint=fingerprint(prepared.problem.digest, question),
        threshold=level,
        only_k=False,
        copies=np.zeros((0, 2), dtype=np.intp),
        models=tuple(ListedModel(m.support, m.values, m.intercept) for m in models),
        largest=None,
        proofs=(SizeProof(k, *proof),),
    )
