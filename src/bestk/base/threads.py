"""Threads: a pool for our kernels, a limit for BLAS; both undone when a run ends."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController

from bestk.base.cluster.client import Cluster
from bestk.base.words import counted


@cache
def _blas_libraries() -> tuple[list[Any], list[Any]]:
    """BLAS libraries with one setting for the process, and those with one for each thread."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    private = [x for x in libraries if getattr(x, "threading_layer", None) == "openmp"]
    return [x for x in libraries if x not in private], private


def _set_threads(libraries: list[Any], counts: list[int]) -> None:
    for library, n in zip(libraries, counts, strict=True):
        library.set_num_threads(n)
        # From version 3.7 on, the thread that has set a number is the only one that may do so.
        getattr(library, "clear_controlling_thread", lambda: None)()


def default_threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _SharedLimit:
    """The limit on the threads of BLAS, of which a process has one for all its Python threads.

    While blocks of several threads overlap, the smallest of their limits holds. The first one in
    remembers what was there before, the last one out restores it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks: dict[object, tuple[int, int]] = {}  # block: (its thread, its limit)
        self._before: list[int] = []

    def enter(self, block: object, n: int) -> None:
        with self._lock:
            if not self._blocks:
                self._before = [library.num_threads for library in _blas_libraries()[0]]
            self._blocks[block] = get_ident(), n
            self._apply()

    @property
    def smallest(self) -> int | None:
        return min((n for _, n in self._blocks.copy().values()), default=None)

    def leave(self, block: object) -> None:
        with self._lock:
            # Ctrl-C may have come before the block was entered.
            if self._blocks.pop(block, None) is not None:
                self._apply()

    def after_fork(self) -> None:
        """In a child process only the thread that forked is left."""
        self._lock = Lock()
        if self._blocks:
            here = get_ident()
            self._blocks = {b: entry for b, entry in self._blocks.items() if entry[0] == here}
            self._apply()

    def _apply(self) -> None:
        smallest = self.smallest
        counts = self._before if smallest is None else [smallest] * len(self._before)
        _set_threads(_blas_libraries()[0], counts)


_shared = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.after_fork)


@contextmanager
def blas_threads(n: int | None) -> Iterator[None]:
    """Let BLAS use n threads (None: leave it alone) inside the block."""
    if n is None:
        yield
        return
    block, private = object(), _blas_libraries()[1]
    before = [library.num_threads for library in private]
    try:
        _set_threads(private, [n] * len(private))
        _shared.enter(block, n)
        yield
    finally:
        _shared.leave(block)
        _set_threads(private, before)


def each_on_threads(function: Callable[[Any], object], items: Sequence[Any]) -> None:
    """Call a function for each item, on as many threads as BLAS may use inside such a block."""
    n_threads = min(_shared.smallest or 1, len(items))
    if n_threads <= 1:
        for item in items:
            function(item)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(function, items))


class Workers:
    """Runs independent pieces of work on n threads, results in the order given.

    ``device`` is one that closes nodes; of two threads beside the others one prepares what it is
    asked next while the other waits for it. ``cluster`` has workers on other machines.
    """

    def __init__(
        self, n_threads: int | None, device: Any = None, cluster: Cluster | None = None
    ) -> None:
        self.n_threads, self.device = n_threads or default_threads(), device
        self.cluster = cluster
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None
        self._beside = None if device is None else ThreadPoolExecutor(2)
        self.is_over, self._failure = False, ""

    @property
    def words(self) -> str:
        """What does the work."""
        here = counted(self.n_threads, "thread")
        threads = here if self.cluster is None else self.cluster.words
        with_device = threads if self.device is None else f"{self.device.name} and {threads}"
        return f"{with_device} ({self._failure})" if self._failure else with_device

    def give_up_device(self, reason: object) -> None:
        """Go on without it."""
        self.device, self._failure = None, str(reason)

    def map(self, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        if self._pool is None or len(items) <= 1:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin one piece of work on a thread."""
        assert self._pool is not None, "one thread has no pool"
        return self._pool.submit(function, *arguments)

    def beside(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin one piece of work that waits for the device."""
        assert self._beside is not None, "there is no device"
        return self._beside.submit(function, *arguments)

    def slices(self, length: int, each: int = 1) -> list[slice]:
        """Cut range(length) into contiguous pieces, `each` of them per thread."""
        parts = min(self.n_threads * each if self.n_threads > 1 else 1, length)
        return [slice(i * length // parts, (i + 1) * length // parts) for i in range(parts)]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *exc: object) -> None:
        self.is_over = True
        for pool in (self._pool, self._beside):
            if pool is not None:
                pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C
        if self.cluster is not None:
            self.cluster.end_calls()
