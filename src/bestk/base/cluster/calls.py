"""Pure calls to the workers of a cluster: answers come in order, and none is ever lost."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from bestk.base.cluster.client import Cluster

# Seconds between two looks at limits.
_LOOK = 0.05
# Seconds without a worker, or without any answer from one and several times longer than answers
# took before, after which calls are answered here.
_PATIENCE = 10.0
# How often a call is sent before it is answered here.
_TRIES = 3


class OtherVersion(RuntimeError):
    """A worker has another bestk than the client, or none: its trees need not be the same."""


class Packed:
    """A value that travels in one piece.

    Arrays that travel on their own arrive at any byte of a buffer. Loops would be compiled again
    for these, and BLAS leaves them to slower loops that round differently.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        from distributed.protocol.pickle import dumps

        return _unpacked, (type(self), dumps(self.value))


def _unpacked(kind: type[Packed], data: bytes) -> Packed:
    from distributed.protocol.pickle import loads

    packed = kind.__new__(kind)
    packed.value = loads(data)
    return packed


class Call(Packed):
    """A pure function with its arguments; texts and dashboards show its name alone."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        super().__init__((function, arguments))

    @property
    def function(self) -> Callable[..., Any]:
        return self.value[0]

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.value[1]

    def __call__(self, *first: Any) -> Any:
        return self.function(*first, *self.arguments)

    def __repr__(self) -> str:
        return self.function.__name__


def answer(call: Call, version: str, *shared: Packed) -> Packed:
    """On a worker: the answer to a call, and the seconds it took."""
    from bestk import __version__

    if version != __version__:
        raise OtherVersion(
            f"a worker has bestk {__version__}, and this process has {version}; install the same "
            "version everywhere"
        )
    started = time.perf_counter()
    found = call(*(packed.value for packed in shared))
    return Packed((found, time.perf_counter() - started))


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
                packed = [Packed(self.value)]
                sending = self.client.scatter(packed, **options, asynchronous=True)
                try:
                    self._future = (await sending)[0]
                except Exception as error:  # of any kind, if a worker dies meanwhile
                    raise ConnectionError(
                        "data did not reach the workers; check the cluster, and try again"
                    ) from error
            return self._future


class Calls:
    """Pure calls in flight: put in at one end, their answers come out at the other, in order.

    A call whose worker died is sent again, and answered here if that does not help or if there is
    no worker left. So are calls that should be short, and take very much longer than others.
    """

    def __init__(self, cluster: "Cluster", name: str, is_short: bool) -> None:
        self.cluster, self.is_short = cluster, is_short
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
            return found.value
        finally:
            future.release()  # nobody waits for it any more

    def _again(self, flying: "_Flying", error: Exception) -> None:
        """What went wrong may be the fault of a worker, or of the call itself."""
        self.cluster.require_scheduler()
        if isinstance(error, ImportError):
            raise OtherVersion(
                f"a worker cannot import what it needs ({error}): install the same bestk there"
            ) from error
        # Another worker, or this process, may have what one has too little of.
        if not is_loss(error) and not isinstance(error, OSError | MemoryError):
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
        is_late = self.is_short and silence > _PATIENCE + 10.0 * self.longest
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


def is_loss(error: Exception) -> bool:
    """Whether an answer was lost with a worker; Dask's errors are told by their names."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"KilledWorker", "CancelledError", "CommClosedError"})
