"""The search for a list of models: from above if few are below the threshold, else size by size."""

from dataclasses import replace
from typing import Any

import numpy as np

from bestk.base.settings import Settings
from bestk.form.by_rows import MatrixByRows
from bestk.form.presolve import Presolved
from bestk.results.gaps import PERFECT_FIT
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.rivals.listing import Limits, Searched, joined, listed, lowered
from bestk.rivals.models import NearOptimal
from bestk.rivals.stages import ListWriter, Stage, stage_in
from bestk.rivals.starts import all_supports, good_supports
from bestk.runs.checkpoint import Checkpoint
from bestk.search.automatic_box import first_model
from bestk.search.collecting import Collected, Collector, Fitted, NBest, TooMany, collect
from bestk.search.lessons import Lessons
from bestk.search.run import concluded, solve_presolved
from bestk.subtrees.recorder import Recorder

# A share of an objective that is not told from rounding.
_ROUNDING = 1e-9
# Nodes after which a search for a better first model of wide data gives up.
_NODES_FIRST = 200
# Supports of k features below a threshold that are few: each is fitted, with its parts.
_FEW = 500


class ListSearch:
    """Searches for lists of models of one problem."""

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
        self.saved: tuple[Stage, Checkpoint] | None = None
        if settings.checkpoint is not None:
            self.writer = ListWriter(settings, presolved, k, request)
            self.saved = stage_in(settings.checkpoint, presolved, k, request, settings)
        if self.saved is not None:
            self.first.offer(self.saved[0].first)
            self.n_nodes = sum(one.n_nodes for one in self.saved[0].collected.values())

    def within(self, share: float, most: int) -> NearOptimal:
        """Up to a share above the best; a better best model means another threshold."""
        ended = self._improve_first()
        while True:
            objective = self.first.objective
            found = self.below((1.0 + share) * objective, most, share)
            if found.best.objective >= objective:
                break
            self.first.offer(found.best.support)
            if found.status not in (Status.OPTIMAL, Status.CONDITIONAL):  # a limit came
                threshold = (1.0 + share) * found.best.objective
                parts = self._with_first([], threshold)
                found = lowered(self.presolved, found, threshold, parts)
                break
        return found if ended is None else replace(found, status=ended)

    def _improve_first(self) -> Status | None:
        """Let a short search look for a better first model, if the data are wide.

        Among many alike features a beam often misses the best model, and a threshold that is only a
        little too large lets in far more than the list that was asked for. The status if Ctrl-C or
        the callback ended it, and all that is left to do is to say what is known.
        """
        form, settings = self.presolved.form, self.settings
        if self.saved is not None or form is None or not isinstance(form.matrix, MatrixByRows):
            return None
        limit = _NODES_FIRST if settings.node_limit is None else settings.node_limit
        settings = replace(settings, node_limit=min(limit, _NODES_FIRST))
        starts = [self.first.support]
        better = solve_presolved(
            self.presolved, self.k, starts, settings, self.started, lessons=self.lessons
        )
        self.first.offer(better.support)
        self.n_nodes += better.n_nodes
        if better.status not in (Status.INTERRUPTED, Status.STOPPED):
            return None
        self.settings = replace(self.settings, node_limit=0)
        return better.status

    def below(self, threshold: float, most: int, share: float | None = None) -> NearOptimal:
        """All irreducible supports up to the threshold, or below what `most` of them allow."""
        level, searched, stage = threshold, None, self._stage
        if stage is not None and stage.name == "sizes":
            level = min(stage.level, threshold)
        else:
            searched = self._from_above(threshold, most)
        while searched is None:
            searched = self._size_by_size(level, most)
            if searched is None:
                level = self._lower_level
        for one in searched.largest or searched.found:
            self.first.offer(one.support)
        bounds = Limits(threshold=threshold, level=level, slack=self._slack(threshold), share=share)
        return self._listed(searched, self._best(searched), bounds)

    def _listed(self, searched: Searched, best: Result, limits: Limits) -> NearOptimal:
        return listed(self.presolved, self.k, searched, best, limits, self.n_nodes, self.started)

    def _best(self, searched: Searched) -> Result:
        """The best model with its proof.

        If all supports of k features below the threshold are known, the tree that shows it is also
        the proof for the best of them. So it is if no smaller model is below the threshold.
        """
        presolved, k, settings = self.presolved, self.k, self.settings
        last, first = searched.collected.get(k), self.first
        size = max(presolved.size(k), len(presolved.required))
        is_complete, largest = searched.is_complete, searched.largest
        known = {one.support.tobytes() for one in largest or searched.found}
        is_all = largest is not None or all(len(one.support) == size for one in searched.found)
        if last is not None and is_all and first.support.tobytes() in known:
            bound = first.objective if is_complete else min(first.objective, last.bound)
            return concluded(
                presolved, k, first, bound, Status.OPTIMAL if is_complete else last.status,
                last.n_nodes, [], last.recorder, settings, self.started, last.engine,
            )  # fmt: skip
        if not is_complete:
            settings = replace(settings, node_limit=0)  # a limit came, or Ctrl-C
        starts = [first.support]
        return solve_presolved(presolved, k, starts, settings, self.started, lessons=self.lessons)

    def _from_above(self, level: float, most: int) -> Searched | None:
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
            collected = self._collect(
                self.k, collector, Stage(name="above", size=self.k, level=level)
            )
        except TooMany:
            return None
        members = list(collector.found.values())
        if not collected.is_complete and self.first.objective <= level:
            members.append(self._fitted(self.first.support))  # a limit came before it was found
        found = self._irreducible(members, level)
        return None if len(found) > most else Searched(found, {self.k: collected}, members)

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
        parts = self._irreducible([self._fitted(self.first.support)], level)
        return joined(parts, found)

    def _fitted(self, support: np.ndarray) -> Fitted:
        fits, key = self.lessons.fits, support.tobytes()
        if key not in fits:
            fits[key] = self.problem.fit(support)
        return Fitted(support, *fits[key])

    def _size_by_size(self, level: float, most: int) -> Searched | None:
        """All sizes up to k; None if there are too many models."""
        presolved, slack = self.presolved, self._slack(level)
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
                all_found = [*found, *collector.found.values()]
                best = sorted(all_found, key=lambda one: one.objective)[:most]
                # Half of them, so that the next try is likely to be the last one.
                self._lower_level = float(np.nextafter(best[most // 2].objective - slack, 0.0))
                if self._lower_level > 0.0:
                    return None
                # Perfect fits cannot be told apart: some of them is all there is to say.
                collected[size] = Collected(Status.PERFECT_FIT, 0.0, 0, Recorder(0.0), "")
                return Searched(best, collected)
            found += collector.found.values()
            if not collected[size].is_complete:
                found = self._with_first(found, level + slack)
                break
            if any(len(one.support) == 0 for one in found):
                break
            if any(len(one.support) == len(presolved.required) for one in found):
                break  # what must be included is enough
        return Searched(found, collected)

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
        saved = self._saved_tree(stage, collector)
        args = self.presolved, size, collector, self.lessons, settings, self.started
        collected = collect(*args, writer=self.writer, saved=saved)
        self.n_nodes += collected.n_nodes
        return collected

    def _saved_tree(self, stage: Stage, collector: Collector) -> Checkpoint | None:
        """The tree of a run that goes on, if it was in this stage, and its models."""
        if self.saved is None:
            return None
        before, saved = self.saved
        self.saved = None
        if (before.name, before.size, before.level) != (stage.name, stage.size, stage.level):
            return None
        for support in before.members():
            collector.offer(support)
        return saved

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
        all_are_known = self._offer_first(collector, count)
        recorder = Recorder(settings.record_limit)
        if all_are_known:
            recorder.close_by_enumeration(0)
            one = Collected(Status.OPTIMAL, np.inf, 0, recorder, best.engine)
        elif best.status is Status.INTERRUPTED:
            one = Collected(best.status, best.lower_bound, 0, recorder, best.engine)
        else:
            one = self._collect(self.k, collector, Stage(name="n best", size=self.k))
        found = list(collector.found.values())
        level = max((one.objective for one in found), default=0.0)
        limits = Limits(
            threshold=level, level=level, slack=self._slack(level), share=None, only_k=True
        )
        return self._listed(Searched(found, {self.k: one}), best, limits)

    def _offer_first(self, collector: NBest, count: int) -> bool:
        """Good supports to begin with; True if these are all there are."""
        form, size, inside = self.presolved.form, collector.size, self.presolved.inside
        if form is None or size <= len(inside):
            collector.offer(self.presolved.required)
            return True
        every = all_supports(form, inside, size, count)
        start = np.searchsorted(form.features, np.intersect1d(self.first.support, form.features))
        rows = good_supports(form, inside, start, size, count) if every is None else every
        for row in rows:
            collector.offer(form.features[row])
        return every is not None
