"""The rows of the study of wide data: those of the synthetic study, with a box and memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from ..harness import contest
from ..harness.referee import ROUNDING
from .parts import CONTENDERS


@dataclass(frozen=True, kw_only=True)
class Row(contest.Row):
    """One contender on one instance."""

    M: float
    """The box |b| <= M of the instance; not told to contenders without a box."""
    memory: float
    """MiB that the solver's process held at most, interpreter, packages and data included."""
    largest: float
    """The largest coefficient of the model, in absolute value."""

    @property
    def is_boxed(self) -> bool:
        return CONTENDERS[self.contender].is_boxed

    @property
    def is_inside(self) -> bool:
        """Whether the model lies in the box, told or not."""
        return self.largest <= self.M * (1.0 + ROUNDING)

    def refutes(self, other: Any) -> bool:
        """A model says nothing about a box that it is not in."""
        return super().refutes(other) and (self.is_inside or not other.is_boxed)

    @property
    def trivial_gap(self) -> float:
        """The paper's gap of this model beside the bound 0, which takes no search."""
        return replace(self, lower_bound=0.0).gap

    @property
    def bound_seconds(self) -> float:
        """Of the bound at the root, without data, products and model."""
        return float(json.loads(self.notes)["bound seconds"])
