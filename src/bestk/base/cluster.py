"""A Dask cluster as a place for pure calls: what is lost with a worker is computed again.

Dask is imported by whoever has a client, or data of Dask, and never by ``import bestk``.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from itertools import count
from typing import Any
from uuid import uuid4
from weakref import WeakSet

# Seconds between two looks at limits.
_LOOK = 0.05
# Seconds for which a cluster may be without a scheduler before it is given up, and without an
# answer to the oldest call, several times longer than any before, before it is answered here.
_RECONNECT, _PATIENCE = 10.0, 10.0
# How often a call is sent before it is answered here.
_TRIES = 3

INSTALL = 'pip install "bestk[dask]"'


class ClusterLost(ConnectionError):
    """The scheduler of a cluster no longer answers."""


class OtherVersion(RuntimeError):
    """A worker has another bestk than the client: their trees need not be the same."""


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
        raise ClusterLost(f"client is {client.status}: connect a new one to its scheduler")
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


class Call:
    """A pure function with its arguments; texts and dashboards show its name alone."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __call__(self, *first: Any) -> Any:
        return self.function(*first, *self.arguments)

    def __repr__(self) -> str:
        return self.function.__name__


def answer(call: Call, version: str, *shared: Any) -> tuple[Any, float]:
    """On a worker: the answer to a call, and the seconds it took."""
    from bestk import __version__

    if version != __version__:
        raise OtherVersion(
            f"a worker has bestk {__version__}, and the client {version}: install the same one"
        )
    started = time.perf_counter()
    return call(*shared), time.perf_counter() - started


class Shared:
    """A value that many calls need: sent to the workers once, and again if they have lost it."""

    def __init__(self, client: Any, value: Any) -> None:
        self.client, self.value = client, value
        self._future: Any = None

    def future(self) -> Any:
        if self._future is None or self._future.status not in ("finished", "pending"):
            options = {"broadcast": True, "hash": False, "timeout": _PATIENCE}
            self._future = self.client.scatter([self.value], **options)[0]
        return self._future


class Cluster:
    """The workers behind a client."""

    def __init__(self, client: Any) -> None:
        self.client = require_client(client)
        self._seen, self._n_threads, self._most_workers = -1e9, 1, 0
        self._calls: WeakSet[Calls] = WeakSet()

    @property
    def words(self) -> str:
        self._look()
        n = self._most_workers
        return f"dask, {n} worker" + ("" if n == 1 else "s")

    @property
    def n_threads(self) -> int:
        """Threads of all workers, as of a second ago; at least one."""
        self._look()
        return max(self._n_threads, 1)

    @property
    def is_empty(self) -> bool:
        """Whether there is no worker at all."""
        self._look()
        return self._n_threads == 0

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

    def share(self, value: Any) -> Shared:
        return Shared(self.client, value)

    def calls(self, name: str) -> "Calls":
        """Room for calls; dashboards show their name."""
        calls = Calls(self, name)
        self._calls.add(calls)
        return calls

    def end_calls(self) -> None:
        """Give up all that is in flight, after an error or Ctrl-C."""
        for calls in self._calls:
            calls.end()

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


