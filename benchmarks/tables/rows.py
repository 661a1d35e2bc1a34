"""The rows of the study of real tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..harness.contest import Judged
from ..harness.paper import GAP
from ..harness.referee import ROUNDING
from ..harness.tables import percent
from .contenders import CONTENDERS
from .problems import Problem

SLACK = 1e-3
"""The goal of peers is translated for them, and holds up to this share of it."""


@dataclass(frozen=True, kw_only=True)
class Row(Judged):
    """One contender on one problem; objective, size and what follows from them are recomputed."""

    table: str
    degree: int
    n: int
    p: int
    k: int
    alpha: float
    contender: str
    threads: int
    limit: float
    seconds: float
    """From (X, y) to the answer; the beam search of a warm start included."""
    nodes: int
    objective: float
    lower_bound: float
    """As claimed; nan where none is."""
    yy: float
    size: int
    box: float
    """The M of |b| <= M that it was told; nan if it was not."""
    largest: float
    """The largest coefficient of the model, in absolute value."""
    complaint: str
    """Why the answer cannot be accepted; empty when it can."""
    notes: str
    versions: str
    commit: str

    @property
    def instance(self) -> Problem:
        return Problem(self.table, self.degree, self.k, self.alpha)

    @property
    def is_heuristic(self) -> bool:
        return CONTENDERS[self.contender].kind == "heuristic"

    @property
    def gap(self) -> float:
        """Relative to the whole objective, as in ``result.gap``."""
        return self.verdict.gap

    @property
    def is_closed(self) -> bool:
        return not self.complaint and self.gap <= GAP * (1.0 + SLACK)

    def refutes(self, other: Any) -> bool:
        """A model says nothing about a box that it is not in."""
        is_outside = self.largest > other.box * (1.0 + ROUNDING)  # never, if there is no box
        return super().refutes(other) and not is_outside

    def __str__(self) -> str:
        return (
            f"{self.contender:<26} {self.seconds:9.3f} s  gap {percent(self.gap):>9}  "
            f"{self.nodes} nodes  {self.complaint}"
        )
