"""The rows of the synthetic study: one contender on one instance."""

from __future__ import annotations

from dataclasses import dataclass

from ..harness.paper import GAP
from ..harness.referee import Verdict
from ..harness.tables import percent
from .studies import Instance


@dataclass(frozen=True, kw_only=True)
class Row:
    """The columns of the file; objective, size and what follows from them are recomputed."""

    n: int
    p: int
    rho: float
    alpha: float
    k: int
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
    true_features: int
    """How many of the features that made the data are in the model."""
    complaint: str
    """Why the answer cannot be accepted; empty when it can."""
    notes: str
    versions: str
    commit: str

    @property
    def instance(self) -> Instance:
        return Instance(self.n, self.p, self.rho, self.alpha, self.k)

    @property
    def verdict(self) -> Verdict:
        return Verdict(
            seconds=self.seconds,
            nodes=self.nodes,
            objective=self.objective,
            lower_bound=self.lower_bound,
            yy=self.yy,
            size=self.size,
            complaint=self.complaint,
        )

    @property
    def is_closed(self) -> bool:
        return self.verdict.closed(GAP)

    @property
    def gap(self) -> float:
        """The paper's, relative to y'y - objective."""
        return self.verdict.explained_gap

    def __str__(self) -> str:
        return (
            f"{self.contender:<32} {self.seconds:9.3f} s  gap {percent(self.gap):>9}  "
            f"{self.nodes} nodes, {self.true_features} of {self.k} true  {self.complaint}"
        )
