"""What a device is asked: which sets of features are not positive definite, as batches of work.

A set of r features begins with a prefix of r - 3; the last three are scanned. What a device gives
back are beginnings, a prefix and one more feature, behind which there may be such a set.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from hashlib import blake2b
from math import comb
from typing import Any, NamedTuple, Protocol

import numpy as np

MOST_FEATURES, MOST_PREFIX = 1024, 16
"""Features of a task, and of the beginning of a set."""
MOST_SETS = 2**53
# Columns that a device looks at together.
LANES = 32


class Stopped(Exception):
    """A limit was reached while a device was at work."""


class Task(NamedTuple):
    """Which sets of r features have a part of M that is not positive definite?

    Only the upper triangle of M is read.
    """

    M: np.ndarray
    r: int


Rows = list[list[list[int]] | None]
"""Beginnings for each task that are left; None where they are too many."""


class Progress:
    """How far a device has come with tasks.

    Whoever watches may ask for ``saved`` at any time, plain values from which another run can go
    on; ``n_sets`` counts what was tried.
    """

    def __init__(self, saved: dict[str, Any] | None = None) -> None:
        self.n_sets = 0
        self._before = saved
        self._now: tuple[Sequence[Task], int, Rows] | None = None

    def begin(self, tasks: Sequence[Task]) -> tuple[int, Rows]:
        """How many prefixes of these tasks are done, and what they have left."""
        saved = self._before
        if saved is not None and _is_of(saved, tasks):
            done, rows = saved["done"], deepcopy(saved["rows"])
        else:
            done, rows = 0, [[] for _ in tasks]
        self._now = tasks, done, deepcopy(rows)
        return done, rows

    def save(self, done: int, rows: Rows, n_sets: int) -> None:
        assert self._now is not None
        self._now = self._now[0], done, deepcopy(rows)
        self.n_sets += n_sets

    @property
    def saved(self) -> dict[str, Any] | None:
        now = self._now
        if now is None:
            return self._before
        tasks, done, rows = now
        return {"digest": _digest(tasks), "done": done, "rows": rows}


def _is_of(saved: dict[str, Any], tasks: Sequence[Task]) -> bool:
    """Whether plain values, perhaps of a file, are about these tasks; others are of no use."""
    done, rows = saved.get("done"), saved.get("rows")
    if saved.get("digest") != _digest(tasks) or type(done) is not int or done < 0:
        return False
    if not isinstance(rows, list) or len(rows) != len(tasks):
        return False
    pairs = zip(rows, tasks, strict=True)
    return all(own is None or _are_beginnings(own, *task) for own, task in pairs)


def _are_beginnings(rows: Any, M: np.ndarray, r: int) -> bool:
    """Rows of r - 2 features in ascending order, perhaps with -1 in place of the last."""
    if not isinstance(rows, list) or any(not isinstance(row, list) for row in rows):
        return False
    for row in rows:
        if len(row) != r - 2 or any(type(j) is not int for j in row):
            return False
        own = row[:-1] if row[-1] == -1 else row
        if list(own) != sorted(set(own)) or (own and not 0 <= own[0] <= own[-1] < len(M)):
            return False
    return True


def _digest(tasks: Sequence[Task]) -> str:
    digest = blake2b(digest_size=16)
    for M, r in tasks:
        digest.update(np.array([len(M), r]).tobytes())
        digest.update(np.triu(M).tobytes())
    return digest.hexdigest()


class Device(Protocol):
    """Tries all sets of many tasks."""

    name: str

    def remaining(
        self, tasks: Sequence[Task], stop: Callable[[], bool], progress: Progress
    ) -> list[np.ndarray | None]:
        """For each task the beginnings that are not proven to be harmless, as sorted rows.

        A row of r - 2 features stands for all sets that begin with them; -1 at its end, for all
        with the prefix before it. None if there are too many. `progress` is told of it between
        batches, and where to go on. Raises Stopped.
        """


def fits(n_features: int, r: int) -> bool:
    """Whether a device can be asked for sets of r of so many features."""
    few = 3 <= r <= MOST_PREFIX + 3 and r <= n_features <= MOST_FEATURES
    return few and comb(n_features, r) <= MOST_SETS


class Segment(NamedTuple):
    """Prefixes of a task that have at most so many features after them."""

    task: int
    rank: int
    size: int
    most: int


class Batch(NamedTuple):
    """Prefixes of one length with features after them in `width` places."""

    width: int
    prefix: int
    segments: list[Segment]

    @property
    def n_items(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def most(self) -> int:
        return max(segment.most for segment in self.segments)

    @property
    def n_sets(self) -> int:
        """Sets that begin with these prefixes, about."""
        return sum(segment.size * comb(segment.most, 3) for segment in self.segments)


def batches(
    tasks: Sequence[Task], most_items: Callable[[int, int], int], done: int = 0
) -> Iterator[Batch]:
    """All prefixes of all tasks; `most_items` of a width and prefix fit into one batch.

    Their order does not depend on that: the first ones may be `done`.
    """
    groups: dict[tuple[int, int], list[Segment]] = {}
    for number, (M, r) in enumerate(tasks):
        for width, segment in _segments(number, len(M), r - 3):
            groups.setdefault((width, r - 3), []).append(segment)
    for (width, prefix), segments in sorted(groups.items(), reverse=True):
        left = []
        for task, rank, size, most in segments:
            skipped = min(size, done)
            done -= skipped
            if skipped < size:
                left.append(Segment(task, rank + skipped, size - skipped, most))
        for part in _cut(left, most_items(width, prefix)):
            yield Batch(width, prefix, part)


def _segments(task: int, m: int, q: int) -> Iterator[tuple[int, Segment]]:
    """Prefixes are numbered by their last feature, then by the one before it, and so on."""
    if q == 0:
        yield width_for(m), Segment(task, 0, 1, m)
        return
    first = q - 1  # the least last feature of a prefix
    while first < m - 3:
        most = m - 1 - first
        width = width_for(most)
        # Few segments, each of prefixes with about as many features after them.
        fewer = max(width // 2 if width > LANES else 0, most - max(LANES, most // 4))
        end = min(m - 1 - fewer, m - 3)
        yield width, Segment(task, comb(first, q), comb(end, q) - comb(first, q), most)
        first = end


def _cut(segments: list[Segment], most_items: int) -> Iterator[list[Segment]]:
    part: list[Segment] = []
    room = most_items
    for task, rank, size, most in segments:
        while size:
            taken = min(size, room)
            part.append(Segment(task, rank, taken, most))
            rank, size, room = rank + taken, size - taken, room - taken
            if room == 0:
                yield part
                part, room = [], most_items
    if part:
        yield part


def width_for(n: int) -> int:
    """Places for n features: few widths, so that prefixes of many tasks go together."""
    width = LANES
    while width < n:
        width *= 2
    return width


def prefix_of(rank: int, q: int, m: int) -> list[int]:
    """The prefix of q of m features with a rank."""
    prefix = []
    for i in range(q, 0, -1):
        m = max(t for t in range(i - 1, m) if comb(t, i) <= rank)
        rank -= comb(m, i)
        prefix.append(m)
    return prefix[::-1]
