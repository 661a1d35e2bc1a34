"""The study of real tables as a whole: its problems, rows, page and figure."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import Any

from ..harness.arena import Task, measured
from ..harness.contest import by_task, reviewed
from ..harness.study import Study
from . import figures, report
from .contenders import CONTENDERS, SOLVERS, Meeting, takes
from .preparing import prepared
from .problems import DEGREES, SIZES, problems
from .rows import Row
from .sources import TABLES, missing

QUICK = {"tables": ["iris", "diabetes"], "degrees": [1, 2], "sizes": [5], "limit": 2.0}


class Tables(Study):
    name, title, row = "tables", "Real tables", Row
    findings = staticmethod(report.findings)
    tables = staticmethod(report.tables)
    draw = staticmethod(figures.draw)

    def options(self, parser: ArgumentParser) -> None:
        def add(name: str, choices: Iterable[Any], kind: type = str) -> None:
            every = list(choices)
            parser.add_argument(
                name, nargs="+", type=kind, choices=every, default=every,
                metavar=name.strip("-").rstrip("s").upper(), help=str(every),
            )  # fmt: skip

        add("--tables", TABLES)
        add("--degrees", DEGREES, int)
        add("--sizes", SIZES, int)
        add("--solvers", SOLVERS)
        add_one = parser.add_argument
        add_one("--limit", type=float, default=10.0, help="seconds for each run (default 10)")
        add_one("--threads", type=int, default=2, help="of every solver (default 2)")
        add_one("--quick", action="store_true", help="two small tables, two seconds for each run")

    def measure(self, arguments: Namespace, known: list[Row]) -> Iterator[Row]:
        answers = by_task(known)
        for tasks in _tasks(arguments):
            options = {"kind": Row, "threads": arguments.threads, "place": Meeting}
            yield from measured(tasks, answers, CONTENDERS, **options)

    def reviewed(self, rows: list[Row]) -> list[Row]:
        return reviewed(rows)

    def versions(self, rows: list[Row]) -> Iterable[str]:
        """Programs and their packages, as each environment reported them."""
        told = {CONTENDERS[row.contender].solver: row.versions for row in rows if row.versions}
        return [f"{solver}: {versions}" for solver, versions in sorted(told.items())]


def _tasks(arguments: Namespace) -> Iterator[list[Task]]:
    """Of one table with terms of one degree after the other."""
    asked = {**vars(arguments), **(QUICK if arguments.quick else {})}
    if absent := [name for name in missing() if name in asked["tables"]]:
        print(f"left out, as statsmodels is not installed: {', '.join(absent)}", file=sys.stderr)
    for table in (name for name in asked["tables"] if name not in missing()):
        for degree in asked["degrees"]:
            found = prepared(table, degree)
            if found is None:
                continue
            yield [
                Task(problem, name, asked["limit"])
                for problem in problems(table, degree)
                if problem.k in asked["sizes"]
                for name, contender in CONTENDERS.items()
                if contender.solver in asked["solvers"]
                if takes(contender, problem, found.X.shape[1])
            ]
