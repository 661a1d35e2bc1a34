"""Studies in which contenders meet on synthetic instances: parts, rows, and which rows count."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from . import rows as files
from .arena import Contender, Instance, Task, measured
from .paper import GAP
from .referee import ROUNDING, Verdict
from .study import Study
from .tables import Table, markdown_notes, markdown_rows, percent

HOUR = 3600.0
Meeting = tuple[Iterable[Instance], Iterable[str]]
"""Instances, and the names of contenders that meet on each of them."""


class Judged(files.Row):
    """What follows from the columns that the referee fills; the columns are up to each study."""

    @property
    def verdict(self) -> Verdict:
        return Verdict(**{name: getattr(self, name) for name in Verdict.__dataclass_fields__})

    @property
    def is_closed(self) -> bool:
        return self.verdict.closed(GAP)

    @property
    def gap(self) -> float:
        """The paper's, relative to y'y - objective."""
        return self.verdict.explained_gap

    @property
    def failure(self) -> str:
        """In a word; empty if there is nothing to complain about."""
        if not self.complaint:
            return ""
        return "refuted" if "above" in self.complaint else "failed"

    def refutes(self, other: Any) -> bool:
        """Whether the other's bound says that there is no such model as this one."""
        return self.size <= self.k and other.lower_bound > self.objective + ROUNDING * other.yy


@dataclass(frozen=True, kw_only=True)
class Row(Judged):
    """One contender on one instance; objective, size and what follows from them are recomputed."""

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
        return Instance(**{name: getattr(self, name, None) for name in Instance._fields})

    def __str__(self) -> str:
        return (
            f"{self.contender:<32} {self.seconds:9.3f} s  gap {percent(self.gap):>9}  "
            f"{self.nodes} nodes, {self.true_features} of {self.k} true  {self.complaint}"
        )


