"""What a run tells those who watch it, and whether it has to end."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.results.progress import Progress
from bestk.results.result import Snapshot
from bestk.results.status import Status


class Watch:
    """History, progress and callback of a run; its limits.

    ``status`` is None until something ends the run. Limits end it between steps, they never change
    its path.
    """

    def __init__(self, settings: Settings, progress: Progress, started: float) -> None:
        self.settings, self.progress, self.started = settings, progress, started
        limit = settings.time_limit
        self.deadline = np.inf if limit is None else started + limit
        self.history: list[tuple[float, int, float, float]] = []
        self.status: Status | None = None

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    def is_late(self) -> bool:
        return perf_counter() >= self.deadline

    def report(self, snapshot: Snapshot) -> None:
        point = (snapshot.seconds, snapshot.n_nodes, snapshot.objective, snapshot.lower_bound)
        if not self.history or self.history[-1][2:] != point[2:]:
            self.history.append(point)
        self.progress.update(snapshot)
        callback = self.settings.callback
        if callback is not None and callback(snapshot):
            self.status = Status.STOPPED

    def should_stop(self, n_nodes: int, nbytes: Callable[[], int]) -> bool:
        """Has a limit been reached?"""
        settings = self.settings
        if self.status is not None:
            return True
        if self.is_late():
            self.status = Status.TIME_LIMIT
        elif settings.node_limit is not None and n_nodes >= settings.node_limit:
            self.status = Status.NODE_LIMIT
        elif settings.memory_limit is not None and nbytes() > settings.memory_limit:
            self.status = Status.MEMORY_LIMIT
        return self.status is not None

    def state(self) -> State:
        history = np.array(self.history, dtype=np.float64).reshape(-1, 4)
        return State({"seconds": self.seconds}, {"history": history})

    def restore(self, state: State) -> None:
        """Time and history of a run that goes on; its limits start anew."""
        history = state.reals("history", None, 4, finite=False)
        is_counted = (np.abs(history[:, :2]) < 2**52).all()
        state.require(is_counted, "history", "must have seconds and numbers of nodes")
        self.started -= state.number("seconds", 0.0)
        self.history = [tuple(row) for row in history.tolist()]
