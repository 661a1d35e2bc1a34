"""What trust costs: verification against the run it checks, and the size of certificates.

Every run measures anew; rows go to benchmarks/results/verification.csv and trust.md.
"""

from ..harness import suite
from .groups import GROUPS

suite.main("Trust benchmarks", GROUPS, __doc__)
