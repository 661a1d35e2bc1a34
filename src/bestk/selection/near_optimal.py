"""How sure is the choice? All near-optimal models, complete and proven.

The supports of at most k features with an objective of at most a threshold are those that contain
an irreducible one. These are searched size by size: what contains a smaller one is known already
(theory: near-optimal).
"""

from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from time import perf_counter
from typing import Any

import numpy as np

from bestk.base.cluster import client_for
from bestk.base.fingerprint import fingerprint
from bestk.base.settings import Settings, settings_of
from bestk.base.validation import require_count, require_number
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression
from bestk.results.completeness import CompletenessCertificate, ListedModel, SizeProof
from bestk.results.gaps import PERFECT_FIT
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.search.automatic_box import boxed
from bestk.search.collecting import Collected, Collector, Fitted, NBest, TooMany, collect
from bestk.search.lessons import Lessons
from bestk.search.run import small_blas, solve_presolved
from bestk.selection.near_models import NearModel, NearOptimal
from bestk.supports.beam import fit_supports

# A share of an objective that is not told from rounding.
_ROUNDING = 1e-9


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
    X, y, k, alpha, bounds, include, exclude, sample_weight, fit_intercept
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
        unless ``gap_tol`` is given.

    Returns
    -------
    NearOptimal

    Examples
    --------
    >>> import bestk
    >>> X, y, _ = bestk.datasets.make_synthetic(200, 20, k=3, rho=0.9)
    >>> found = bestk.near_optimal(X, y, k=3, within=0.05)
    >>> found.complete, found.models[0].support.tolist()
    (True, [0, 6, 13])
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
    **options: Any,
) -> NearOptimal:
    """:func:`near_optimal` for a problem that is already there."""
    started = perf_counter()
    settings = settings_of({"gap_tol": 0.0} | options).for_many()
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
        presolved = Presolved.of(problem, include, exclude)
        presolved, starts = boxed(presolved, k, [], settings)
        lessons = Lessons(presolved.form)
        best = solve_presolved(presolved, k, starts, settings, started, lessons=lessons)
        search = _Search(presolved, k, best, lessons, settings, started)
        if n_best is not None:
            return search.n_best(n_best)
        threshold = (1.0 + within) * best.objective if below is None else float(below)
        return search.below(threshold, None if below is not None else within, max_models)


