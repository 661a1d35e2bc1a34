"""The rows of the study of wide data: those of the synthetic study, with a box and memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..harness.referee import ROUNDING
from ..synthetic import rows as synthetic_rows
from ..synthetic.standings import best_known
from .studies import CONTENDERS, Instance


@dataclass(frozen=True, kw_only=True)
class Row(synthetic_rows.Row):
    """One contender on one instance."""

    M: float
    """The box |b| <= M of the instance; not told to contenders without a box."""
    memory: float
    """MiB that the solver's process held at most, interpreter, packages and data included."""
    largest: float
    """The largest coefficient of the model, in absolute value."""

    @property
    def instance(self) -> Instance:  # type: ignore[override]
        return Instance(self.n, self.p, self.rho, self.alpha, self.M, self.k)

    @property
    def is_boxed(self) -> bool:
        return CONTENDERS[self.contender].is_boxed

    @property
    def is_inside(self) -> bool:
        """Whether the model lies in the box, told or not."""
        return self.largest <= self.M * (1.0 + ROUNDING)

    @property
    def trivial_gap(self) -> float:
        """The paper's gap of this model beside the bound 0, which takes no search."""
        return replace(self, lower_bound=0.0).gap

    @property
    def bound_seconds(self) -> float:
        """Of the bound at the root, without data, products and model."""
        return float(json.loads(self.notes)["bound seconds"])


def reviewed(rows: Iterable[Row]) -> list[Row]:
    """The last row of each task; a bound is refuted by a model below it that lies in its box."""
    latest = list({(row.instance, row.contender): row for row in rows}.values())
    anywhere, inside = best_known(latest), best_known(row for row in latest if row.is_inside)

    def review(row: Row) -> Row:
        best = (inside if row.is_boxed else anywhere).get(row.instance, float("inf"))
        if row.complaint or not row.lower_bound > best + ROUNDING * row.yy:
            return row
        return replace(row, complaint=f"bound {row.lower_bound:.9g} is above another's model")

    return [review(row) for row in latest]
