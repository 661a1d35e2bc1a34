"""The synthetic study as a whole: its parts, rows, page and figures."""

from __future__ import annotations

from collections.abc import Iterable

from ..harness.contest import Contest, Row
from ..harness.tables import markdown_rows
from . import figures, report
from .contenders import CONTENDERS
from .parts import PARTS


class Synthetic(Contest):
    name, title = "synthetic", "Synthetic benchmark"
    row, contenders, parts = Row, CONTENDERS, PARTS
    findings = staticmethod(report.findings)
    tables_of = staticmethod(report.tables)
    draw = staticmethod(figures.draw)

    def tables(self, rows: list[Row]) -> Iterable[str]:
        yield from super().tables(rows)
        yield from ("## Not measured", "", *markdown_rows(report.absent()))
