"""The rows of the study of structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..harness.contest import Judged
from ..harness.paper import GAP
from ..harness.referee import ROUNDING
from ..harness.tables import percent
from .problems import Problem

SLACK = 1e-3
"""The goal of peers is translated for them, and holds up to this share of it."""


@dataclass(frozen=True, kw_only=True)
class Row(Judged):
    """One method on one problem; objective, size and what follows from them are recomputed."""

    part: str
    data: str
    structure: str
    n: int
    p: int
    """Coefficients, of all equations together."""
    n_groups: int
    k: int
    alpha: float
    contender: str
    threads: int
    limit: float
    seconds: float
    """Median of the runs."""
    runs: int
    nodes: int
    objective: float
    lower_bound: float
    """As claimed; nan where none is."""
    yy: float
    size: int
    """Groups in the model."""
    violation: float
    """The largest |C b - d|."""
    box: float
    """The M of |b| <= M that it was told; nan if it was not."""
    largest: float
    """The largest coefficient of the model, in absolute value."""
    verify: float
    """Seconds to verify the certificate; nan if there is none, or the search was stopped."""
    verified: str
    """"yes", what the verifier says otherwise, or nothing if it was not asked."""
    complaint: str
    """Why the answer cannot be accepted; empty when it can."""
    notes: str
    versions: str
    commit: str

    @property
    def instance(self) -> Problem:
        return Problem(self.part, self.data, self.structure, self.k, self.alpha, self.limit)

    @property
    def gap(self) -> float:
        """Relative to the whole objective, as in ``result.gap``."""
        return self.verdict.gap

    @property
    def is_closed(self) -> bool:
        return not self.complaint and self.gap <= GAP * (1.0 + SLACK)

    def refutes(self, other: Any) -> bool:
        """A model that breaks a rule says nothing, nor one outside of the other's box."""
        is_outside = self.largest > other.box * (1.0 + ROUNDING)  # never, if there is no box
        return not self.complaint and super().refutes(other) and not is_outside

    def __str__(self) -> str:
        return (
            f"{self.contender:<12} {self.seconds:9.4f} s  gap {percent(self.gap):>9}  "
            f"{self.nodes} nodes  {self.verified}  {self.complaint}"
        )
