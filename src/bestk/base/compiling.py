"""How loops are compiled: without the GIL, cached on disk, as NumPy treats errors.

Kernels hold no state and start no threads. Callers split the rows of a batch over a thread pool,
so a result never depends on the number of threads.
"""

from typing import Any

from numba import njit

# Nobody calls kernels from C: without wrappers for that they compile faster.
OPTIONS: Any = {
    "cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True,
}  # fmt: skip

kernel = njit(**OPTIONS)
"""Sums in the order in which they are written (see arithmetic): the same digits everywhere."""

step = njit(**OPTIONS, inline="always")
"""A part of a kernel that is called once: it becomes part of its caller, which compiles faster."""
