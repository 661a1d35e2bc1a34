"""Rows of a study as a CSV file: appended one by one as they are measured, read back as they were.

A row is a frozen dataclass of strings, integers and floats; its fields are the columns.
"""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from . import machine

R = TypeVar("R")


def append(path: Path, row: Any, threads: int) -> None:
    """Add a row; a new file begins with the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        if is_new:
            file.writelines(f"# {note}\n" for note in machine.describe(threads))
        writer = csv.DictWriter(file, [f.name for f in fields(row)], lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({name: _text(value) for name, value in asdict(row).items()})


def _text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def read(path: Path, kind: type[R]) -> list[R]:
    """The rows of a file, none if there is no file yet."""
    if not path.exists():
        return []
    kinds = {"int": int, "float": float, "str": str}
    columns = {f.name: kinds[str(f.type)] for f in fields(kind)}  # type: ignore[arg-type]
    with open(path, newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("# "))
        return [
            kind(**{name: read(line[name]) for name, read in columns.items()}) for line in lines
        ]
