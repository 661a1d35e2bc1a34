"""The benchmarks of the solver's core.

Every run measures anew. The rows of a group go to benchmarks/results/GROUP.csv, and all groups
measured so far to benchmarks/results/core.md; --quick keeps to results/quick/.
"""

from __future__ import annotations

import argparse

from . import against, alone, machine, report

GROUPS = {
    "okridge": against.okridge,
    "hard": alone.hard,
    "tall": alone.tall,
    "library": alone.library,
    "gurobi": against.gurobi,
    "startup": alone.startup,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    parser.add_argument("--only", choices=GROUPS, help="run one group")
    parser.add_argument("--quick", action="store_true", help="few, small rows and short limits")
    parser.add_argument("--threads", type=int, default=2, help="for every solver (default 2)")
    arguments = parser.parse_args()

    report.run_groups("Core benchmarks", GROUPS, arguments, machine.describe)


if __name__ == "__main__":
    main()
