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
    # A cluster gives a worker up that is not there some seconds after it died, even if another has
    # taken its place and died as well.
    "distributed.deploy.lost-worker-timeout": "1h",
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
            dashboard_address=":0",
            silence_logs=60,
            memory_limit=0,
        ) as local,
        Client(local, set_as_default=False) as client,
    ):
        client.run(_imported)
        yield client


def workers_of(client: Client) -> set[int]:
    """Processes of workers that the scheduler knows."""
    known = client.cluster.scheduler.workers
    nannies = client.cluster.workers.values()
    return {n.pid for n in nannies if n.process is not None and n.worker_address in known}


class Killer:
    """Kills as many workers at random moments, until the block ends.

    A worker that dies while it starts would not come back: it has a second to do so.
    """

    def __init__(self, client: Client, most: int, seed: int, longest_pause: float = 0.8) -> None:
        self.client, self.most, self.n_killed = client, most, 0
        self._random, self._longest = random.Random(seed), longest_pause
        self._first_seen: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while self.n_killed < self.most:
            if self._over.wait(self._random.uniform(0.0, self._longest)):
                return
            now = time.monotonic()
            seen = {pid: self._first_seen.setdefault(pid, now) for pid in workers_of(self.client)}
            grown_up = [pid for pid, first in seen.items() if first < now - 1.0]
            if grown_up:
                with suppress(ProcessLookupError):
                    os.kill(self._random.choice(grown_up), signal.SIGKILL)
                    self.n_killed += 1

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