@dataclass(eq=False)
class _Search:
    """Searches for lists of models of one problem, and what they have come to."""

    presolved: Presolved
    k: int
    best: Result
    lessons: Lessons
    settings: Settings
    started: float
    n_nodes: int = field(init=False)
    engine: str = field(init=False)

    def __post_init__(self) -> None:
        self.n_nodes, self.engine = self.best.n_nodes, self.best.engine

    @property
    def problem(self) -> Regression:
        return self.presolved.problem

    def below(self, threshold: float, within: float | None, most: int) -> NearOptimal:
        """All irreducible supports up to the threshold, or below what `most` of them allow."""
        level, searched = threshold, None
        while searched is None:
            searched = self._size_by_size(level, most)
            if searched is None:
                level = self._lower_level
        found, collected = searched
        return self._result(found, collected, threshold, level, within, only_k=False)

    def _size_by_size(
        self, level: float, most: int
    ) -> tuple[list[Fitted], dict[int, Collected]] | None:
        """All sizes up to k; None if there are too many models."""
        presolved, slack = self.presolved, self._slack(level)
        found: list[Fitted] = []
        collected: dict[int, Collected] = {}
        for size in range(len(presolved.include), self.k + 1):
            features = presolved.size(size)
            if size > len(presolved.include) and features <= presolved.size(size - 1):
                break  # there are no more features
            collector = Collector(
                self.problem, self.lessons.fits, size=max(features, len(presolved.required)),
                level=level + slack, known=[one.support for one in found],
                most=most - len(found),
            )  # fmt: skip
            try:
                collected[size] = self._collect(size, collector)
            except TooMany:
                values = sorted(one.objective for one in [*found, *collector.found.values()])
                # Half of them, so that the next try is likely to be the last one.
                self._lower_level = float(np.nextafter(values[most // 2] - slack, 0.0))
                return None
            found += collector.found.values()
            if not collected[size].is_complete or any(len(one.support) == 0 for one in found):
                break
            if any(len(one.support) == len(presolved.required) for one in found):
                break  # what must be included is enough
        return found, collected

    def _collect(self, size: int, collector: Collector) -> Collected:
        settings, limit = self.settings, self.settings.node_limit
        if limit is not None:
            settings = replace(settings, node_limit=max(limit - self.n_nodes, 0))
        args = self.presolved, size, collector, self.lessons, settings, self.started
        collected = collect(*args)
        self.n_nodes += collected.n_nodes
        return collected

    def _slack(self, level: float) -> float:
        return _ROUNDING * level + PERFECT_FIT * self.problem.yy

    def n_best(self, count: int) -> NearOptimal:
        """The best supports of exactly k features."""
        presolved = self.presolved
        size = max(presolved.size(self.k), len(presolved.required))
        collector = NBest(self.problem, self.lessons.fits, size=size, count=count)
        self._first_ones(collector, count)
        collected = {self.k: self._collect(self.k, collector)}
        found = list(collector.found.values())
        level = max((one.objective for one in found), default=0.0)
        return self._result(found, collected, level, level, None, only_k=True)

    def _first_ones(self, collector: NBest, count: int) -> None:
        """Good supports to begin with: swaps of good ones, all there are if these are few."""
        form, size, inside = self.presolved.form, collector.size, self.presolved.inside
        if form is None or size == 0:
            collector.offer(self.presolved.required)
            return
        free = np.setdiff1d(np.arange(form.p), inside)
        if comb(len(free), size - len(inside)) <= max(count, 1000):
            for chosen in combinations(free, size - len(inside)):
                collector.offer(form.features[np.concatenate([inside, chosen]).astype(np.intp)])
            return
        start = np.searchsorted(form.features, np.intersect1d(self.best.support, form.features))
        others = np.setdiff1d(np.arange(form.p), start)
        first = np.concatenate([start, others])[:size]
        known: set[bytes] = set()
        rows = [np.sort(first)]
        while len(known) < count and rows:
            near = [row for row in _swaps(rows.pop(0), free, form.p) if row.tobytes() not in known]
            if not near:
                continue
            _, values = fit_supports(form, np.array(near))
            order = np.argsort(values, kind="stable")[: 2 * count]
            known.update(near[i].tobytes() for i in order)
            rows += [near[i] for i in order]
            for i in order:
                collector.offer(form.features[near[i]])

    def _result(
        self,
        found: list[Fitted],
        collected: dict[int, Collected],
        threshold: float,
        level: float,
        within: float | None,
        *,
        only_k: bool,
    ) -> NearOptimal:
        problem, presolved, best = self.problem, self.presolved, self.best
        all_searched = all(one.is_complete for one in collected.values())
        unproven = [one.status for one in collected.values() if not one.is_complete]
        bounds = [level, *(one.bound for one in collected.values() if not one.is_complete)]
        if not all_searched and not only_k:
            bounds.append(best.lower_bound)  # other sizes were not looked at
        if unproven:
            status = unproven[0]
        else:
            status = Status.OPTIMAL if problem.box is None else Status.CONDITIONAL
        names = problem.feature_names or tuple(f"x{j}" for j in range(problem.n_features))
        slack = self._slack(threshold)
        order = sorted(found, key=lambda one: (one.objective, len(one.support), *one.support))
        models = tuple(self._model(one, threshold, slack, names) for one in order)
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
            only_k=only_k,
            n_nodes=self.n_nodes,
            seconds=perf_counter() - self.started,
            engine=self.engine,
            names=names,
            problem=problem,
            certificate=self._certificate(models, collected, level, only_k)
            if all_searched
            else None,
        )

    def _model(self, one: Fitted, threshold: float, slack: float, names) -> NearModel:
        moments = self.problem.moments
        support = np.union1d(one.support, self.presolved.include).astype(np.intp)
        values = np.zeros(len(support))
        values[np.searchsorted(support, one.support)] = one.coef
        is_best = np.array_equal(support, self.best.support)
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
        proofs = [
            SizeProof(size, *one.proof) for size, one in collected.items() if one.proof is not None
        ]
        if len(proofs) < len(collected):
            return None
        question = self.presolved.question(self.k)
        return CompletenessCertificate(
            **question.as_dict(),
            fingerprint=fingerprint(self.problem.digest, question),
            threshold=level,
            only_k=only_k,
            copies=self.presolved.copies,
            models=tuple(ListedModel(m.support, m.values, m.intercept) for m in models),
            proofs=tuple(proofs),
        )


def _swaps(row: np.ndarray, free: np.ndarray, p: int) -> list[np.ndarray]:
    """The row, and all that differ from it by one feature; what is not free stays."""
    found = [row]
    others = np.setdiff1d(free, row)
    for out in np.intersect1d(row, free):
        rest = row[row != out]
        found += [np.sort(np.append(rest, other)) for other in others]
    return found
