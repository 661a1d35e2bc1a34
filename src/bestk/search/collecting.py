"""All models below a level instead of the best one: what takes the place of an incumbent.

The search is the same. Its cutoff is the level, which no model lowers; whatever an enumeration
lists is fitted, and kept if it is below the level.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from bestk.base.settings import Settings
from bestk.base.threads import Workers
from bestk.devices.opening import open_device
from bestk.form.presolve import Presolved
from bestk.form.standard_form import StandardForm
from bestk.problem.regression import Regression
from bestk.results.progress import make_progress
from bestk.results.status import Status
from bestk.runs.checkpoint import Checkpoint, Writer
from bestk.search.lessons import Lessons
from bestk.search.tree import Tree
from bestk.subtrees.covers import as_rows, contains_one
from bestk.subtrees.recorder import Recorder
from bestk.supports.beam import fit_supports
from bestk.supports.enumeration import by_length, may_beat
from bestk.supports.incumbent import Fits, Incumbent

# Supports that one enumeration may list; more have to be branched.
_MOST_HITS = 200_000
# Supports that are fitted before it is looked again which of the others may be among the best.
_AT_ONCE = 256


class Fitted(NamedTuple):
    """A support with the best coefficients on it."""

    support: np.ndarray
    coef: np.ndarray
    objective: float


class TooMany(Exception):
    """There are more models below the level than were asked for."""


class Collector(Incumbent):
    """All supports of `size` features with an objective of at most `level`.

    Those that contain one of `known` are left out. `most` of them may be found; more raise TooMany.
    """

    improves = False
    most_hits: int | None = _MOST_HITS

    def __init__(
        self,
        problem: Regression,
        fits: Fits,
        *,
        size: int,
        level: float,
        known: list[np.ndarray],
        most: float = np.inf,
    ) -> None:
        self.size, self.level, self.most = size, level, most
        self.found: dict[bytes, Fitted] = {}
        self.covers = as_rows(known)
        super().__init__(problem, fits)

    @property
    def value(self) -> float:
        return self.level / self._scale

    def offer_all(self, form: StandardForm, supports: Sequence[np.ndarray]) -> None:
        """Those that products of the features rule out are not fitted."""
        n_features = self.problem.n_features
        for rows in by_length([np.sort(support) for support in supports]):
            named = form.features[rows]
            if len(self.covers):
                new = ~contains_one(named, self.covers, n_features)
                rows, named = rows[new], named[new]
            if len(rows) > 32 and form.matrix.has_factors:
                named = named[may_beat(form, rows, self.value)]
            for support in named:
                self.offer(support)

    def offer(self, support: np.ndarray) -> float:
        fitted = Fitted(*self._fit(support))
        if len(fitted.support) == self.size and fitted.objective <= self.level:
            self.found[fitted.support.tobytes()] = fitted
            if len(self.found) > self.most:
                raise TooMany
        return fitted.objective / self._scale


class NBest(Collector):
    """The best supports of `size` features, `count` of them; the level is that of the last one."""

    copies_matter = True

    def __init__(self, problem: Regression, fits: Fits, *, size: int, count: int) -> None:
        self.count = count
        self._worst: list[tuple[float, bytes]] = []  # a heap, the worst one first
        super().__init__(problem, fits, size=size, level=np.inf, known=[])

    def offer_all(self, form: StandardForm, supports: Sequence[np.ndarray]) -> None:
        """Good ones first: they lower the level, and many others need no fit then."""
        for rows in by_length([np.sort(support) for support in supports]):
            rows = rows[np.argsort(fit_supports(form, rows)[1], kind="stable")]
            while len(rows):
                super().offer_all(form, list(rows[:_AT_ONCE]))
                rows = rows[_AT_ONCE:]
                if len(rows) and np.isfinite(self.level) and form.matrix.has_factors:
                    rows = rows[may_beat(form, rows, self.value)]

    def offer(self, support: np.ndarray) -> float:
        before = len(self.found)
        value = super().offer(support)
        if len(self.found) > before:
            key = np.sort(np.asarray(support, dtype=np.intp)).tobytes()
            heappush(self._worst, (-self.found[key].objective, key))
        if len(self.found) > self.count:
            del self.found[heappop(self._worst)[1]]
        if len(self.found) == self.count:
            self.level = -self._worst[0][0]
        return value


class Collected(NamedTuple):
    """How a search for all models has ended: nothing else lies below ``bound``."""

    status: Status
    bound: float
    n_nodes: int
    recorder: Recorder
    engine: str

    @property
    def is_complete(self) -> bool:
        return self.status is Status.OPTIMAL


def collect(
    presolved: Presolved,
    k: int,
    collector: Collector,
    lessons: Lessons,
    settings: Settings,
    started: float,
    writer: Writer | None = None,
    saved: Checkpoint | None = None,
) -> Collected:
    """Offer everything below its level to the collector, for models of at most k features.

    `saved` is what a run that goes on has left; what it had found is offered by the caller.
    """
    size = presolved.size(k)
    if size <= 0 or size <= len(presolved.inside):
        recorder = Recorder(settings.record_limit)
        recorder.close_by_enumeration(0)
        collector.offer(presolved.required)
        words = Workers(settings.n_threads).words
        return Collected(Status.OPTIMAL, collector.level, 0, recorder, words)
    settings = replace(settings, gap_tol=0.0)
    progress = make_progress(settings.progress)
    try:
        device, cluster = open_device(settings.device), settings.cluster()
        with Workers(settings.n_threads, device, cluster) as pool:
            tree = Tree(
                presolved, size, collector, lessons, settings, pool, progress, started, writer
            )
            if saved is not None:
                saved.restore(tree)
            status = tree.run()
            words = pool.words
    finally:
        progress.close()
    space = tree.space
    bound = collector.level if status is Status.OPTIMAL else space.proven * collector._scale
    return Collected(status, bound, space.n_nodes, space.recorder, words)
