"""The study of structure as a whole: its problems, peers, rows and page."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator

from ..harness import machine
from ..harness.contest import reviewed
from ..harness.study import Study
from . import report
from .measuring import BESTK, PEERS, measured
from .problems import PARTS, problems
from .rows import Row


class StructureStudy(Study):
    name, title, row = "structure", "Groups, rules and constraints", Row
    findings = staticmethod(report.findings)
    tables = staticmethod(report.tables)
    reviewed = staticmethod(reviewed)

    def options(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--parts", nargs="+", choices=PARTS, default=PARTS)
        peers = parser.add_mutually_exclusive_group()
        peers.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
        peers.add_argument(
            "--no-peers", dest="peers", action="store_const", const=[], help="bestk alone"
        )
        add("--threads", type=int, default=2, help="of every solver and its BLAS (default 2)")
        add("--quick", action="store_true", help="one small problem of each kind")

    def notes(self, arguments: Namespace) -> list[str]:
        *place, _ = machine.describe(arguments.threads)
        pinned = f"threads: {arguments.threads}, for every solver; BLAS is pinned to as many"
        return [*place, pinned]

    def measure(self, arguments: Namespace, known: list[Row]) -> Iterator[Row]:
        asked = [one for one in problems(arguments.quick) if one.part in arguments.parts]
        return measured(asked, arguments.peers, arguments.threads, known)

    def versions(self, rows: list[Row]) -> Iterable[str]:
        """Programs and their packages, as each environment reported them."""
        order = [BESTK, *PEERS]
        told = {row.contender: row.versions for row in rows if row.versions}
        return [f"{name}: {told[name]}" for name in order if name in told]
