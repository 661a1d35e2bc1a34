"""Nodes that are bounded together."""

from dataclasses import dataclass, field

import numpy as np

from bestk.base.constants import IN
from bestk.base.tuning import tuning
from bestk.form.matrix import Slopes


@dataclass(kw_only=True)
class NodeBatch:
    """Nodes as rows. ``duals`` and ``levels`` are warm starts first, results afterwards."""

    states: np.ndarray
    duals: np.ndarray
    levels: np.ndarray
    bounds: np.ndarray
    multiplies: np.ndarray  # counted work
    numbers: list[int] = field(default_factory=list)  # in the record of the proof
    slopes: Slopes | None = None  # of the duals, where the search knows them already

    @classmethod
    def of(cls, states: np.ndarray, duals: np.ndarray, levels: np.ndarray) -> "NodeBatch":
        """Nodes that are not bounded yet."""
        unknown, nothing = np.full(len(states), -np.inf), np.zeros(len(states))
        return cls(states=states, duals=duals, levels=levels, bounds=unknown, multiplies=nothing)

    def __len__(self) -> int:
        return len(self.states)

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
    return rounded(duals) if t.mean() >= tuning().single_from else duals
