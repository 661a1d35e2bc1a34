"""The benchmarks of the solver's core; its peers are met in benchmarks/synthetic.

Every run measures anew. The rows of a group go to benchmarks/results/GROUP.csv, and all groups
measured so far to benchmarks/results/core.md; --quick keeps to results/quick/.
"""

from ..harness import suite
from .groups import GROUPS

suite.main("Core benchmarks", GROUPS, __doc__)
