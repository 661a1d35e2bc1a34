"""Rows of a study as a CSV file: appended one by one as they are measured, read back as they were.

Rows are frozen dataclasses of strings, integers, floats and booleans; their fields are the columns.
Lines that begin with "# " are notes: machine, versions, threads and commit.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, fields
from math import isnan
from pathlib import Path
from typing import Any, TypeVar


class Row:
    """What the rows of all studies have in common; attributes say how a file spells numbers."""

    digits = 12
    nan = "nan"


R = TypeVar("R", bound=Row)


def begin(path: Path, kind: type[Row], notes: Iterable[str]) -> None:
    """Add notes; a new file goes on with the heads of the columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        file.writelines(f"# {note}\n" for note in notes)
        if is_new:
            csv.writer(file, lineterminator="\n").writerow(_columns(kind))


def append(path: Path, row: Row) -> None:
    cells = [_text(value, row) for value in asdict(row).values()]  # type: ignore[call-overload]
    with open(path, "a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(cells)


def _text(value: Any, row: Row) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return row.nan if isnan(value) else f"{value:.{row.digits}g}"
    return str(value)


def _columns(kind: type) -> dict[str, str]:
    return {f.name: str(f.type) for f in fields(kind)}


def read(path: Path, kind: type[R]) -> list[R]:
    """The rows of a file, none if there is no file yet."""
    if not path.exists():
        return []
    kinds = {
        "int": int,
        "float": lambda text: float(text or "nan"),
        "str": str,
        "bool": lambda text: text == "1",
    }
    columns = {name: kinds[type_] for name, type_ in _columns(kind).items()}
    with open(path, newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("# "))
        return [
            kind(**{name: read(line[name]) for name, read in columns.items()}) for line in lines
        ]


def notes(path: Path) -> list[str]:
    """All notes of a file, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.removeprefix("# ") for line in lines if line.startswith("# ")]
