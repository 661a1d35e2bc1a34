"""The study of wide data as a whole: its parts, rows, page and figure."""

from __future__ import annotations

from ..harness.contest import Contest
from . import figures, report
from .parts import CONTENDERS, PARTS
from .rows import Row


class Wide(Contest):
    name, title = "wide", "Wide data"
    row, contenders, parts = Row, CONTENDERS, PARTS
    findings = staticmethod(report.findings)
    tables_of = staticmethod(report.tables)
    draw = staticmethod(figures.draw)
