"""The benchmarks of the solver's core; its peers are met in benchmarks/synthetic.py.

Every run measures anew. The rows of a group go to benchmarks/results/GROUP.csv, and all groups
measured so far to benchmarks/results/core.md; --quick keeps to results/quick/.
"""

from __future__ import annotations

from . import alone, report

GROUPS = {
    "tall": alone.tall,
    "nodes": alone.nodes,
    "library": alone.library,
    "startup": alone.startup,
}


if __name__ == "__main__":
    report.main("Core benchmarks", GROUPS, __doc__)
