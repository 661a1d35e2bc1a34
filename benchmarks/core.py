"""The benchmarks of the solver's core.

Every run measures anew. The rows of a group go to benchmarks/results/GROUP.csv, and all groups
measured so far to benchmarks/results/core.md; --quick keeps to results/quick/.
"""

from __future__ import annotations

from . import against, alone, report

GROUPS = {
    "okridge": against.okridge,
    "hard": alone.hard,
    "tall": alone.tall,
    "library": alone.library,
    "gurobi": against.gurobi,
    "startup": alone.startup,
}


if __name__ == "__main__":
    report.main("Core benchmarks", GROUPS, __doc__)
