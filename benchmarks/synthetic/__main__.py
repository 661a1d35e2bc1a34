"""The synthetic study of the paper: which solver proves the best model, and how fast?

    python -m benchmarks.synthetic                  all studies, a good hour on two cores
    python -m benchmarks.synthetic small tall       some of them
    python -m benchmarks.synthetic --full           the paper's whole grid, an hour for each run

Every row is appended to benchmarks/results/synthetic.csv as soon as it is measured, and a study
that was interrupted goes on where it stopped: rows that are closed, or had as much time, stay.
Delete the file to start anew. At the end, or alone with --report, the rows become
benchmarks/results/synthetic.md and the figures of the documentation.
"""

from __future__ import annotations

import argparse

from ..harness import machine
from ..harness.arena import measure_missing
from ..harness.tables import RESULTS, one_of
from . import report
from .rows import Row
from .studies import CONTENDERS, STUDIES


def main() -> None:
    arguments = _arguments()
    names = arguments.studies or [name for name in STUDIES if name != "quick"]
    folder = RESULTS / "quick" if names == ["quick"] else RESULTS
    path = folder / "synthetic.csv"
    if not arguments.report:
        machine.warn_if_busy()
        for name in names:
            print(f"{name}: {STUDIES[name].title}")
            tasks = STUDIES[name].tasks(arguments.full, arguments.limit)
            measure_missing(tasks, path, arguments.threads, contenders=CONTENDERS, kind=Row)
    report.write(path, into_docs=folder == RESULTS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "studies", nargs="*", type=one_of(STUDIES), metavar="STUDY", help=str([*STUDIES])
    )
    parser.add_argument("--full", action="store_true", help="the paper's grid and limits (days)")
    parser.add_argument("--limit", type=float, help="seconds for each run instead of the study's")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--threads", type=int, default=2, help="of every solver (default 2)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
