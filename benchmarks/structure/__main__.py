"""What structure costs: hierarchies, factors as groups, and constraints on dynamics.

python -m benchmarks.structure                 some minutes on two cores, peers included
python -m benchmarks.structure --quick         a tiny problem of each kind, in a minute
python -m benchmarks.structure --no-peers      bestk alone
python -m benchmarks.structure --parts factors --peers Gurobi abess

Rows stay, and what they answer is not measured again: for figures of one run, delete
benchmarks/results/structure.csv first.
Problems without structure are no part of this study. Whether a change leaves their trees as they
are is what benchmarks/trees.py tells: `python -m benchmarks.trees save before.json`, and later
`compare before.json`.
"""

from .study import StructureStudy

StructureStudy().main(__doc__)
