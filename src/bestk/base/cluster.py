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

import numpy as np

# Seconds between two looks at limits.
_LOOK = 0.05
# Seconds for which a cluster may be without a scheduler before it is given up, and without an
# answer to the oldest call, several times longer than any before, before it is answered here.
_RECONNECT, _PATIENCE = 10.0, 10.0
# How often a call is sent before it is answered here, or a sum begun before it is given up.
_TRIES = 3
# Seconds without any worker after which sums are given up: a queue may need some to start them.
_NO_WORKERS = 300.0

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
        self._lock = asyncio.Lock()
        self._future: Any = None

    async def placed(self) -> Any:
        """Its future, in the loop of the client."""
        async with self._lock:
            if self._future is None or self._future.status not in ("finished", "pending"):
                options = {"broadcast": True, "hash": False, "timeout": _PATIENCE}
                sending = self.client.scatter([self.value], **options, asynchronous=True)
                try:
                    self._future = (await sending)[0]
                except Exception as error:  # of any kind, if a worker dies meanwhile
                    raise ConnectionError("a value did not reach the workers") from error
            return self._future


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
        n = self._most_workers
        return f"dask, {n} worker" + ("" if n == 1 else "s")

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

    def calls(self, name: str) -> "Calls":
        """Room for calls; dashboards show their name."""
        calls = Calls(self, name)
        self._calls.add(calls)
        return calls

    def end_calls(self) -> None:
        """Give up all that is in flight, after an error or Ctrl-C."""
        for calls in self._calls:
            calls.end()

    def computed(self, values: list[Any]) -> list[Any]:
        """Delayed values, computed by the workers. Dask itself makes again what they lose."""
        for attempt in range(1, _TRIES + 1):
            futures = self.client.compute(values)
            try:
                self._wait_for(futures)
                return self.client.gather(futures)
            except Exception as error:
                self.require_scheduler()
                if _is_of_the_call(error):
                    raise
                if attempt == _TRIES:
                    raise MemoryError(
                        f"workers died again and again ({error}); if they ran out of memory, make "
                        "partitions smaller or give workers more"
                    ) from error
            finally:
                self.client.cancel(futures)
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
        self._heard = 0.0  # when the last answer came from the cluster
        self.longest = 0.0

    def __len__(self) -> int:
        return len(self._flying)

    def put(self, call: Call, shared: Shared | None = None) -> None:
        flying = _Flying(call, shared, next(self._numbers))
        if not self._flying:
            self._heard = time.monotonic()
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
        """To the cluster, unless it has long had no worker."""
        flying.tries += 1
        if self.cluster.seconds_empty > _PATIENCE:
            self._answer_here(flying)
            return
        loop = self.cluster.client.loop.asyncio_loop
        flying.there = asyncio.run_coroutine_threadsafe(self._answer_there(flying), loop)

    async def _answer_there(self, flying: "_Flying") -> tuple[Any, float]:
        from bestk import __version__

        client, shared = self.cluster.client, flying.shared
        needed = [] if shared is None else [await shared.placed()]
        future = client.submit(
            answer, flying.call, __version__, *needed, pure=False, priority=-flying.number,
            key=f"{self._name}-{flying.number}-{flying.tries}",
        )  # fmt: skip
        fetching = asyncio.ensure_future(future)
        fetching.add_done_callback(_seen)
        try:
            # Cancelled here, it would cancel what all calls of the client share, and for ever.
            found = await asyncio.shield(fetching)
            self._heard = time.monotonic()
            return found
        finally:
            future.release()  # nobody waits for it any more

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
        """Whether this call takes too long, or all do: then nobody waits for each of them again."""
        if seconds < _LOOK:
            return False
        self.cluster.require_scheduler()
        silence = max(seconds, time.monotonic() - self._heard)
        is_late = silence > _PATIENCE + 10.0 * self.longest
        return is_late or self.cluster.seconds_empty > _PATIENCE


class _Flying:
    """A call, and where its answer will be."""

    def __init__(self, call: Call, shared: Shared | None, number: int) -> None:
        self.call, self.shared, self.number, self.tries = call, shared, number, 0
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


def _seen(fetching: "asyncio.Future[Any]") -> None:
    """Look at an error that nobody may ask for any more; otherwise a log would complain."""
    if not fetching.cancelled():
        fetching.exception()


def _answer_with(call: Call, shared: Shared | None) -> tuple[Any, float]:
    started = time.perf_counter()
    found = call() if shared is None else call(shared.value)
    return found, time.perf_counter() - started


def _is_of_the_call(error: Exception) -> bool:
    """Whether the call itself has failed, and would elsewhere; not the worker it was on."""
    if isinstance(error, ClusterLost):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    faults = {"KilledWorker", "CancelledError", "FutureCancelledError", "FuturesCancelledError"}
    faults |= {"CommClosedError", "OSError", "MemoryError", "TimeoutError"}
    return not names & faults
