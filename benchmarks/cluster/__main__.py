"""What a cluster adds; rows go to benchmarks/results/TABLE.csv, the page is cluster.md beside it.

Every part is measured anew when it is asked for; the page has what was measured before, too, each
table with its machine and commit. Needs bestk[dask,io]. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks.cluster.clusters import versions
from benchmarks.cluster.searches import searches
from benchmarks.cluster.simulation import simulation
from benchmarks.cluster.sums import sums
from benchmarks.harness import machine
from benchmarks.harness.tables import RESULTS, Table, show, write_csv, write_markdown

PARTS = ("searches", "sums", "simulation")
TABLES = PARTS


def counts(words: str) -> list[int]:
    """Numbers of workers, such as 1,2,16."""
    found = sorted({int(word) for word in words.split(",")})
    if found[0] < 1:
        raise argparse.ArgumentTypeError("there is at least one worker")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true", help="small ones, to see that it works")
    parser.add_argument("--workers", type=counts, default=[1, 2], help="of searches: 1,2,16")
    parser.add_argument("--rounds", type=int, help="how often, in turn (default 2, quick 1)")
    parser.add_argument("--folder", type=Path, help="where files of sums are, and stay")
    parser.add_argument("--rows", type=int, help="of the files (default 4000000, quick 20000)")
    asked = parser.parse_args()
    quick, rounds = asked.quick, asked.rounds or (1 if asked.quick else 2)
    rows = asked.rows or (20_000 if quick else 4_000_000)
    made: dict[str, Callable[[], list[Table]]] = {
        "searches": lambda: [searches(asked.workers, rounds, quick)],
        "sums": lambda: [sums(asked.folder, rows, rounds, quick)],
        "simulation": lambda: [simulation()],
    }
    machine.warn_if_busy()
    folder = RESULTS / "quick" if quick else RESULTS
    for part in asked.parts:
        for table in made[part]():
            table.notes.extend([*machine.describe(1), versions()])
            show(table)
            write_csv(table, folder)
        page = write_markdown("Cluster benchmarks", TABLES, folder)
    print(f"written to {page}")


if __name__ == "__main__":
    main()
