"""The synthetic study of the paper: which solver proves the best model, and how fast?

    python -m benchmarks.synthetic                  all parts, a good hour on two cores
    python -m benchmarks.synthetic small tall       some of them
    python -m benchmarks.synthetic quick            a short look, two minutes
    python -m benchmarks.synthetic --full           the paper's whole grid, an hour for each run

Rows that are closed, or had as much time, are not measured again.
"""

from .study import Synthetic

Synthetic().main(__doc__)
