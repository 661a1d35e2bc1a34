"""Independent searches side by side: targets, folds, equations."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from bestk.base.settings import Settings
from bestk.base.threads import blas_threads

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def run_jobs(
    job: Callable[[Item, Settings], Answer], items: Iterable[Item], settings: Settings, n_jobs: Any
) -> list[Answer]:
    """``job(item, settings)`` for every item; with n_jobs > 1 each on one thread of its own."""
    items = list(items)
    if len(items) > 1 and effective_n_jobs(n_jobs) > 1:
        alone = settings.on_one_thread()
        with blas_threads(1):
            jobs = (delayed(job)(item, alone) for item in items)
            return list(Parallel(n_jobs=n_jobs, prefer="threads")(jobs))
    return [job(item, settings) for item in items]