R = TypeVar("R", bound=Judged)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Who meets whom, in the order in which they are measured."""

    contenders: dict[str, Contender]
    title: str
    question: str
    """A sentence on what is asked, or of what."""
    limit: float | Callable[[Instance, str], float]
    """Seconds for one run, if they differ as a function of instance and contender."""
    meetings: Sequence[Meeting]
    more: Sequence[Meeting] = ()
    """What --full adds, with an hour for each run as in the paper."""
    table: str = ""
    """The part in whose table the rows are shown, if it is another one."""

    def tasks(
        self, full: bool = False, limit: float | None = None, only: str | None = None
    ) -> list[Task]:
        """All tasks, each once, those of one instance together; ``only`` names an instance."""
        meetings = [*self.meetings, *(self.more if full else ())]
        pairs = {
            (instance, name)
            for instances, names in meetings
            for instance in instances
            for name in names
            if instance.p <= (self.contenders[name].most_features or instance.p)
            if only in (None, instance.name)
        }
        order = list(dict.fromkeys(i for instances, _ in meetings for i in instances))
        names = list(self.contenders)
        return [
            Task(*pair, limit or (HOUR if full else self._seconds(*pair)))
            for pair in sorted(pairs, key=lambda p: (order.index(p[0]), names.index(p[1])))
        ]

    def _seconds(self, instance: Instance, contender: str) -> float:
        return self.limit(instance, contender) if callable(self.limit) else self.limit

    def chosen(self, rows: Iterable[R]) -> list[R]:
        """Rows that belong to this part, in its order."""
        known = by_task(rows)
        keys = [(task.instance, task.contender) for task in self.tasks(full=True)]
        return [known[key] for key in keys if key in known]


class Contest(Study):
    """A study of parts; one with the name quick is a short look, kept apart from the others."""

    contenders: dict[str, Contender]
    parts: dict[str, Part]

    def options(self, parser: argparse.ArgumentParser) -> None:
        names = {task.instance.name for part in self.parts.values() for task in part.tasks(True)}
        parser.add_argument(
            "parts", nargs="*", type=self._part, metavar="PART", help=str([*self.parts])
        )
        parser.add_argument(
            "--only", choices=sorted(names), metavar="N-P-RHO-ALPHA", help="one instance"
        )
        parser.add_argument("--full", action="store_true", help="an hour for each run (days)")
        parser.add_argument("--limit", type=float, help="seconds for each run instead of the usual")
        parser.add_argument("--threads", type=int, default=2, help="of every solver (default 2)")

    def _part(self, name: str) -> str:
        # An argument that may be missing: argparse refuses choices for it.
        if name not in self.parts:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(self.parts)}")
        return name

    def is_quick(self, arguments: argparse.Namespace) -> bool:
        return arguments.parts == ["quick"]

    def measure(self, arguments: argparse.Namespace, known: list[Any]) -> Iterator[Any]:
        answers = by_task(known)
        for name in arguments.parts or [name for name in self.parts if name != "quick"]:
            print(f"{name}: {self.parts[name].title}")
            tasks = self.parts[name].tasks(arguments.full, arguments.limit, arguments.only)
            options = {"kind": self.row, "threads": arguments.threads}
            yield from measured(tasks, answers, self.contenders, **options)

    def reviewed(self, rows: list[Any]) -> list[Any]:
        return reviewed(rows)

    def versions(self, rows: list[Any]) -> Iterable[str]:
        return versions(rows, self.contenders)

    def tables(self, rows: list[Any]) -> Iterable[str]:
        for name, part in self.parts.items():
            members = part.chosen(rows)
            if members and not part.table:
                yield from (f"## {part.title}", "", part.question, "")
                for table in self.tables_of(name, members, rows):
                    yield from (f"**{table.name}**", "") if table.name else ()
                    yield from (*markdown_rows(table), *markdown_notes(table))

    def tables_of(self, part: str, members: list[Any], rows: list[Any]) -> Iterable[Table]:
        """The tables of a part, made from its rows and, where others matter, from all."""
        raise NotImplementedError


def by_task(rows: Iterable[R]) -> dict[tuple[Instance, str], R]:
    """The last row of each contender on each instance."""
    return {(row.instance, row.contender): row for row in rows}


def reviewed(rows: Iterable[R]) -> list[R]:
    """The last row of each task, with bounds refuted by what others have found."""
    latest = by_task(rows)
    rivals: dict[Instance, list[R]] = {}
    for (instance, _), row in latest.items():
        rivals.setdefault(instance, []).append(row)

    def review(row: R) -> R:
        if row.complaint or not any(rival.refutes(row) for rival in rivals[row.instance]):
            return row
        return replace(row, complaint=f"bound {row.lower_bound:.9g} is above another's model")

    return [review(row) for row in latest.values()]


def versions(rows: Iterable[Any], contenders: dict[str, Contender]) -> list[str]:
    """Programs and their packages, as each environment reported them."""
    told = {contenders[row.contender].solver: row.versions for row in rows if row.versions}
    return [f"{solver}: {versions}" for solver, versions in sorted(told.items())]


def refuted(rows: Iterable[Row], label: Callable[[Instance], str]) -> str:
    """Of all findings the last: how many, and where each program's first one is."""
    wrong: dict[str, list[str]] = {}
    for row in rows:
        if row.failure == "refuted":
            wrong.setdefault(row.contender, []).append(label(row.instance))
    told = (
        f"{contender} on {places[0]}" + (f" and {more} more" if (more := len(places) - 1) else "")
        for contender, places in sorted(wrong.items())
    )
    return f"Claimed bounds that a model refutes: {'; '.join(told) or 'none'}."


def remarks(rows: Iterable[Row], label: Callable[[Instance], str], table: Table) -> list[Table]:
    """Fill a table with what went wrong; no table if nothing did."""
    for row in rows:
        if row.complaint:
            table.rows.append([row.contender, label(row.instance), row.complaint[:160]])
    return [table] if table.rows else []
