"""A Dask cluster as a place for pure calls: what is lost with a worker is computed again.

Dask is imported by whoever has a client, or data of Dask, and never by ``import bestk``.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import numpy as np

from bestk.base.cluster.calls import Calls, Shared, is_loss
from bestk.base.cluster.collections import is_collection
from bestk.base.words import counted

# Seconds between two looks.
_LOOK = 0.05
# Seconds for which a cluster may be without a scheduler before it is given up.
_RECONNECT = 10.0
# How often sums are begun before they are given up, if workers die of them.
_TRIES = 3
# Seconds in which a scheduler forgets what was given up.
_FORGETTING = 1.0
# Seconds without any worker after which sums are given up: a queue may need some to start them.
_NO_WORKERS = 300.0

INSTALL = 'pip install "bestk[dask]"'


class ClusterLost(ConnectionError):
    """The scheduler of a cluster no longer answers."""


def require_client(client: Any) -> Any:
    """A client of Dask that is connected, or None."""
    if client is None:
        return None
    if not hasattr(client, "submit") or not hasattr(client, "scatter"):
        raise TypeError(
            f"client must be a dask.distributed.Client, got {client!r}; dask.distributed.Client() "
            "starts a cluster on this machine"
        )
    if client.asynchronous:
        raise TypeError("client is asynchronous; pass one made by Client(asynchronous=False)")
    if client.status != "running":
        raise ClusterLost(
            f"client is {client.status}; connect a new one, dask.distributed.Client(address)"
        )
    return client


def client_of_data() -> Any:
    """The client that Dask itself would use for its collections; None if it would use threads."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


def client_for(X: Any, client: Any) -> Any:
    """The client that was given, or the one that a collection brings with it; None without any."""
    if client is None and is_collection(X):
        return client_of_data()
    return require_client(client)


class Cluster:
    """The workers behind a client."""

    def __init__(self, client: Any) -> None:
        self.client = require_client(client)
        self._seen, self._n_threads, self._most_workers = -np.inf, 1, 0
        self._last_worker = time.monotonic()
        self._calls: WeakSet[Calls] = WeakSet()

    @property
    def words(self) -> str:
        self._look()
        return f"dask, {counted(self._most_workers, 'worker')}"

    @property
    def n_threads(self) -> int:
        """Threads of all workers, as of a second ago; at least one."""
        self._look()
        return max(self._n_threads, 1)

    @property
    def seconds_empty(self) -> float:
        """How long there has been no worker at all."""
        self._look()
        return 0.0 if self._n_threads else time.monotonic() - self._last_worker

    def _look(self) -> None:
        if time.monotonic() - self._seen < 1.0 or self.client.status != "running":
            return
        self._seen = time.monotonic()
        try:
            workers = self.client.nthreads()
        except Exception:  # whoever waits for an answer sees whether the scheduler comes back
            return
        self._n_threads = sum(workers.values())
        self._most_workers = max(self._most_workers, len(workers))
        if workers:
            self._last_worker = self._seen

    def share(self, value: Any) -> Shared:
        return Shared(self.client, value)

    def calls(self, name: str, *, is_short: bool = True) -> Calls:
        """Room for calls; dashboards show their name."""
        calls = Calls(self, name, is_short)
        self._calls.add(calls)
        return calls

    def end_calls(self) -> None:
        """Give up all that is in flight, after an error or Ctrl-C."""
        for calls in self._calls:
            calls.end()

    def computed(self, make: Callable[[], list[Any]]) -> list[Any]:
        """Delayed values, computed by the workers. Dask itself makes again what they lose.

        They are made anew, under other names, each time that Dask gives up.
        """
        for attempt in range(1, _TRIES + 1):
            futures = self.client.compute(make())
            try:
                self._wait_for(futures)
                return self.client.gather(futures)
            except Exception as error:
                self.require_scheduler()
                if not is_loss(error):
                    raise
                if attempt == _TRIES:
                    raise MemoryError(
                        f"workers died again and again ({error}); if they ran out of memory, make "
                        "partitions smaller or give workers more"
                    ) from error
            finally:
                with suppress(Exception):  # the scheduler may be lost
                    self.client.cancel(futures)
            time.sleep(_FORGETTING)
        raise AssertionError("unreachable")

    def _wait_for(self, futures: list[Any]) -> None:
        """Until all are done or one has failed; workers may be away for a while."""
        while not all(future.done() for future in futures):
            if any(future.status in ("error", "cancelled", "lost") for future in futures):
                return
            self.require_scheduler()
            if self.seconds_empty > _NO_WORKERS:
                raise ClusterLost(
                    f"there has been no worker for {_NO_WORKERS:.0f} seconds; start some, and try "
                    "again"
                )
            time.sleep(_LOOK)

    def require_scheduler(self) -> None:
        """Wait for a scheduler that is away; an error if it stays away."""
        until = time.monotonic() + _RECONNECT
        while self.client.status != "running":
            if self.client.status == "closed" or time.monotonic() > until:
                raise ClusterLost(
                    "the scheduler of the cluster is lost; a checkpoint, if one was written, goes "
                    "on with another client: bestk.resume(checkpoint, X, y, client=...)"
                )
            time.sleep(_LOOK)
