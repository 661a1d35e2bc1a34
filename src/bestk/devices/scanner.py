"""Tries all sets of many tasks on a device, batch by batch."""

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from math import comb
from queue import Empty, LifoQueue
from typing import Any

import numpy as np

from bestk.base.device.driver import DeviceFailed, Driver
from bestk.devices.tasks import (
    MOST_FEATURES,
    MOST_PREFIX,
    Batch,
    Progress,
    Stopped,
    Task,
    batches,
    prefix_of,
)

# How a block of threads scans: measured on an H200. First features together, columns in subtiles
# of 32, warps per block, blocks per processor.
_FIRSTS, _SUBTILES, _WARPS, _BLOCKS = 8, 2, 4, 6
# Places by which a first feature that is suspect is judged; beyond them all its pairs are.
_MOST_COLUMNS = 5
# Variance below which, and margin with which, single precision proves nothing (theory: single).
_FLAT, _MARGIN = "1e-3f", "3e-4f"
# Seconds between two looks whether the device is free.
_LOOK = 0.05
# Memory of a batch.
_MOST_BYTES, _FEWEST_BYTES = 2**31, 2**22
# Bytes that the threads of a block share, at most: several blocks fit into a processor.
_SHARED = 2**15
# Sets and batches between two looks at limits: some tens of milliseconds.
_MOST_SETS, _MOST_BATCHES = 10**11, 64
# Beginnings that may be left of these, and of one task: more have to be branched.
_MOST_KEPT, _MOST_OF_TASK = 2**16, 4096


