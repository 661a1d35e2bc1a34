"""Tries all sets of many tasks on a device, batch by batch."""

from collections.abc import Callable, Sequence
from importlib.resources import files
from math import comb
from threading import Lock
from typing import Any

import numpy as np

from bestk.devices.driver import DeviceFailed, Driver
from bestk.devices.tasks import (
    MOST_FEATURES,
    MOST_PREFIX,
    Batch,
    Stopped,
    Task,
    batches,
    prefix_of,
)

# How a block of threads scans: measured on an H200. First features together, columns in subtiles
# of 32, warps per block, blocks per processor.
_FIRSTS, _SUBTILES, _WARPS, _BLOCKS = 4, 4, 4, 6
# Variance below which, and margin with which, single precision proves nothing (theory: single).
_FLAT, _MARGIN = "1e-3f", "3e-4f"
# Seconds between two looks whether the device is free.
_LOOK = 0.05
# Memory of a batch: some milliseconds of work, between which limits are looked at.
_MOST_BYTES, _FEWEST_BYTES = 2**31, 2**22
# Beginnings that one batch and one task may leave: more have to be branched.
_MOST_KEPT, _MOST_OF_TASK = 2**16, 4096


class Scanner:
    """A device (see `tasks.Device`) made of the kernels in scan.cu."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.name = driver, driver.name
        definitions = {
            "FIRSTS": _FIRSTS, "SUBTILES": _SUBTILES, "WARPS": _WARPS, "BLOCKS": _BLOCKS,
            "FLAT": _FLAT, "MARGIN": _MARGIN, "MOST_PREFIX": MOST_PREFIX,
        }  # fmt: skip
        driver.compile(files("bestk.devices").joinpath("scan.cu").read_text(), definitions)
        self._choices: Any = None
        self._room: Any = None
        self._n_bytes = 0
        self._lock = Lock()

    def remaining(
        self, tasks: Sequence[Task], stop: Callable[[], bool], tried: Callable[[int], None]
    ) -> list[np.ndarray | None]:
        # Several searches may share a device: one after the other.
        while not self._lock.acquire(timeout=_LOOK):
            if stop():
                raise Stopped
        try:
            return self._remaining(tasks, stop, tried)
        finally:
            self._lock.release()

    def _remaining(self, tasks, stop, tried) -> list[np.ndarray | None]:
        self._prepare()
        matrices = self._upload(np.concatenate([task.M.ravel() for task in tasks]))
        starts = np.cumsum([0, *(task.M.size for task in tasks)])
        rows: list[list[list[int]] | None] = [[] for _ in tasks]
        for batch in batches(tasks, self._most_items):
            if stop():
                raise Stopped
            left = [s for s in batch.segments if rows[s.task] is not None]
            if not left:
                continue
            batch = batch._replace(segments=left)
            kept = self._kept(batch, self._described(batch, tasks, starts), matrices)
            if kept is None:
                for segment in left:
                    rows[segment.task] = None
            else:
                _sort_in(rows, batch, tasks, kept)
            tried(batch.n_sets)
        return [_as_rows(found, task.r) for found, task in zip(rows, tasks, strict=True)]

    def _described(self, batch: Batch, tasks: Sequence[Task], starts: np.ndarray) -> np.ndarray:
        """Segments as the kernels know them."""
        described, item = [], 0
        for task, rank, count in batch.segments:
            described.append((starts[task], rank, item, len(tasks[task].M), batch.prefix))
            item += count
        return np.array(described, dtype=np.int64)

    def _kept(self, batch: Batch, segments: np.ndarray, matrices: Any) -> np.ndarray | None:
        """(item, first feature) of what a batch does not prove; None if that is too much."""
        driver, width, q = self.driver, batch.width, batch.prefix
        items = sum(segment.size for segment in batch.segments)
        C, rows, unit, heads, listed, counts, kept = self._carved(items, width, q)
        n_listed, n_kept = counts[:4], counts[4:]
        driver.zero(counts)
        described = self._upload(segments)
        threads = min(128, width)
        few = kept, _MOST_KEPT, n_kept
        driver.launch(
            "begin", items, threads, 0,
            (described, len(segments), self._choices, matrices, width, q, rows, unit, heads, *few),
        )  # fmt: skip
        driver.launch(
            "correlate", items * -(-width // 8), threads, 0,
            (described, heads, matrices, width, q, rows, unit, C),
        )  # fmt: skip
        driver.launch(
            "scan", items * -(-width // _FIRSTS), 32 * _WARPS, 8 * _FIRSTS * width,
            (heads, width, C, listed, n_listed),
        )  # fmt: skip
        driver.launch(
            "judge", 8 * driver.n_processors, 128, 16 * width,
            (described, heads, matrices, width, q, rows, listed, n_listed, *few),
        )  # fmt: skip
        count = int(driver.download(n_kept, np.int32, 1)[0])
        if count > _MOST_KEPT:
            return None
        return driver.download(kept, np.int32, 2 * count).reshape(-1, 2)

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
                    raise DeviceFailed(f"{self.name} has no memory left") from None
        self._n_bytes = n_bytes
        table = [[comb(n, r) for r in range(MOST_PREFIX + 1)] for n in range(MOST_FEATURES + 1)]
        self._choices = self._upload(np.array(table, dtype=np.float64))

    def _upload(self, array: np.ndarray) -> Any:
        try:
            return self.driver.upload(array)
        except MemoryError:
            raise DeviceFailed(f"{self.name} has no memory left") from None

    def _most_items(self, width: int, q: int) -> int:
        room = self._n_bytes - 16 * _MOST_KEPT
        return max(1, room // sum(_item_bytes(width, q)))

    def _carved(self, items: int, width: int, q: int) -> list[Any]:
        """The room of a batch, cut into C, rows, unit, heads, listed, counts and kept."""
        parts, start = [], 0
        for n_bytes in (*(items * one for one in _item_bytes(width, q)), 8, 8 * _MOST_KEPT):
            parts.append(self._room[start : start + n_bytes])
            start += n_bytes
        return parts


def _item_bytes(width: int, q: int) -> tuple[int, ...]:
    return 4 * width**2, 8 * q * width, 8 * width, 8, 8 * width


def _sort_in(rows, batch: Batch, tasks: Sequence[Task], kept: np.ndarray) -> None:
    """Beginnings to the tasks that they are of."""
    ends = np.cumsum([segment.size for segment in batch.segments])
    for item, feature in sorted(kept.tolist()):
        at = int(np.searchsorted(ends, item, side="right"))
        task, rank, count = batch.segments[at]
        if rows[task] is None:
            continue
        prefix = prefix_of(rank + item - int(ends[at] - count), batch.prefix, len(tasks[task].M))
        rows[task].append([*prefix, feature])
        if len(rows[task]) > _MOST_OF_TASK:
            rows[task] = None


def _as_rows(rows: list[list[int]] | None, r: int) -> np.ndarray | None:
    if rows is None:
        return None
    return np.array(sorted(rows), dtype=np.int64).reshape(-1, r - 2)
