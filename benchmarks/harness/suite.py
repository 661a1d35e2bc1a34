"""A suite of groups: every run measures a group anew, into one table that replaces the last one."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from . import machine
from .tables import RESULTS, Table, show, write_csv, write_markdown

Group = Callable[[int, bool], Table]
"""From the number of threads, and whether to be quick, to a table."""


def main(title: str, groups: dict[str, Group], doc: str | None) -> None:
    """The command line of a set of groups: measure one or all, show and write the tables."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--only", choices=groups, help="run one group")
    parser.add_argument("--quick", action="store_true", help="few, small rows and short limits")
    parser.add_argument("--threads", type=int, default=2, help="for every solver (default 2)")
    arguments = parser.parse_args()
    folder = RESULTS / "quick" if arguments.quick else RESULTS
    for name in [arguments.only] if arguments.only else groups:
        print(f"{name}: {groups[name].__doc__}")
        table = groups[name](arguments.threads, arguments.quick)
        table.notes.extend(machine.describe(arguments.threads))
        show(table)
        write_csv(table, folder)
    page = write_markdown(title, list(groups), folder)
    print(f"written to {page.relative_to(machine.ROOT)}")
