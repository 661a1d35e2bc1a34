"""How many threads BLAS has at the moment."""

import multiprocessing

from threadpoolctl import ThreadpoolController

LIMIT = 60.0  # seconds after which a test is stuck
METHODS = [m for m in ("spawn", "fork") if m in multiprocessing.get_all_start_methods()]


def libraries():
    return ThreadpoolController().select(user_api="blas").lib_controllers


def blas_now() -> list[int]:
    """The number of threads of every BLAS library of this process."""
    return [library.num_threads for library in libraries()]


def set_blas(counts) -> None:
    for library, n in zip(libraries(), counts, strict=True):
        library.set_num_threads(n)
        # Newer versions let only the thread that was first set numbers, until it says it is done.
        getattr(library, "clear_controlling_thread", lambda: None)()
