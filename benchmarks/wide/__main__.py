"""Wide data: as many features as rows and more, in a box on the coefficients.

    python -m benchmarks.wide                              all studies
    python -m benchmarks.wide growth bounds                some of them
    python -m benchmarks.wide rows --only 500-3000-0.1-10  one instance, as n-p-rho-alpha

Every row is appended to benchmarks/results/wide.csv as soon as it is measured, and a study that was
interrupted goes on where it stopped: rows that are closed, or had as much time, stay. Delete the
file to start anew. At the end, or alone with --report, the rows become benchmarks/results/wide.md
and a figure of the documentation.
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
    path = RESULTS / "wide.csv"
    if not arguments.report:
        machine.warn_if_busy()
        for name in arguments.studies or STUDIES:
            print(f"{name}: {STUDIES[name].title}")
            tasks = STUDIES[name].tasks(arguments.limit, arguments.only)
            measure_missing(tasks, path, arguments.threads, contenders=CONTENDERS, kind=Row)
    report.write(path)


def _arguments() -> argparse.Namespace:
    names = {instance.name for study in STUDIES.values() for instance in study.instances}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "studies", nargs="*", type=one_of(STUDIES), metavar="STUDY", help=str([*STUDIES])
    )
    parser.add_argument("--only", choices=sorted(names), metavar="N-P-RHO-ALPHA", help="one row")
    parser.add_argument("--limit", type=float, help="seconds for each run instead of the study's")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--threads", type=int, default=2, help="of every solver (default 2)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
