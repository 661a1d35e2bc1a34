"""A long scan in pieces: by one thread after the other, by many, or by the workers of a cluster.

Wherever it is cut, what it lists is the same, in the same order.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from bestk.base.cluster.calls import Call
from bestk.base.cluster.client import Cluster
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.supports.prices import prices_of, scan_seconds
from bestk.supports.scan import scan

Piece = tuple[tuple[int, ...], np.ndarray | None]
"""Of what a scan lists: indices fixed before, and rows of indices, None if they are too many."""
Pieces = Iterator[Piece]


class LimitReached(Exception):
    """A limit was reached while a node was being closed."""


class Rest(NamedTuple):
    """What is left to scan: sets of r features that gain at least `needed`, given H and d."""

    H: np.ndarray
    d: np.ndarray
    needed: float
    r: int

    @property
    def seconds(self) -> float:
        """Model seconds of the scan."""
        return scan_seconds(prices_of(tuning()), len(self.d), 0, self.r)

    @property
    def later_seconds(self) -> float:
        """The same once the first feature is chosen."""
        return scan_seconds(prices_of(tuning()), len(self.d) - 1, 0, self.r - 1)

    def behind(self, t: int) -> "Rest":
        """What is left of sets whose first feature is t; its variance must be positive."""
        H, d = self.H, self.d
        variance, row = H[t, t], H[t, t + 1 :]
        return Rest(
            H[t + 1 :, t + 1 :] - (row / variance)[:, None] * row,
            d[t + 1 :] - row * (d[t] / variance),
            self.needed - d[t] ** 2 / variance,
            self.r - 1,
        )


class Span(NamedTuple):
    """Sets that have these features, each numbered from the one before it, and whose next one is
    from `first` on and before `last`.
    """

    before: tuple[int, ...]
    first: int
    last: int


class Scans(NamedTuple):
    """Who scans, and for how many rows at most."""

    workers: Workers
    stop: Callable[[], bool]
    most: int

    def pieces(self, rest: Rest) -> Pieces:
        cluster = self.workers.cluster
        if cluster is None or rest.seconds < tuning().cluster_scan:
            return self.within(rest, 0, len(rest.d))
        return self._on_cluster(cluster, rest)

    def within(self, rest: Rest, first: int, last: int) -> Pieces:
        """Of the sets whose first feature is from `first` on and before `last`."""
        m, r = len(rest.d), rest.r
        if rest.later_seconds <= tuning().longest_piece:
            parts = 1
            if rest.seconds >= 1e-4:
                parts = self.workers.n_threads * (int(rest.seconds / tuning().piece_seconds) + 1)
            cuts = {first, last, *_balanced_edges(m, r, min(parts, m))}
            spans = list(pairwise(sorted(cut for cut in cuts if first <= cut <= last)))
            for piece in self.workers.map(partial(self._scan, rest), spans):
                yield (), piece
            return
        for t in range(first, min(last, m - r + 1)):
            if rest.H[t, t] <= 0.0:
                yield (), np.array([[t]])
                continue
            later = rest.behind(t)
            yield from _renumbered((t,), self.within(later, 0, len(later.d)))

    def _scan(self, rest: Rest, span: tuple[int, int]) -> np.ndarray | None:
        if self.stop():
            raise LimitReached
        rows = np.empty((self.most, rest.r), dtype=np.int64)
        count = scan(*rest, *span, rows)
        # Sorted: where the work was cut into pieces must not show.
        return None if count < 0 else rows[np.lexsort(rows[:count].T[::-1])]

    def _on_cluster(self, cluster: Cluster, rest: Rest) -> Pieces:
        calls, shared = cluster.calls("scan"), cluster.share(rest)
        spans = spans_of(rest, tuning().call_seconds)
        try:
            while True:
                ahead = int(tuning().calls_per_thread * cluster.n_threads) - len(calls)
                for span in islice(spans, max(ahead, 0)):
                    calls.put(Call(scan_span, span, self.most), shared)
                if not len(calls):
                    return
                found = calls.get(self.stop)
                if found is None:
                    raise LimitReached
                yield from found[0]
        finally:
            calls.end()


def spans_of(rest: Rest, seconds: float, before: tuple[int, ...] = ()) -> Iterator[Span]:
    """Cut a scan, in order, into spans of about as many model seconds."""
    m, r = len(rest.d), rest.r
    parts = int(rest.seconds / seconds) + 1
    for first, last in pairwise(_balanced_edges(m, r, min(parts, m))):
        is_long = last == first + 1 and rest.later_seconds > 4.0 * seconds
        if is_long and r > 3 and first <= m - r and rest.H[first, first] > 0.0:
            yield from spans_of(rest.behind(first), seconds, (*before, first))
        else:
            yield Span(before, first, last)


def scan_span(rest: Rest, span: Span, most: int) -> list[Piece]:
    """The pieces of a span, on one thread: a pure function."""
    for t in span.before:
        rest = rest.behind(t)
    pieces = Scans(Workers(1), lambda: False, most).within(rest, span.first, span.last)
    return list(_renumbered(span.before, pieces))


def _renumbered(before: tuple[int, ...], pieces: Pieces) -> Pieces:
    """Pieces that follow some features, each numbered from the one before it."""
    names = (np.cumsum([t + 1 for t in before], dtype=int) - 1).tolist()
    start = names[-1] + 1 if names else 0
    for later, rows in pieces:
        numbers = (*names, *(start + i for i in later))
        yield numbers, None if rows is None else np.where(rows >= 0, rows + start, -1)


def _balanced_edges(m: int, r: int, count: int) -> list[int]:
    """Cut range(m) so that each part begins about as many r-sets as the others."""
    if count == 1:
        return [0, m]
    sets = np.cumsum([float(comb(m - 1 - t, r - 1)) for t in range(m)])
    cuts = np.searchsorted(sets, np.arange(1, count) * sets[-1] / count) + 1
    return np.unique(np.concatenate([[0], cuts, [m]])).tolist()
