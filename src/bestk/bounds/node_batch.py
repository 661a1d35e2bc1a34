"""Nodes that are bounded together."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestk.base.constants import IN

# Times the error of the data that is allowed for: whoever checks a bound with an analysis of their
# own, perhaps a coarser one, should come to the same.
CAUTION = 4.0
# Duals are kept in single precision where charges are not so small that rounding would cost.
_SINGLE_FROM = 1e-5


@dataclass(kw_only=True)
class Batch:
    """Nodes as rows. ``duals`` and ``levels`` are warm starts first, results afterwards."""

    states: np.ndarray
    duals: np.ndarray
    levels: np.ndarray
    bounds: np.ndarray
    work: np.ndarray
    numbers: list[int] = field(default_factory=list)  # in the record of the proof
    slopes: Any = None  # of wide forms, where the search knows them already

    def remaining(self, k: int) -> np.ndarray:
        return k - np.count_nonzero(self.states == IN, axis=1)

    def keep_better(self, duals: np.ndarray, values: np.ndarray, best: np.ndarray) -> None:
        """Take over the duals of rows whose value is above `best`, which rises to it."""
        better = values > best
        best[better] = values[better]
        self.duals[better] = duals[better]


def rounded(duals: np.ndarray) -> np.ndarray:
    """To single precision, in which a certificate keeps them: the proof is about these numbers."""
    return duals.astype(np.float32).astype(np.float64)


def as_recorded(duals: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Dual vectors as a certificate keeps them: rounded, if charges allow it."""
    return rounded(duals) if t.mean() >= _SINGLE_FROM else duals
