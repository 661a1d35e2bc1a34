"""The benchmarks of lists: all near-optimal models, and the n best beside leaps in R.

Every run measures anew; rows go to benchmarks/results/near_GROUP.csv and near_optimal.md. Rows
beside R need `Rscript` and its package leaps (Debian: r-base-core, r-cran-leaps).
"""

from ..harness import suite
from .groups import GROUPS

suite.main("near_optimal benchmarks", GROUPS, __doc__)
