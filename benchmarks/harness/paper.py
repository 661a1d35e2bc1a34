"""What the paper asks of every solver, and all studies with it unless they say otherwise."""

from __future__ import annotations

K = 10
ALPHA = 1e-3
GAP = 1e-4
"""The paper's gap, relative to y'y - objective."""

Shape = tuple[int, int, float]
"""n, p, rho of :func:`bestk.datasets.make_synthetic`."""
