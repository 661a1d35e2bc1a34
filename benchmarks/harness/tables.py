"""Tables: printed, as CSV with notes in comment lines, and all of them together in Markdown."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table as RichTable

from . import machine

RESULTS = machine.ROOT / "benchmarks" / "results"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Table:
    """One group's rows; ``notes`` are sentences below it (machine, means, targets)."""

    columns: Sequence[str]
    name: str = ""
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def show(table: Table) -> None:
    console = Console()
    console.width = max(console.width, 130)
    rich_table = RichTable(title=table.name, title_justify="left")
    for column in table.columns:
        rich_table.add_column(column, justify="right", overflow="fold")
    for row in table.rows:
        rich_table.add_row(*row)
    console.print(rich_table)
    for note in table.notes:
        console.print(f"  {note}", highlight=False)


def write_csv(table: Table, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{table.name}.csv", "w", newline="") as file:
        file.writelines(f"# {note}\n" for note in table.notes)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)


def read_csv(path: Path) -> Table:
    lines = path.read_text().splitlines()
    notes = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    columns, *rows = csv.reader(line for line in lines if not line.startswith("# "))
    return Table(name=path.stem, columns=columns, rows=rows, notes=notes)


def write_markdown(title: str, names: Sequence[str], folder: Path) -> Path:
    """Put every table of ``names`` that has been measured into one page."""
    text = [f"# {title}", ""]
    for name in names:
        path = folder / f"{name}.csv"
        if path.exists():
            table = read_csv(path)
            text += [f"## {name}", "", *markdown_rows(table), *markdown_notes(table)]
    page = folder / f"{title.split()[0].lower()}.md"
    page.write_text("\n".join(text).rstrip() + "\n")
    return page


def markdown_rows(table: Table) -> list[str]:
    """The rows and an empty line."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    sides = ["---" if is_text(table, j) else "---:" for j in range(len(table.columns))]
    return [line(table.columns), line(sides), *map(line, table.rows), ""]


def is_text(table: Table, j: int) -> bool:
    """Names and sentences, but not words such as *failed* among figures."""
    cells = [row[j] for row in table.rows if row[j] not in ("", "-")]
    figures = sum(bool(re.match(r"[-+<>~]?\d", cell)) for cell in cells)
    return 2 * figures <= len(cells) and (j == 0 or max(map(len, cells), default=0) > 12)


def markdown_notes(table: Table) -> list[str]:
    """The notes and an empty line."""
    return [*(f"- {note}" for note in table.notes), ""]


def announced(rows: Iterable[T]) -> Iterator[T]:
    """Say on stderr which row is being measured."""
    for row in rows:
        print(f"  measuring {row}", file=sys.stderr, flush=True)
        yield row


def met_or_missed(met: bool) -> str:
    return "(met)" if met else "(missed)"


def percent(gap: float) -> str:
    return f"{100.0 * gap:.3g}%"