class Scanner:
    """A device (see `tasks.Device`) made of the kernels in scan.cu.

    It has lanes with memory of their own: what one of them is asked next is sent and launched while
    the device is at work for another.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver, self.name = driver, driver.name
        definitions = {
            "FIRSTS": _FIRSTS, "SUBTILES": _SUBTILES, "WARPS": _WARPS, "BLOCKS": _BLOCKS,
            "MOST_COLUMNS": _MOST_COLUMNS, "MOST_PREFIX": MOST_PREFIX,
            "FLAT": _FLAT, "MARGIN": _MARGIN,
        }  # fmt: skip
        driver.compile(files("bestk.devices").joinpath("scan.cu").read_text(), definitions)
        self._lanes: LifoQueue[_Lane] = LifoQueue()
        for number in range(driver.n_lanes):
            self._lanes.put(_Lane(driver, number))

    def remaining(
        self, tasks: Sequence[Task], stop: Callable[[], bool], progress: Progress
    ) -> list[np.ndarray | None]:
        together = np.concatenate([task.M.ravel() for task in tasks] or [np.empty(0)])
        lane = self._free_lane(stop)
        try:
            with self.driver.lane(lane.number):
                return lane.remaining(tasks, together, stop, progress)
        finally:
            self._lanes.put(lane)

    def _free_lane(self, stop: Callable[[], bool]) -> "_Lane":
        """Several searches may share a device: they wait for each other."""
        while True:
            try:
                return self._lanes.get(timeout=_LOOK)
            except Empty:
                if stop():
                    raise Stopped from None


class _Lane:
    """Memory for one batch after the other, and the work on it, in order."""

    def __init__(self, driver: Driver, number: int) -> None:
        self.driver, self.number = driver, number
        self._choices: Any = None
        self._room: Any = None
        self._n_bytes = 0

    def remaining(
        self, tasks: Sequence[Task], together: np.ndarray, stop, progress: Progress
    ) -> list[np.ndarray | None]:
        """See `Scanner.remaining`; `together` are the matrices of all tasks in a row."""
        self._prepare()
        matrices = self._upload(together)
        starts = np.cumsum([0, *(task.M.size for task in tasks)])
        done, rows = progress.begin(tasks)
        for part in _rounds(batches(tasks, self._most_items, done)):
            if stop():
                raise Stopped
            self._look_into(part, tasks, starts, matrices, rows)
            done += sum(batch.n_items for batch in part)
            progress.save(done, rows, sum(batch.n_sets for batch in part))
        return [_as_rows(found, task.r) for found, task in zip(rows, tasks, strict=True)]

    def _look_into(self, part: list[Batch], tasks, starts, matrices: Any, rows) -> None:
        """Add what batches leave to the rows of their tasks; None where it is too much."""
        part = _of_tasks(part, {number for number, found in enumerate(rows) if found is not None})
        kept = self._kept(part, tasks, starts, matrices) if part else np.empty((0, 3))
        if kept is not None:
            _sort_in(rows, part, tasks, kept)
            return
        culprits = {segment.task for batch in part for segment in batch.segments}
        for task in sorted(culprits):
            if len(culprits) == 1:
                rows[task] = None
            else:
                self._look_into(_of_tasks(part, {task}), tasks, starts, matrices, rows)

    def _kept(self, part: list[Batch], tasks, starts, matrices: Any) -> np.ndarray | None:
        """(batch, item, first feature) of what is not proven; None if that is too much.

        All is launched before anything is asked: a device waits for nobody between batches.
        """
        described = [_described(batch, tasks, starts) for batch in part]
        segments = self._upload(np.concatenate(described))
        counts, kept = self._counts, self._kept_room
        self.driver.zero(counts)
        few = kept, _MOST_KEPT, counts[:4]
        start = 0
        for number, (batch, own) in enumerate(zip(part, described, strict=True)):
            here = segments[start : start + len(own)]
            n_listed = counts[4 * (number + 1) : 4 * (number + 2)]
            self._launch(batch, here, len(own), matrices, n_listed, (number, *few))
            start += len(own)
        count = int(self.driver.download(counts, np.int32, 1)[0])
        if count > _MOST_KEPT:
            return None
        return self.driver.download(kept, np.int32, 3 * count).reshape(-1, 3)

    def _launch(self, batch: Batch, segments, n_segments, matrices, n_listed, keep) -> None:
        driver, width, q, most, items = (
            self.driver, batch.width, batch.prefix, batch.most, batch.n_items,
        )  # fmt: skip
        C, rows, unit, heads, listed = self._carved(items, width, q)
        groups = _groups(width)
        driver.launch(
            "begin", items, min(128, width), 0,
            (segments, n_segments, self._choices, matrices, width, q, rows, unit, heads, *keep),
        )  # fmt: skip
        driver.launch(
            "correlate", items * -(-most // 8), min(128, width), 0,
            (segments, heads, matrices, width, most, q, rows, unit, C),
        )  # fmt: skip
        driver.launch(
            "scan", items * -(-most // (_FIRSTS * groups)), 32 * _WARPS,
            8 * _FIRSTS * groups * width,
            (heads, width, most, groups, C, listed, n_listed),
        )  # fmt: skip
        driver.launch(
            "judge", 8 * driver.n_processors, 128, 16 * width,
            (segments, heads, matrices, width, q, rows, listed, n_listed, *keep),
        )  # fmt: skip

    # Memory -----------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Take the memory of batches: as much as there is, at first."""
        if self._room is not None:
            return
        n_bytes = min(_MOST_BYTES, self.driver.free_memory // 4)
        while self._room is None:
            try:
                self._room = self.driver.allocate(n_bytes)
            except MemoryError:
                n_bytes //= 2
                if n_bytes < _FEWEST_BYTES:
                    raise DeviceFailed(f"{self.driver.name} has no memory left") from None
        self._n_bytes = n_bytes
        self._counts = self._allocate(4 * (_MOST_BATCHES + 1))
        self._kept_room = self._allocate(12 * _MOST_KEPT)
        table = [[comb(n, r) for r in range(MOST_PREFIX + 1)] for n in range(MOST_FEATURES + 1)]
        self._choices = self._upload(np.array(table, dtype=np.float64))

    def _upload(self, array: np.ndarray) -> Any:
        try:
            return self.driver.upload(array)
        except MemoryError:
            raise DeviceFailed(f"{self.driver.name} has no memory left") from None

    def _allocate(self, n_bytes: int) -> Any:
        try:
            return self.driver.allocate(n_bytes)
        except MemoryError:
            raise DeviceFailed(f"{self.driver.name} has no memory left") from None

    def _most_items(self, width: int, q: int) -> int:
        return max(1, self._n_bytes // sum(_item_bytes(width, q)))

    def _carved(self, items: int, width: int, q: int) -> list[Any]:
        """The room of a batch, cut into C, rows, unit, heads and listed."""
        parts, start = [], 0
        for n_bytes in _item_bytes(width, q):
            parts.append(self._room[start : start + items * n_bytes])
            start += items * n_bytes
        return parts


def _rounds(every: Iterator[Batch]) -> Iterator[list[Batch]]:
    """Batches between two looks at limits."""
    part: list[Batch] = []
    n_sets = 0
    for batch in every:
        part.append(batch)
        n_sets += batch.n_sets
        if n_sets >= _MOST_SETS or len(part) == _MOST_BATCHES:
            yield part
            part, n_sets = [], 0
    if part:
        yield part


def _of_tasks(part: list[Batch], wanted: set[int]) -> list[Batch]:
    """What batches have of some tasks."""
    left = [
        batch._replace(segments=[s for s in batch.segments if s.task in wanted]) for batch in part
    ]
    return [batch for batch in left if batch.segments]


def _described(batch: Batch, tasks: Sequence[Task], starts: np.ndarray) -> np.ndarray:
    """Segments as the kernels know them."""
    described, item = [], 0
    for task, rank, size, _ in batch.segments:
        described.append((starts[task], rank, item, len(tasks[task].M), batch.prefix))
        item += size
    return np.array(described, dtype=np.int64)


def _groups(width: int) -> int:
    """Groups of first features of a block: as many as there is memory for what they share."""
    return max(1, min(_WARPS, _SHARED // (8 * _FIRSTS * width)))


def _item_bytes(width: int, q: int) -> tuple[int, ...]:
    return 4 * width**2, 8 * q * width, 8 * width, 8, (12 + 4 * _MOST_COLUMNS) * width


def _sort_in(rows, part: list[Batch], tasks: Sequence[Task], kept: np.ndarray) -> None:
    """Beginnings to the tasks that they are of."""
    ends = [np.cumsum([segment.size for segment in batch.segments]) for batch in part]
    for number, item, feature in sorted(kept.tolist()):
        batch = part[number]
        at = int(np.searchsorted(ends[number], item, side="right"))
        task, rank, size, _ = batch.segments[at]
        if rows[task] is None:
            continue
        rank += item - int(ends[number][at] - size)
        rows[task].append([*prefix_of(rank, batch.prefix, len(tasks[task].M)), feature])
        if len(rows[task]) > _MOST_OF_TASK:
            rows[task] = None


def _as_rows(rows: list[list[int]] | None, r: int) -> np.ndarray | None:
    if rows is None:
        return None
    return np.array(sorted(rows), dtype=np.int64).reshape(-1, r - 2)
