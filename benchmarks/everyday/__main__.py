"""The benchmarks of the everyday surface: paths over k, and cross-validation against okridge.

Every run measures anew; rows go to benchmarks/results/GROUP.csv and everyday.md.
"""

from ..harness import suite
from .groups import GROUPS

suite.main("Everyday benchmarks", GROUPS, __doc__)
