"""How sure is the choice? All near-optimal models, complete and proven.

The supports of at most k features with an objective of at most a threshold are those that contain
an irreducible one. These are searched size by size: what contains a smaller one is known already
(theory: near-optimal).
"""

from dataclasses import replace
from itertools import combinations
from math import comb
from time import perf_counter
from typing import Any

import numpy as np

from bestk.base.cluster import client_for
from bestk.base.fingerprint import fingerprint
from bestk.base.settings import Settings, settings_of
from bestk.base.state import State
from bestk.base.validation import require_count, require_number
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression
from bestk.results.completeness import CompletenessCertificate, ListedModel, SizeProof
from bestk.results.gaps import PERFECT_FIT
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.rivals.models import NearModel, NearOptimal
from bestk.rivals.stages import ListWriter, Stage, stage_in
from bestk.search.automatic_box import boxed, first_model
from bestk.search.collecting import Collected, Collector, Fitted, NBest, TooMany, collect
from bestk.search.lessons import Lessons
from bestk.search.run import result_of, small_blas, solve_presolved
from bestk.subtrees.recorder import Recorder
from bestk.supports.beam import fit_supports

# A share of an objective that is not told from rounding.
_ROUNDING = 1e-9
# Supports of k features below a threshold that are few: each is fitted, with its parts.
_FEW = 500
# Supports whose swaps are tried for a start, where the best of one size are wanted.
_STARTS = 10


def near_optimal(
    X: Any,
    y: Any,
    k: int,
    *,
    within: float = 0.02,
    below: float | None = None,
    n_best: int | None = None,
    max_models: int = 100_000,
    alpha: float = 0.0,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    free: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    n_threads: int | None = None,
    device: str = "cpu",
    client: Any = None,
    **options: Any,
) -> NearOptimal:
    """All models of at most k features that are nearly as good as the best, and no others.

    Parameters
    ----------
    X, y, k, alpha, bounds, include, exclude, free, sample_weight, fit_intercept
        As in :func:`bestk.solve`.
    within : float
        Near-optimal are objectives of at most (1 + within) times the best.
    below : float or None
        An objective to be used as the threshold instead.
    n_best : int or None
        Instead, the best supports of exactly k features, so many of them; ties with the last one
        may be left out.
    max_models : int
        If more models than this would be listed, the best ones are, and ``complete_below`` says
        below which objective none is missing.
    n_threads, device, client
        As in :func:`bestk.solve`.
    **options
        Limits and other options of :func:`bestk.solve`; the best model is proven with a gap of 0
        unless ``gap_tol`` is given. With `checkpoint`, the same call goes on from the file of a run
        that was killed or came to a limit.

    Returns
    -------
    NearOptimal

    Examples
    --------
    >>> import bestk
    >>> X, y, _ = bestk.datasets.make_synthetic(200, 20, k=3, rho=0.9)
    >>> found = bestk.near_optimal(X, y, k=3, within=0.05)
    >>> found.complete, found.models[0].support.tolist()
    (True, [0, 6, 12])
    """
    client = client_for(X, client)
    problem = Regression.from_data(
        X,
        y,
        alpha=alpha,
        bounds=bounds,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        n_threads=n_threads,
        device=device,
        client=client,
    )
    options |= {"n_threads": n_threads, "device": device, "client": client}
    return near_optimal_of(
        problem,
        k,
        within=within,
        below=below,
        n_best=n_best,
        max_models=max_models,
        include=include,
        exclude=exclude,
        free=free,
        **options,
    )


