"""Every polynomial flow of the collection dysts: whose equations are found, and are they unique?

python -m benchmarks.flows             half an hour on two cores
python -m benchmarks.flows --quick     four systems, a minute
"""

from .study import Flows

Flows().main(__doc__)
