"""Where units are explored. Outcomes come back in the order of the units, whoever computed them."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from typing import Protocol

import numpy as np

from bestk.base.threads import Workers
from bestk.subtrees.explore import explore
from bestk.subtrees.unit import Outcome, Subproblem, Unit

# Seconds between two looks at limits while threads are at work.
_LOOK = 0.05


class Engine(Protocol):
    """Runs units of work.

    Units are pure: an engine may run them in any order, anywhere, more than once, and run lost ones
    again. None stands for a unit that was not finished when `stop` said so; each of them is still
    as open as before.
    """

    def run(
        self, subproblem: Subproblem, units: Sequence[Unit], stop: Callable[[], bool]
    ) -> list[Outcome | None]: ...


class Serial:
    """One unit after the other, here."""

    def run(
        self, subproblem: Subproblem, units: Sequence[Unit], stop: Callable[[], bool]
    ) -> list[Outcome | None]:
        return [None if stop() else explore(subproblem, unit) for unit in units]


class Threads:
    """Threads of this process: the loop over nodes runs without the GIL."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers

    def run(
        self, subproblem: Subproblem, units: Sequence[Unit], stop: Callable[[], bool]
    ) -> list[Outcome | None]:
        flag = np.zeros(1, dtype=np.int8)
        futures = [self.workers.submit(explore, subproblem, unit, flag) for unit in units]
        waiting = set(futures)
        try:
            while waiting:
                _, waiting = wait(waiting, timeout=_LOOK, return_when=FIRST_COMPLETED)
                if waiting and stop():
                    flag[0] = 1
                    wait(waiting)
                    break
        finally:
            flag[0] = 1  # after Ctrl-C, too: nobody waits for what is still being explored
        return [future.result() for future in futures]


def engine_for(workers: Workers) -> Engine:
    return Serial() if workers.n_threads == 1 else Threads(workers)
