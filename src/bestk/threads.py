"""Threads: a pool for our kernels, a limit for BLAS; both undone when a run ends."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def default_threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def blas_threads(n: int | None) -> Iterator[None]:
    """Let BLAS use n threads (None: leave it alone) inside the block."""
    if n is None:
        yield
    else:
        with _controller().limit(limits=n, user_api="blas"):
            yield


class Workers:
    """Runs independent pieces of work on n threads, results in the order given."""

    def __init__(self, n_threads: int | None) -> None:
        self.n_threads = n_threads or default_threads()
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def map(self, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        if self._pool is None or len(items) <= 1:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def slices(self, length: int) -> list[slice]:
        """Cut range(length) into one contiguous piece per thread."""
        parts = min(self.n_threads, length)
        return [slice(i * length // parts, (i + 1) * length // parts) for i in range(parts)]

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)  # after an error or Ctrl-C
