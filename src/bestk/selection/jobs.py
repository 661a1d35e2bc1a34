"""Independent searches side by side: targets, folds, equations."""

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from bestk.base.cluster.calls import Call
from bestk.base.cluster.client import Cluster
from bestk.base.settings import Settings
from bestk.base.threads import blas_threads

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def as_jobs(n_jobs: Any) -> int | None:
    """How many searches at a time, as joblib counts them; it says little about other values."""
    if n_jobs is None:
        return None
    wanted = "n_jobs must be a whole number such as 2, -1 for all cores, or None"
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"{wanted}, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError(f"{wanted}, got 0")
    return int(n_jobs)


def run_jobs(
    job: Callable[[Item, Settings], Answer],
    items: Iterable[Item],
    settings: Settings,
    n_jobs: Any,
    n_searches: int = 1,
) -> list[Answer]:
    """``job(item, settings)`` for every item; with n_jobs > 1 each on one thread of its own.

    With a client, each is a call of a worker: what the job knows goes there once. Nobody watches
    its searches there, but that so many have ended is told when its answer comes.
    """
    items, n_jobs = list(items), as_jobs(n_jobs)
    cluster = settings.cluster()
    if len(items) > 1 and cluster is not None:
        return _on_cluster(cluster, job, items, settings, n_searches)
    if len(items) > 1 and effective_n_jobs(n_jobs) > 1:
        alone = settings.on_one_thread()
        with blas_threads(1):
            jobs = (delayed(job)(item, alone) for item in items)
            return list(Parallel(n_jobs=n_jobs, prefer="threads")(jobs))
    return [job(item, settings) for item in items]


def _on_cluster(
    cluster: Cluster,
    job: Callable[[Item, Settings], Answer],
    items: list[Item],
    settings: Settings,
    n_searches: int,
) -> list[Answer]:
    calls, shared = cluster.calls("searches", is_short=False), cluster.share(job)
    answers: list[Answer] = []
    try:
        for item in items:
            calls.put(Call(one_of_many, item, settings.on_a_worker()), shared)
        while len(calls):
            found = calls.get(lambda: False)
            assert found is not None
            answers.append(found[0])
            if hasattr(settings.progress, "close"):
                for _ in range(n_searches):
                    settings.progress.close()
    finally:
        calls.end()
    return answers


def one_of_many(job: Callable[[Item, Settings], Answer], item: Item, settings: Settings) -> Answer:
    """On a worker, which has as many jobs at a time as it has threads."""
    with blas_threads(1):
        return job(item, settings)
