"""Clusters of real processes on this machine, and what happens to their workers."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dask
from distributed import Client, LocalCluster

_QUIET = {
    "distributed.logging": {"distributed": "critical"},
    "distributed.scheduler.allowed-failures": 3,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.admin.system-monitor.interval": "10s",
}


def _imported() -> None:
    import bestk.problem.table
    import bestk.selection.problem  # noqa: F401


@contextmanager
def cluster(n_workers: int = 2, n_threads: int = 1) -> Iterator[Client]:
    """Processes that are started again when they die, as a laptop's or a queue's are."""
    with (
        dask.config.set(_QUIET),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=n_threads,
            processes=True,
            dashboard_address=None,
            silence_logs=60,
            memory_limit=0,
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        client.run(_imported)
        yield client


def kill_one(client: Client, how: int = signal.SIGKILL) -> bool:
    """Whether there was a worker to kill."""
    nannies = list(client.cluster.workers.values())
    random.shuffle(nannies)
    for nanny in nannies:
        pid = nanny.pid if nanny.process is not None else None
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
                return True
    return False


class Killer:
    """Kills workers at random moments until the block ends."""

    def __init__(self, client: Client, seed: int, longest_pause: float = 0.8) -> None:
        self.client, self.n_killed = client, 0
        self._random, self._longest = random.Random(seed), longest_pause
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._over.wait(self._random.uniform(0.0, self._longest)):
            self.n_killed += kill_one(self.client)

    def __enter__(self) -> "Killer":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()


def wait_until(condition, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "nothing happened"
        time.sleep(0.05)
