"""A study: rows measured into a file that stays, and a page made from them alone.

Whoever measures for hours is interrupted: each row is in the file as soon as it is measured, and
what the file answers is not measured again.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import machine
from .rows import append, begin, notes, read
from .tables import RESULTS

FIGURES = machine.ROOT / "docs" / "_static"


class Study(ABC):
    """The command, the file and the page of a study; what is measured is up to each."""

    name: str
    """Of its folder, of the rows (results/NAME.csv) and of the page (results/NAME.md)."""
    title: str
    row: type
    """The class of its rows; those without a commit have that of the notes above them."""
    results = RESULTS
    figures = FIGURES

    # What each study says of itself

    @abstractmethod
    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add options beside --report, which all studies have; --quick keeps to results/quick."""

    @abstractmethod
    def measure(self, arguments: argparse.Namespace, known: list[Any]) -> Iterator[Any]:
        """Rows that are asked for and not among the known ones, as they are measured."""

    @abstractmethod
    def findings(self, rows: list[Any]) -> Iterable[str]:
        """Sentences whose every number comes from the rows."""

    @abstractmethod
    def tables(self, rows: list[Any]) -> Iterable[str]:
        """Lines of Markdown, the last one empty."""

    def draw(self, rows: list[Any], folder: Path) -> Sequence[Path]:
        """Write figures, if there are any."""
        return ()

    def reviewed(self, rows: list[Any]) -> list[Any]:
        """The rows that count."""
        return rows

    def versions(self, rows: list[Any]) -> Iterable[str]:
        """What is known about programs beyond the notes of the file."""
        return ()

    def notes(self, arguments: argparse.Namespace) -> list[str]:
        """Where and how the rows of this run are measured."""
        return machine.describe(arguments.threads)

    def is_quick(self, arguments: argparse.Namespace) -> bool:
        """Whether the run is too short to be kept among the results."""
        return getattr(arguments, "quick", False)

    # What all studies do

    def main(self, doc: str | None) -> None:
        """The command: measure what is missing, then write the page."""
        arguments = self._arguments(doc)
        is_quick = self.is_quick(arguments)
        path = self.results / ("quick" if is_quick else "") / f"{self.name}.csv"
        if not arguments.report:
            machine.warn_if_busy()
            self.measure_missing(path, arguments)
        self.write(path, path.parent if is_quick else self.figures)

    def _arguments(self, doc: str | None) -> argparse.Namespace:
        rows = f"benchmarks/results/{self.name}"
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks.{self.name}",
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=f"Rows are appended to {rows}.csv as they are measured, and a study that was\n"
            "interrupted goes on where it stopped; delete the file to start anew. At the end, or\n"
            f"alone with --report, they become {rows}.md and figures of the documentation.",
        )
        self.options(parser)
        parser.add_argument("--report", action="store_true", help="measure nothing, write the page")
        return parser.parse_args()

    def measure_missing(self, path: Path, arguments: argparse.Namespace) -> None:
        """Append a row for everything that was asked for and is not in the file yet."""
        is_begun = path.exists() and "commit" in self.row.__dataclass_fields__
        for row in self.measure(arguments, read(path, self.row)):
            if not is_begun:
                begin(path, self.row, self.notes(arguments))
                is_begun = True
            append(path, row)

    def write(self, path: Path, figures: Path) -> None:
        """The page beside the rows, which the documentation includes, and the figures."""
        rows = self.reviewed(read(path, self.row))
        page = path.with_suffix(".md")
        page.write_text("\n".join(self.page(rows, notes(path))).rstrip() + "\n")
        for written in (page, *self.draw(rows, figures)):
            inside = written.is_relative_to(machine.ROOT)
            print(f"written to {written.relative_to(machine.ROOT) if inside else written}")

    def page(self, rows: list[Any], notes: Iterable[str]) -> list[str]:
        commits = sorted({row.commit for row in rows if hasattr(row, "commit")})
        measured = [f"rows measured at {', '.join(commits)}"] if commits else []
        return [
            *(f"# {self.title}", "", "<!-- findings -->", ""),
            *(f"- {sentence}" for sentence in self.findings(rows)),
            *("", "<!-- tables -->", "", *self.tables(rows), "<!-- machine -->", ""),
            *(f"- {note}" for note in (*notes, *measured, *self.versions(rows))),
        ]