def near_optimal_of(
    problem: Regression,
    k: int,
    *,
    within: float = 0.02,
    below: float | None = None,
    n_best: int | None = None,
    max_models: int = 100_000,
    include: Any = None,
    exclude: Any = None,
    free: Any = None,
    **options: Any,
) -> NearOptimal:
    """:func:`near_optimal` for a problem that is already there."""
    started = perf_counter()
    settings = settings_of({"gap_tol": 0.0} | options)
    k = require_count("k", k, least=0)
    require_number("within", within, least=0.0)
    require_count("max_models", max_models, least=1)
    if below is not None:
        require_number("below", below, least=0.0)
    if n_best is not None:
        require_count("n_best", n_best, least=1)
        if below is not None:
            raise ValueError("n_best and below ask for different lists; give one of them")
    with small_blas(problem, settings):
        presolved = Presolved.of(problem, include, exclude, free)
        presolved, starts = boxed(presolved, k, [], settings)
        if len(presolved.include) > k:
            raise ValueError(
                f"include names {len(presolved.include)} features, but k = {k}; raise k"
            )
        request = {"within": within, "below": below, "n_best": n_best, "max_models": max_models}
        search = _Search(presolved, k, starts, settings, started, request)
        if n_best is not None:
            return search.n_best(n_best)
        if below is not None:
            return search.below(float(below), max_models)
        return search.within(within, max_models)


