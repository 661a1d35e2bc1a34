"""Wide data: as many features as rows and more, in a box on the coefficients.

    python -m benchmarks.wide                              all parts
    python -m benchmarks.wide growth bounds                some of them
    python -m benchmarks.wide rows --only 500-3000-0.1-10  one instance, as n-p-rho-alpha

Rows that are closed, or had as much time, are not measured again.
"""

from .study import Wide

Wide().main(__doc__)
