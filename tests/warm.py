"""Imported once by the server that forks processes for tests: compiled code is loaded by then."""

import bestk
from bestk.base.tuning import tuned

X, y, _ = bestk.datasets.make_synthetic(60, 30, k=6, rho=0.9)
for units_from in (0, 40):
    with tuned(units_from=units_from):
        bestk.solve(X, y, 6, alpha=1e-3, n_threads=1)
        bestk.solve(X, y, 6, alpha=1e-3, n_threads=1, advanced=bestk.Advanced(enumeration=False))
