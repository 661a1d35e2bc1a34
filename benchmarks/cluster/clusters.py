"""Clusters of processes on this machine: one thread each, BLAS on one thread, warmed up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
from threadpoolctl import threadpool_info

from benchmarks.cluster.problems import SMALL, solve_small
from bestk.base.tuning import tuned

POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
QUIET = {
    "distributed.logging": {"distributed": "critical"},
    "distributed.admin.system-monitor.interval": "10s",
}


def versions() -> str:
    import distributed

    return f"Dask {dask.__version__}, distributed {distributed.__version__}"


@contextmanager
def workers(n: int, *, own_scheduler: bool = False, warm: bool = True) -> Iterator[Any]:
    """A client of n fresh worker processes.

    The scheduler is part of this process, as Dask has it on one machine, or a process of its own,
    as on a cluster of many.
    """
    from distributed import Client

    with (
        dask.config.set(QUIET),
        _cluster(n, own_scheduler) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(n, timeout=120)
        if warm:
            warm_up(client)
        _require_one_thread(client)
        yield client


def _cluster(n: int, own_scheduler: bool) -> Any:
    from distributed import LocalCluster, Nanny, SpecCluster
    from distributed.deploy.subprocess import SubprocessScheduler

    served = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    options = {"memory_limit": 0, "env": dict.fromkeys(POOLS, "1")}
    if not own_scheduler:
        terms = {"scheduler_kwargs": served, "silence_logs": 60, **options}
        return LocalCluster(n_workers=n, threads_per_worker=1, processes=True, **terms)
    served |= {"host": "127.0.0.1", "port": 0}
    scheduler = {"cls": SubprocessScheduler, "options": {"scheduler_kwargs": served}}
    worker = {"cls": Nanny, "options": {"nthreads": 1, "silence_logs": 60, **options}}
    fleet = {"workers": dict.fromkeys(range(n), worker), "worker": worker}
    return SpecCluster(scheduler=scheduler, **fleet, silence_logs=60)


def warm_up(client: Any) -> None:
    """Load compiled loops in every worker, and send it something of every kind."""
    client.run(solve_small)
    with eager():
        for search in SMALL:
            search.solve(search.data(), client)


@contextmanager
def eager() -> Iterator[None]:
    """Small problems are sent to workers as well."""
    with tuned(units_here=5, cluster_scan=0.01, call_seconds=0.05):
        yield


def _require_one_thread(client: Any) -> None:
    """BLAS of every worker has one thread."""
    for address, pools in client.run(threadpool_info).items():
        if any(pool["user_api"] == "blas" and pool["num_threads"] != 1 for pool in pools):
            raise RuntimeError(f"BLAS of {address} has more than one thread: {pools}")
