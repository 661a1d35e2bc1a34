"""The rows of the dynamical systems study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..harness import rows
from .trajectories import SYSTEMS


class Task(NamedTuple):
    system: str
    length: int
    """1 to 12, the number of the duration."""
    trial: int

    @property
    def duration(self) -> float:
        return float(SYSTEMS[self.system].durations[self.length - 1])


@dataclass(frozen=True, kw_only=True)
class Row(rows.Row):
    """One method on one trajectory; the columns of the file."""

    system: str
    length: int
    duration: float
    trial: int
    method: str
    tpr: float = np.nan
    coef_error: float = np.nan
    rmse: float = np.nan
    seconds: float = np.nan
    fits: int = 0
    skipped: int = 0
    """Fits left out for lack of time."""
    failed: int = 0
    """Fits that did not converge or raised an error."""
    solves: int = 0
    """Problems of the grid (equation, k, alpha) that were solved one by one."""
    claimed: int = 0
    """Solves that the method calls optimal."""
    proven: int = 0
    """Solves with claimed gap exactly 0 in which nothing was found to complain about."""
    largest_gap: float = np.nan
    """Largest gap of a solve, from its recomputed objective and its claimed bound."""
    worse: int = 0
    """Solves whose objective is above that of bestk."""
    claimed_worse: int = 0
    """Those that the method calls optimal although they are worse by more than its tolerance."""
    worst_ratio: float = np.nan
    """Largest ratio of its objective to that of bestk."""
    slowest: str = ""
    """Seconds of the slowest solve for each k."""
    choice: str = ""
    remark: str = ""
    commit: str = ""

    @property
    def key(self) -> tuple[Task, str]:
        return Task(self.system, self.length, self.trial), self.method

    def __str__(self) -> str:
        return (
            f"{self.method:<12} {self.seconds:8.2f} s  TPR {self.tpr:.3f}  "
            f"error {self.coef_error:.2e}  RMSE {self.rmse:.2e}  {self.fits} fits"
            + (f", {self.skipped} skipped" if self.skipped else "")
            + (f", {self.failed} failed" if self.failed else "")
            + (f", {self.proven} of {self.solves} proven" if self.solves else "")
            + (f", {self.worse} worse" if self.worse else "")
            + (f"  {self.remark}" if self.remark else "")
        )