class _Search:
    """Searches for lists of models of one problem, and what they have come to."""

    def __init__(
        self,
        presolved: Presolved,
        k: int,
        starts: list[np.ndarray],
        settings: Settings,
        started: float,
        request: dict[str, Any],
    ) -> None:
        self.presolved, self.k, self.started = presolved, k, started
        self.settings = replace(settings, checkpoint=None)
        self.problem, self.lessons = presolved.problem, Lessons(presolved.form)
        self.first = first_model(presolved, k, starts, settings, self.lessons.fits)
        self.n_nodes = 0
        self.writer: ListWriter | None = None
        self.saved: tuple[Stage, dict[str, State]] | None = None
        if settings.checkpoint is not None:
            self.writer = ListWriter(settings, presolved, k, request)
            self.saved = stage_in(settings.checkpoint, presolved, k, request, settings)
        if self.saved is not None:
            self.first.offer(self.saved[0].first)
            self.n_nodes = sum(one.n_nodes for one in self.saved[0].collected.values())
        # All supports of k features below the threshold, where they are few.
        self.largest: list[Fitted] | None = None

    def within(self, share: float, most: int) -> NearOptimal:
        """Up to a share above the best; a better best model means another threshold."""
        while True:
            objective = self.first.objective
            found = self.below((1.0 + share) * objective, most, share)
            if found.best.objective >= objective:
                return found
            self.first.offer(found.best.support)
            if found.status is not Status.OPTIMAL:  # a limit came; what is listed counts
                return self._lowered(found, (1.0 + share) * found.best.objective)

    def _lowered(self, found: NearOptimal, threshold: float) -> NearOptimal:
        """An incomplete list with a smaller threshold: what contains others may be missing now."""
        return replace(
            found,
            threshold=threshold,
            models=tuple(model for model in found.models if model.objective <= threshold),
            complete_below=min(found.best.lower_bound, threshold),
            certificate=None,
        )

    def below(self, threshold: float, most: int, share: float | None = None) -> NearOptimal:
        """All irreducible supports up to the threshold, or below what `most` of them allow."""
        level, searched, stage = threshold, None, self._stage
        if stage is not None and stage.name == "sizes":
            level = stage.level
        else:
            searched = self._from_above(threshold, most)
        while searched is None:
            searched = self._size_by_size(level, most)
            if searched is None:
                level = self._lower_level
        found, collected = searched
        for one in self.largest or found:
            self.first.offer(one.support)
        best = self._best(found, collected)
        return self._result(found, collected, best, threshold, level, share, only_k=False)

    def _best(self, found: list[Fitted], collected: dict[int, Collected]) -> Result:
        """The best model with its proof.

        If all supports of k features below the threshold are known, the tree that shows it is also
        the proof for the best of them. So it is if no smaller model is below the threshold.
        """
        presolved, k, settings = self.presolved, self.k, self.settings
        last, first = collected.get(k), self.first
        size = max(presolved.size(k), len(presolved.required))
        is_complete = all(one.is_complete for one in collected.values())
        listed = {one.support.tobytes() for one in self.largest or found}
        is_all = self.largest is not None or all(len(one.support) == size for one in found)
        if last is not None and is_all and first.support.tobytes() in listed:
            bound = first.objective if is_complete else min(first.objective, last.bound)
            status = Status.OPTIMAL if self.problem.box is None else Status.CONDITIONAL
            return result_of(
                presolved, k, first, bound, status if is_complete else last.status, last.n_nodes,
                [], last.recorder, settings, self.started, last.engine,
            )  # fmt: skip
        if not is_complete:
            settings = replace(settings, node_limit=0)  # a limit came, or Ctrl-C
        starts = [first.support]
        return solve_presolved(presolved, k, starts, settings, self.started, lessons=self.lessons)

    def _from_above(
        self, level: float, most: int
    ) -> tuple[list[Fitted], dict[int, Collected]] | None:
        """From the supports of k features, if few are below the level; None if they are not.

        Whatever is smaller and below the level is a part of one of them.
        """
        presolved = self.presolved
        size = presolved.size(self.k)
        level += self._slack(level)
        if size <= len(presolved.inside) or self._fitted(presolved.required).objective <= level:
            return None  # there is nothing to choose, or no need to
        collector = Collector(
            self.problem, self.lessons.fits, size=size, level=level, known=[], most=_FEW
        )
        collector.copies_matter = True
        try:
            collected = self._collect(self.k, collector, Stage(name="above", size=self.k))
        except TooMany:
            return None
        members = list(collector.found.values())
        if not collected.is_complete and self.first.objective <= level:
            members.append(self._fitted(self.first.support))  # a limit came before it was found
        found = self._irreducible(members, level)
        if len(found) > most:
            return None
        self.largest = members
        return found, {self.k: collected}

    def _irreducible(self, members: list[Fitted], level: float) -> list[Fitted]:
        """The smallest supports up to the level that are parts of members."""
        required = set(self.presolved.required.tolist())
        waiting = {one.support.tobytes(): one for one in members}
        seen, found = set(waiting), []
        while waiting:
            _, one = waiting.popitem()
            is_reducible = False
            for j in one.support:
                if j in required:
                    continue
                part = self._fitted(one.support[one.support != j])
                if part.objective <= level:
                    is_reducible = True
                    if part.support.tobytes() not in seen:
                        seen.add(part.support.tobytes())
                        waiting[part.support.tobytes()] = part
            if not is_reducible:
                found.append(one)
        return found

    def _with_first(self, found: list[Fitted], level: float) -> list[Fitted]:
        """What is known of the best model, where a limit came before it was found again."""
        if self.first.objective > level:
            return found
        known = {one.support.tobytes() for one in found}
        parts = self._irreducible([self._fitted(self.first.support)], level)
        return [*found, *(one for one in parts if one.support.tobytes() not in known)]

    def _fitted(self, support: np.ndarray) -> Fitted:
        fits, key = self.lessons.fits, support.tobytes()
        if key not in fits:
            fits[key] = self.problem.fit(support)
        return Fitted(support, *fits[key])

    def _size_by_size(
        self, level: float, most: int
    ) -> tuple[list[Fitted], dict[int, Collected]] | None:
        """All sizes up to k; None if there are too many models."""
        presolved, slack, self.largest = self.presolved, self._slack(level), None
        found: list[Fitted] = []
        collected: dict[int, Collected] = {}
        begin, stage = len(presolved.include), self._stage
        if stage is not None and stage.name == "sizes" and stage.level == level:
            begin, collected = stage.size, dict(stage.collected)
            found = [self._fitted(support) for support in stage.found]
        for size in range(begin, self.k + 1):
            features = presolved.size(size)
            if size > len(presolved.include) and features <= presolved.size(size - 1):
                break  # there are no more features
            collector = Collector(
                self.problem, self.lessons.fits, size=max(features, len(presolved.required)),
                level=level + slack, known=[one.support for one in found],
                most=most - len(found),
            )  # fmt: skip
            stage = Stage(
                name="sizes", size=size, level=level, found=[one.support for one in found],
                collected=dict(collected),
            )  # fmt: skip
            try:
                collected[size] = self._collect(size, collector, stage)
            except TooMany:
                values = sorted(one.objective for one in [*found, *collector.found.values()])
                # Half of them, so that the next try is likely to be the last one.
                self._lower_level = float(np.nextafter(values[most // 2] - slack, 0.0))
                return None
            found += collector.found.values()
            if not collected[size].is_complete:
                found = self._with_first(found, level + slack)
                break
            if any(len(one.support) == 0 for one in found):
                break
            if any(len(one.support) == len(presolved.required) for one in found):
                break  # what must be included is enough
        return found, collected

    @property
    def _stage(self) -> Stage | None:
        """Where a run that goes on was, until that is reached."""
        return None if self.saved is None else self.saved[0]

    def _collect(self, size: int, collector: Collector, stage: Stage) -> Collected:
        settings, limit = self.settings, self.settings.node_limit
        if limit is not None:
            settings = replace(settings, node_limit=max(limit - self.n_nodes, 0))
        stage.first = self.first.support
        stage.members = lambda: [one.support for one in list(collector.found.values())]
        if self.writer is not None:
            self.writer.stage = stage
        parts = self._saved_tree(stage, collector)
        args = self.presolved, size, collector, self.lessons, settings, self.started
        collected = collect(*args, writer=self.writer, saved=parts)
        self.n_nodes += collected.n_nodes
        return collected

    def _saved_tree(self, stage: Stage, collector: Collector) -> dict[str, State] | None:
        """The tree of a run that goes on, if it was in this stage, and its models."""
        if self.saved is None:
            return None
        before, parts = self.saved
        self.saved = None
        if (before.name, before.size) != (stage.name, stage.size):
            return None
        for support in before.members():
            collector.offer(support)
        return parts

    def _slack(self, level: float) -> float:
        return _ROUNDING * level + PERFECT_FIT * self.problem.yy

    def n_best(self, count: int) -> NearOptimal:
        """The best supports of exactly k features."""
        presolved = self.presolved
        settings, starts = self.settings, [self.first.support]
        best = solve_presolved(
            presolved, self.k, starts, settings, self.started, lessons=self.lessons
        )
        self.first.offer(best.support)
        size = max(presolved.size(self.k), len(presolved.required))
        collector = NBest(self.problem, self.lessons.fits, size=size, count=count)
        if self._first_ones(collector, count):
            recorder = Recorder(settings.record_limit)
            recorder.close_by_enumeration(0)
            one = Collected(Status.OPTIMAL, np.inf, 0, recorder, best.engine)
        else:
            one = self._collect(self.k, collector, Stage(name="n best", size=self.k))
        collected, found = {self.k: one}, list(collector.found.values())
        level = max((one.objective for one in found), default=0.0)
        return self._result(found, collected, best, level, level, None, only_k=True)

    def _first_ones(self, collector: NBest, count: int) -> bool:
        """Good supports to begin with: swaps of good ones. True if these are all there are."""
        form, size, inside = self.presolved.form, collector.size, self.presolved.inside
        if form is None or size <= len(inside):
            collector.offer(self.presolved.required)
            return True
        free = np.setdiff1d(np.arange(form.p), inside)
        if comb(len(free), size - len(inside)) <= max(count, 1000):
            for chosen in combinations(free, size - len(inside)):
                collector.offer(form.features[np.concatenate([inside, chosen]).astype(np.intp)])
            return True
        start = np.searchsorted(form.features, np.intersect1d(self.first.support, form.features))
        others = np.setdiff1d(np.arange(form.p), start)
        values: dict[bytes, float] = {}
        waiting = [np.sort(np.concatenate([start, others])[:size])]
        done: set[bytes] = set()
        while waiting and (len(values) < count or len(done) < _STARTS):
            row = waiting.pop(0)
            done.add(row.tobytes())
            near = _swaps(row, free)
            found = fit_supports(form, np.array(near))[1]
            values |= {one.tobytes(): value for one, value in zip(near, found, strict=True)}
            best = sorted(values, key=lambda key: values[key])[: max(count, _STARTS)]
            waiting = [np.frombuffer(key, row.dtype) for key in best if key not in done]
        rows = [np.frombuffer(key, np.int64) for key in sorted(values, key=lambda k: values[k])]
        for support in rows[: 2 * count]:
            collector.offer(form.features[support])
        return False

    def _result(
        self,
        found: list[Fitted],
        collected: dict[int, Collected],
        best: Result,
        threshold: float,
        level: float,
        within: float | None,
        *,
        only_k: bool,
    ) -> NearOptimal:
        problem, presolved = self.problem, self.presolved
        all_searched = all(one.is_complete for one in collected.values())
        unproven = [one.status for one in collected.values() if not one.is_complete]
        bounds = [level, *(one.bound for one in collected.values() if not one.is_complete)]
        if not all_searched and not only_k and self.largest is None:
            bounds.append(best.lower_bound)  # other sizes were not looked at
        if unproven:
            status = unproven[0]
        else:
            status = Status.OPTIMAL if problem.box is None else Status.CONDITIONAL
        names = problem.feature_names or tuple(f"x{j}" for j in range(problem.n_features))
        slack = self._slack(threshold)
        order = sorted(found, key=lambda one: (one.objective, len(one.support), *one.support))
        models = tuple(self._model(one, best, threshold, slack, names) for one in order)
        return NearOptimal(
            k=self.k,
            alpha=problem.alpha,
            threshold=threshold,
            within=within,
            best=best,
            models=models,
            complete=all_searched and level == threshold,
            complete_below=min(bounds),
            status=status,
            copies=tuple((int(a), int(b)) for a, b in presolved.copies),
            include=presolved.include,
            exclude=presolved.exclude,
            free=presolved.free,
            only_k=only_k,
            n_nodes=self.n_nodes,
            seconds=perf_counter() - self.started,
            engine=best.engine,
            names=names,
            problem=problem,
            certificate=self._certificate(models, collected, level, only_k)
            if all_searched
            else None,
        )

    def _model(self, one: Fitted, best: Result, threshold: float, slack, names) -> NearModel:
        moments = self.problem.moments
        support = np.union1d(one.support, self.presolved.include).astype(np.intp)
        values = np.zeros(len(support))
        values[np.searchsorted(support, one.support)] = one.coef
        is_best = np.array_equal(support, best.support)
        intercept = moments.y_shift - moments.shift[support] @ values
        return NearModel(
            support=support,
            values=values,
            intercept=float(intercept),
            objective=one.objective,
            is_borderline=abs(one.objective - threshold) <= slack and not is_best,
            all_names=names,
        )

    def _certificate(
        self, models, collected: dict[int, Collected], level: float, only_k: bool
    ) -> CompletenessCertificate | None:
        proofs = []
        for size, one in collected.items():
            proof = one.recorder.proof()
            if proof is None:
                return None
            proofs.append(SizeProof(size, *proof))
        largest = None
        if self.largest is not None:
            include = self.presolved.include
            largest = tuple(np.union1d(one.support, include) for one in self.largest)
        question = self.presolved.question(self.k)
        return CompletenessCertificate(
            **question.as_dict(),
            fingerprint=fingerprint(self.problem.digest, question),
            threshold=level,
            only_k=only_k,
            copies=self.presolved.copies,
            models=tuple(ListedModel(m.support, m.values, m.intercept) for m in models),
            largest=largest,
            proofs=tuple(proofs),
        )


def _swaps(row: np.ndarray, free: np.ndarray) -> list[np.ndarray]:
    """The row, and all that differ from it by one feature; what is not free stays."""
    found = [row]
    others = np.setdiff1d(free, row)
    for out in np.intersect1d(row, free):
        rest = row[row != out]
        found += [np.sort(np.append(rest, other)) for other in others]
    return found
