"""The study of real tables as a whole: its problems, rows, page and figure."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import Any

from ..harness.arena import Task, measured
from ..harness.contest import by_task, reviewed, versions
from ..harness.study import Study
from . import figures, report
from .contenders import CONTENDERS, SOLVERS, Meeting, takes
from .preparing import prepared
from .problems import DEGREES, SIZES, problems
from .rows import Row
from .sources import TABLES, missing

ALL = {"tables": tuple(TABLES), "degrees": DEGREES, "sizes": SIZES, "solvers": SOLVERS}
QUICK = {"tables": ("iris", "diabetes"), "degrees": (1, 2), "sizes": (5,)}


class Tables(Study):
    name, title, row = "tables", "Real tables", Row
    findings = staticmethod(report.findings)
    tables = staticmethod(report.tables)
    draw = staticmethod(figures.draw)
    reviewed = staticmethod(reviewed)

    def options(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        for name, choices in ALL.items():
            kind: Any = type(choices[0])
            metavar = "K" if name == "sizes" else name.removesuffix("s").upper()
            text = ", ".join(map(str, choices))
            add(f"--{name}", nargs="+", type=kind, choices=choices, metavar=metavar, help=text)
        add("--limit", type=float, help="seconds for each run (default 10, quick 2)")
        add("--threads", type=int, default=2, help="of every solver (default 2)")
        add("--quick", action="store_true", help="two small tables and one size")

    def measure(self, arguments: Namespace, known: list[Row]) -> Iterator[Row]:
        answers = by_task(known)
        options = {"kind": Row, "threads": arguments.threads, "place": Meeting}
        for tasks in _tasks(arguments):
            yield from measured(tasks, answers, CONTENDERS, **options)

    def versions(self, rows: list[Row]) -> Iterable[str]:
        return versions(rows, CONTENDERS)


def _tasks(arguments: Namespace) -> Iterator[list[Task]]:
    """Of one table with terms of one degree after the other."""
    usual: dict[str, Any] = ALL | (QUICK if arguments.quick else {})
    asked = {name: getattr(arguments, name) or value for name, value in usual.items()}
    limit = arguments.limit or (2.0 if arguments.quick else 10.0)
    absent = [name for name in asked["tables"] if name in missing()]
    if absent:
        print(
            f"left out, as statsmodels is not installed (pip install statsmodels): "
            f"{', '.join(absent)}",
            file=sys.stderr,
        )
    for table in (name for name in asked["tables"] if name not in absent):
        for degree in asked["degrees"]:
            found = prepared(table, degree)
            if found is None:
                continue
            yield [
                Task(problem, name, limit)
                for problem in problems(table, degree)
                if problem.k in asked["sizes"]
                for name, contender in CONTENDERS.items()
                if contender.solver in asked["solvers"]
                if takes(contender, problem, found.X.shape[1])
            ]
