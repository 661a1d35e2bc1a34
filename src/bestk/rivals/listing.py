"""What a search has found becomes a list of models, with its certificate."""

from dataclasses import replace
from time import perf_counter
from typing import NamedTuple, TypeVar

import numpy as np

from bestk.base.fingerprint import fingerprint
from bestk.form.presolve import Presolved
from bestk.results.completeness import CompletenessCertificate, ListedModel, SizeProof
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.rivals.models import NearModel, NearOptimal
from bestk.search.collecting import Collected, Fitted

Supported = TypeVar("Supported", Fitted, NearModel)


class Searched(NamedTuple):
    """Irreducible supports, the searches for them by size, and perhaps all largest supports."""

    found: list[Fitted]
    collected: dict[int, Collected]
    largest: list[Fitted] | None = None

    @property
    def is_complete(self) -> bool:
        return all(one.is_complete for one in self.collected.values())


class Limits(NamedTuple):
    """The threshold that was asked for, and the level up to which there were not too many models.

    ``slack`` is what rounding may move an objective by, ``share`` the tolerance behind the
    threshold.
    """

    threshold: float
    level: float
    slack: float
    share: float | None
    only_k: bool = False


def listed(
    presolved: Presolved,
    k: int,
    searched: Searched,
    best: Result,
    limits: Limits,
    n_nodes: int,
    started: float,
) -> NearOptimal:
    """The list as users see it, with its certificate if all was searched."""
    problem, threshold = presolved.problem, limits.threshold
    unfinished = [one for one in searched.collected.values() if not one.is_complete]
    bounds = [limits.level, *(one.bound for one in unfinished)]
    if unfinished and not limits.only_k and searched.largest is None:
        bounds.append(best.lower_bound)  # other sizes were not looked at
    if unfinished:
        status = unfinished[0].status
    else:
        status = Status.OPTIMAL if problem.box is None else Status.CONDITIONAL
    names = problem.feature_names or tuple(f"x{j}" for j in range(problem.n_features))
    order = sorted(searched.found, key=lambda one: (one.objective, len(one.support), *one.support))
    models = tuple(_model(presolved, one, best, limits, names) for one in order)
    return NearOptimal(
        k=k,
        alpha=problem.alpha,
        threshold=threshold,
        within=limits.share,
        best=best,
        models=models,
        complete=not unfinished and limits.level == threshold,
        complete_below=min(bounds),
        status=status,
        copies=tuple((int(a), int(b)) for a, b in presolved.copies),
        include=presolved.include,
        exclude=presolved.exclude,
        free=presolved.free,
        only_k=limits.only_k,
        n_nodes=n_nodes,
        seconds=perf_counter() - started,
        engine=best.engine,
        names=names,
        problem=problem,
        certificate=None if unfinished else _certificate(presolved, k, searched, models, limits),
    )


def _model(presolved: Presolved, one: Fitted, best: Result, limits: Limits, names) -> NearModel:
    moments = presolved.problem.moments
    support = np.union1d(one.support, presolved.include).astype(np.intp)
    values = np.zeros(len(support))
    values[np.searchsorted(support, one.support)] = one.coef
    is_best = np.array_equal(support, best.support)
    intercept = moments.y_shift - moments.shift[support] @ values
    return NearModel(
        support=support,
        values=values,
        intercept=float(intercept),
        objective=one.objective,
        is_borderline=abs(one.objective - limits.threshold) <= limits.slack and not is_best,
        all_names=names,
    )


def _certificate(
    presolved: Presolved, k: int, searched: Searched, models, limits: Limits
) -> CompletenessCertificate | None:
    proofs = []
    for size, one in searched.collected.items():
        proof = one.recorder.proof()
        if proof is None:
            return None
        proofs.append(SizeProof(size, *proof))
    largest = None
    if searched.largest is not None:
        largest = tuple(np.union1d(one.support, presolved.include) for one in searched.largest)
    question = presolved.question(k)
    return CompletenessCertificate(
        **question.as_dict(),
        fingerprint=fingerprint(presolved.problem.digest, question),
        threshold=limits.level,
        only_k=limits.only_k,
        copies=presolved.copies,
        models=tuple(ListedModel(m.support, m.values, m.intercept) for m in models),
        largest=largest,
        proofs=tuple(proofs),
    )


def joined(parts: list[Supported], models: list[Supported]) -> list[Supported]:
    """Both, but for what contains another one: rounding may hide that a model can be smaller."""

    def is_part(one: Supported, other: Supported) -> bool:
        return bool(np.isin(one.support, other.support).all())

    models = [model for model in models if not any(is_part(part, model) for part in parts)]
    return models + [part for part in parts if not any(is_part(model, part) for model in models)]


def lowered(
    presolved: Presolved, found: NearOptimal, threshold: float, best: list[Fitted]
) -> NearOptimal:
    """An incomplete list with a smaller threshold: what contains others may be missing now.

    What the `best` model consists of is listed, whether it was found in time or not.
    """
    limits = Limits(threshold=threshold, level=threshold, slack=0.0, share=found.within)
    models = [model for model in found.models if model.objective <= threshold]
    parts = [_model(presolved, one, found.best, limits, found.names) for one in best]
    models = joined(parts, models)
    return replace(
        found,
        threshold=threshold,
        models=tuple(sorted(models, key=lambda model: model.objective)),
        complete_below=min(found.best.lower_bound, threshold),
        certificate=None,
    )
