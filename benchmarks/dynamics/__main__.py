"""The dynamical systems study of the paper: which method finds the equations of a trajectory?

python -m benchmarks.dynamics            a subset, an hour on two cores
python -m benchmarks.dynamics --full     20 trials of all 12 lengths
"""

from .study import Dynamics

Dynamics().main(__doc__)
