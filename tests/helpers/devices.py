"""A device in NumPy: the plain twin of all others."""

from contextlib import contextmanager
from itertools import combinations
from unittest.mock import patch

import numpy as np

from bestk.base.device.driver import DeviceFailed
from bestk.devices.tasks import Stopped
from bestk.search import collecting
from bestk.search import run as run_module


def is_definite(M, chosen) -> bool:
    part = M[np.ix_(chosen, chosen)]
    try:
        np.linalg.cholesky(np.triu(part) + np.triu(part, 1).T)
    except np.linalg.LinAlgError:
        return False
    return True


def harmful_beginnings(M, r) -> set[tuple[int, ...]]:
    """The first r - 2 features of sets that are not positive definite, one by one."""
    sets = combinations(range(len(M)), r)
    return {chosen[: r - 2] for chosen in sets if not is_definite(M, chosen)}


class Plain:
    """Tries every set by a Cholesky factorisation."""

    name = "plain:0 (NumPy)"

    def __init__(self, *, fails_after: int | None = None, stops_after: int | None = None) -> None:
        self.n_tasks, self.n_calls = 0, 0
        self.fails_after, self.stops_after = fails_after, stops_after

    def remaining(self, tasks, stop, progress):
        self.n_calls += 1
        if self.fails_after is not None and self.n_calls > self.fails_after:
            raise DeviceFailed(f"{self.name} is gone")
        done, rows = progress.begin(tasks)  # here tasks are counted, not prefixes
        for at in range(done, len(tasks)):
            if stop():
                raise Stopped
            M, r = tasks[at]
            rows[at] = [list(row) for row in sorted(harmful_beginnings(M, r))]
            self.n_tasks += 1
            progress.save(at + 1, rows, 1)
        sizes = [r - 2 for _, r in tasks]
        return [np.array(a, np.int64).reshape(-1, n) for a, n in zip(rows, sizes, strict=True)]


@contextmanager
def using(device):
    """Every search inside the block that asks for "cuda" gets this device."""

    def opened(name):
        return None if name == "cpu" else device

    with (
        patch.object(run_module, "open_device", opened),
        patch.object(collecting, "open_device", opened),
    ):
        yield device
