"""How loops are compiled: without the GIL, cached on disk, as NumPy treats errors.

Kernels hold no state and start no threads. Callers split the rows of a batch over a thread pool,
so a result never depends on the number of threads.

The first call of a kernel compiles it, once for every combination of types. A count that is handed
to other kernels begins as ``np.int64(0)``: 0 would be a type of its own, and they would be compiled
twice.
"""

from threading import Lock
from typing import Any

from numba import njit
from numba.core import event

# Nobody calls kernels from C: without wrappers for that they compile faster.
OPTIONS: Any = {
    "cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True,
}  # fmt: skip

kernel = njit(**OPTIONS)
"""Sums in the order in which they are written (see arithmetic): the same digits everywhere."""

step = njit(**OPTIONS, inline="always")
"""A part of a kernel that is called once: it becomes part of its caller, which compiles faster."""


@kernel
def put(target, source):
    """The first of target become those of source: slices take much longer to compile."""
    for j in range(source.shape[0]):
        target[j] = source[j]


class Compilations(event.Listener):
    """How many loops were compiled, and whether one is just now; loading from the cache is neither.

    Numba tells, from whichever thread compiles.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self.count = 0

    @property
    def is_running(self) -> bool:
        return self._running > 0

    def on_start(self, event: Any) -> None:
        if _is_ours(event):
            with self._lock:
                self._running += 1

    def on_end(self, event: Any) -> None:
        if _is_ours(event):
            with self._lock:
                self._running -= 1
                self.count += 1


def _is_ours(event: Any) -> bool:
    """Other packages compile, too, and so does Numba for what a loop of ours needs."""
    return event.data["dispatcher"].py_func.__module__.startswith("bestk.")


compilations = Compilations()
event.register("numba:compile", compilations)