class Calls:
    """Pure calls in flight: put in at one end, their answers come out at the other, in order.

    A call whose worker died is sent again, and answered here if that does not help, if there is no
    worker left, or if it takes very much longer than others.
    """

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self._name, self._numbers = f"bestk-{name}-{uuid4().hex[:8]}", count()
        self._flying: deque[_Flying] = deque()
        self._here: ThreadPoolExecutor | None = None
        self.longest = 0.0

    def __len__(self) -> int:
        return len(self._flying)

    def put(self, call: Call, shared: Shared | None = None) -> None:
        flying = _Flying(call, shared, next(self._numbers))
        self._send(flying)
        self._flying.append(flying)

    @property
    def is_ready(self) -> bool:
        """Whether the oldest call is answered."""
        return bool(self._flying) and self._flying[0].is_answered

    def get(self, stop: Callable[[], bool]) -> tuple[Any, float] | None:
        """The answer to the oldest call, and its seconds; None once `stop` says so."""
        oldest, since = self._flying[0], time.monotonic()
        while True:
            if stop():
                return None
            if oldest.here is not None and oldest.here.done():
                found = oldest.here.result()
                break
            try:
                found = oldest.there.result(timeout=_LOOK)
                break
            except FutureTimeout:
                if oldest.here is None and self._is_stuck(time.monotonic() - since):
                    self._answer_here(oldest)
            except Exception as error:
                if oldest.here is None:
                    self._again(oldest, error)
                else:
                    wait([oldest.here], timeout=_LOOK)
        self._flying.popleft().forget()
        self.longest = max(self.longest, found[1])
        return found

    def end(self) -> list[tuple[Any, float] | None]:
        """Give up all calls: answers of those that have one, None for others."""
        answers = [flying.answer for flying in self._flying]
        for flying in self._flying:
            flying.forget()
        self._flying.clear()
        if self._here is not None:
            self._here.shutdown(wait=False, cancel_futures=True)
            self._here = None
        return answers

    def _send(self, flying: "_Flying") -> None:
        """To the cluster, or to a thread here if it takes nothing."""
        from bestk import __version__

        flying.tries += 1
        client = self.cluster.client
        try:
            shared = [] if flying.shared is None else [flying.shared.future()]
            future = client.submit(
                answer, flying.call, __version__, *shared, pure=False, priority=-flying.number,
                key=f"{self._name}-{flying.number}-{flying.tries}",
            )  # fmt: skip
        except Exception:
            self.cluster.require_scheduler()
            self._answer_here(flying)
            return
        fetching = _fetched(client, future)
        flying.future = future
        flying.there = asyncio.run_coroutine_threadsafe(fetching, client.loop.asyncio_loop)

    def _again(self, flying: "_Flying", error: Exception) -> None:
        """What went wrong may be the fault of a worker, or of the call itself."""
        self.cluster.require_scheduler()
        if _is_of_the_call(error):
            raise error
        flying.forget()
        if flying.tries < _TRIES:
            self._send(flying)
        else:
            self._answer_here(flying)

    def _answer_here(self, flying: "_Flying") -> None:
        self._here = self._here or ThreadPoolExecutor(1)
        flying.here = self._here.submit(_answer_with, flying.call, flying.shared)

    def _is_stuck(self, seconds: float) -> bool:
        if seconds < 1.0:
            return False
        self.cluster.require_scheduler()
        patience = _PATIENCE if self.cluster.is_empty else _PATIENCE + 10.0 * self.longest
        return seconds > patience


class _Flying:
    """A call, and where its answer will be."""

    def __init__(self, call: Call, shared: Shared | None, number: int) -> None:
        self.call, self.shared, self.number, self.tries = call, shared, number, 0
        self.future: Any = None
        self.there: Future[Any] = Future()
        self.here: Future[Any] | None = None

    @property
    def is_answered(self) -> bool:
        return self.answer is not None

    @property
    def answer(self) -> tuple[Any, float] | None:
        done = [place for place in (self.there, self.here) if place is not None and place.done()]
        for place in done:
            if not place.cancelled() and place.exception() is None:
                return place.result()
        return None

    def forget(self) -> None:
        """On the cluster nobody waits for it any more."""
        self.there.cancel()
        if self.future is not None:
            self.future.cancel()
            self.future = None


async def _fetched(client: Any, future: Any) -> Any:
    return await client.gather(future, asynchronous=True)


def _answer_with(call: Call, shared: Shared | None) -> tuple[Any, float]:
    started = time.perf_counter()
    found = call() if shared is None else call(shared.value)
    return found, time.perf_counter() - started


def _is_of_the_call(error: Exception) -> bool:
    """Whether the call itself has failed, and would elsewhere; not the worker it was on."""
    names = {kind.__name__ for kind in type(error).__mro__}
    faults = {"KilledWorker", "CancelledError", "FutureCancelledError", "FuturesCancelledError"}
    faults |= {"CommClosedError", "OSError", "MemoryError", "TimeoutError"}
    return not names & faults
