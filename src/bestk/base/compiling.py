"""How loops are compiled: without the GIL, cached on disk, as NumPy treats errors.

Kernels hold no state and start no threads. Callers split the rows of a batch over a thread pool,
so a result never depends on the number of threads.
"""

from typing import Any

from numba import njit, uintp

# Nobody calls kernels from C: without wrappers for that they compile faster.
OPTIONS: Any = {
    "cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True,
}  # fmt: skip

kernel = njit(**OPTIONS)
"""Sums in the order in which they are written."""

step = njit(**OPTIONS, inline="always")
"""A part of a kernel that is called once: it becomes part of its caller, which compiles faster."""

# Sums may be reassociated (this is what makes loops SIMD); NaN and inf keep their meaning. The
# loops index with unsigned integers: no test for negative indices stands in the way of SIMD, and
# no slices are made, whose reference counts would cost more than a short row.
fast_kernel = njit(**OPTIONS, fastmath={"contract", "reassoc", "nsz", "arcp"})
"""Sums in any order."""

contracted_kernel = njit(**OPTIONS, fastmath={"contract"})
"""Products and sums in their order, fused where the machine can."""

contracted_step = njit(**OPTIONS, fastmath={"contract"}, inline="always")
"""A part of such a kernel."""


@fast_kernel
def add_row(out, a, X, i, size):
    """out[:size] += a * X[i, :size]"""
    i, size = uintp(i), uintp(size)
    for j in range(size):
        out[j] += a * X[i, j]
