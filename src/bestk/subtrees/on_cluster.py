"""Units explored by the workers of a cluster, many in one call.

How units are grouped changes nothing but the time: outcomes come back unit by unit, in the order
in which they were put in. So the clock may have its say here.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from bestk.base.cluster.calls import Call, Shared
from bestk.base.cluster.client import Cluster
from bestk.base.tuning import tuning
from bestk.subtrees.explore import GO_ON, Scratch, explore
from bestk.subtrees.unit import Outcome, Subproblem, Unit

if TYPE_CHECKING:
    from bestk.subtrees.engines import Engine

# A worker's memory for matrices, kept from one call to the next.
_scratch = Scratch()


def explore_all(subproblem: Subproblem, units: list[Unit]) -> list[Outcome | None]:
    return [explore(subproblem, unit, GO_ON, _scratch) for unit in units]


class OnCluster:
    """The first units are explored by an engine of this process: small trees never leave it."""

    def __init__(self, cluster: Cluster, here: "Engine") -> None:
        self.cluster, self.here = cluster, here
        self._calls = cluster.calls("units")
        self._shared: Shared | None = None
        self._n_put, self._n_here = 0, 0
        self._waiting: deque[tuple[Shared, Unit]] = deque()
        self._sizes: deque[int] = deque()  # units of each call in flight
        self._landed: deque[Outcome | None] = deque()
        self._seconds = tuning().cluster_unit  # of a unit, as measured

    def put(self, subproblem: Subproblem, unit: Unit) -> None:
        self._n_put += 1
        if self._n_put <= tuning().units_here:
            self._n_here += 1
            self.here.put(subproblem, unit)
            return
        if self._shared is None or self._shared.value is not subproblem:
            self._shared = self.cluster.share(subproblem)
        self._waiting.append((self._shared, unit))
        if len(self._waiting) * self._seconds >= tuning().call_seconds:
            self._send()

    def get(self, stop: Callable[[], bool]) -> Outcome | None:
        if self._n_here:
            self._send()
            outcome = self.here.get(stop)
            self._n_here -= outcome is not None
            return outcome
        if not self._landed and not self._land(stop):
            return None
        return self._landed.popleft()

    def end(self) -> list[Outcome | None]:
        outcomes = [*self.here.end(), *self._landed]
        for found, size in zip(self._calls.end(), self._sizes, strict=True):
            outcomes += [None] * size if found is None else found[0]
        outcomes += [None] * len(self._waiting)
        self._n_here = 0
        for queue in (self._landed, self._sizes, self._waiting):
            queue.clear()
        return outcomes

    def _land(self, stop: Callable[[], bool]) -> bool:
        """Have outcomes of the oldest call; False once `stop` says so."""
        if not self._calls.is_ready:
            self._send()  # workers should have something to do while this one waits
        found = self._calls.get(stop)
        if found is None:
            return False
        outcomes, seconds = found
        self._sizes.popleft()
        self._landed += outcomes
        # Units differ a lot: the last calls count most, yet no single one decides.
        self._seconds += 0.2 * (seconds / len(outcomes) - self._seconds)
        return True

    def _send(self) -> None:
        """Units that wait, in as many calls as workers can have at hand, none of them too long."""
        most = int(tuning().calls_per_thread * self.cluster.n_threads)
        while self._waiting and (not len(self._calls) or len(self._calls) < most):
            size = self._group(most)
            shared, first = self._waiting.popleft()
            units = [first]
            while self._waiting and len(units) < size and self._waiting[0][0] is shared:
                units.append(self._waiting.popleft()[1])
            self._calls.put(Call(explore_all, units), shared)
            self._sizes.append(len(units))

    def _group(self, most: int) -> int:
        """Units of a call: all that is in flight, spread over workers, or what takes a second."""
        in_flight = len(self._waiting) + sum(self._sizes)
        longest = int(tuning().call_seconds / self._seconds)
        return max(1, min(-(-in_flight // most), longest))
