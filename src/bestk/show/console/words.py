"""What all tables of the console share: where they go, how they look, what k counts."""

from typing import TYPE_CHECKING

from rich import markup
from rich.console import Console
from rich.table import Table

from bestk.base.words import printable

if TYPE_CHECKING:
    from bestk.base.structure import Structure

MOST_NAMES = 20
"""More names of features than this are counted instead of shown."""


def stdout() -> Console:
    return Console(highlight=False)


def escape(text: str) -> str:
    """Names and words in markup: nothing in them is markup, or controls the terminal."""
    return markup.escape(printable(text))


def table_of_columns() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")


def units(k: int, structure: "Structure | None") -> str:
    """k in words, such as "3 groups"."""
    return f"{k} {many(structure)}" if k != 1 else f"1 {many(structure)[:-1]}"


def many(structure: "Structure | None") -> str:
    """What k counts."""
    from bestk.show.structure import unit_of

    return f"{unit_of(structure)}s"
