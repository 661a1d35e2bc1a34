"""Where units are explored. Outcomes come back in the order of the units, whoever computed them."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Protocol

import numpy as np

from bestk.base.threads import Workers
from bestk.subtrees.explore import GO_ON, Scratch, explore
from bestk.subtrees.on_cluster import OnCluster
from bestk.subtrees.unit import Outcome, Subproblem, Unit

# Seconds between two looks at limits while threads are at work.
_LOOK = 0.05


class Engine(Protocol):
    """Explores units that are put in at one end, and come out at the other as outcomes.

    Units are pure: an engine may explore them in any order, anywhere, more than once, and explore
    lost ones again.
    """

    def put(self, subproblem: Subproblem, unit: Unit) -> None:
        """Begin with a unit, now or later."""

    def get(self, stop: Callable[[], bool]) -> Outcome | None:
        """The outcome of the oldest unit, which is then forgotten; None once `stop` says so."""

    def end(self) -> list[Outcome | None]:
        """Give up all units, and forget them: outcomes of those that are done, None for others."""


class Serial:
    """One unit after the other, here, when its outcome is asked for."""

    def __init__(self) -> None:
        self._units: deque[tuple[Subproblem, Unit]] = deque()
        self._scratch = Scratch()

    def put(self, subproblem: Subproblem, unit: Unit) -> None:
        self._units.append((subproblem, unit))

    def get(self, stop: Callable[[], bool]) -> Outcome | None:
        return None if stop() else explore(*self._units.popleft(), GO_ON, self._scratch)

    def end(self) -> list[Outcome | None]:
        left: list[Outcome | None] = [None] * len(self._units)
        self._units.clear()
        return left


class Threads:
    """Threads of this process: the loop over nodes runs without the GIL."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._futures: deque[Future[Outcome | None]] = deque()
        self._flag = np.zeros(1, dtype=np.int8)
        self._scratch = Scratch()

    def put(self, subproblem: Subproblem, unit: Unit) -> None:
        terms = self._flag, self._scratch
        self._futures.append(self.workers.submit(explore, subproblem, unit, *terms))

    def get(self, stop: Callable[[], bool]) -> Outcome | None:
        while not self._futures[0].done():
            if stop():
                return None
            wait([self._futures[0]], timeout=_LOOK)
        return self._futures.popleft().result()

    def end(self) -> list[Outcome | None]:
        self._flag[0] = 1
        wait(self._futures)
        outcomes = [future.result() for future in self._futures]
        self._futures.clear()
        self._flag = np.zeros(1, dtype=np.int8)  # those to come have a flag of their own
        return outcomes


def engine_for(workers: Workers) -> Engine:
    here = Serial() if workers.n_threads == 1 else Threads(workers)
    return here if workers.cluster is None else OnCluster(workers.cluster, here)
