"""The rows of the flows study."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..harness import rows


@dataclass(frozen=True, kw_only=True)
class Row(rows.Row):
    """One equation, found by one method; the columns of the file."""

    digits = 6
    nan = ""

    system: str
    states: int
    candidates: int
    """Terms in the library."""
    noise: float
    method: str
    equation: int
    truth: str
    found: str = ""
    recovered: bool = False
    """Whether found and truth are the same terms."""
    offered: bool = False
    """Whether some model that the method offered has just the true terms."""
    k: int = 0
    alpha: float = np.nan
    objective: float = np.nan
    gap: float = np.nan
    is_open: bool = False
    """Whether the model was not proven."""
    solves: int = 0
    proven: int = 0
    """Solves with gap exactly 0."""
    perfect: int = 0
    """Other solves that ended with a fit perfect to six digits."""
    slowest: float = np.nan
    """Seconds of the slowest solve."""
    slowest_k: int = 0
    runner_up: str = ""
    ratio: float = np.nan
    """Objective of the runner-up over that of the model."""
    runner_up_gap: float = np.nan
    seconds: float = np.nan
    """Of the method, for all equations of the system."""
    remark: str = ""
