"""The instances: which rows each group measures, and what is asked of bestk on them."""

from __future__ import annotations

K = 10
ALPHA = 1e-3
GAP = 1e-4
"""The paper's gap, relative to y'y - objective."""

Row = tuple[int, int, float]
"""n, p, rho of :func:`bestk.datasets.make_synthetic`."""

PATH: list[Row] = [
    *[(10_000, p, rho) for p in (100, 500, 1000) for rho in (0.1, 0.5, 0.9)],
    *[(n, 1000, rho) for n in (3000, 2000) for rho in (0.1, 0.5)],
    (120, 60, 0.5),
]

TALL: list[Row] = [(100_000, p, rho) for p in (1000, 3000, 5000) for rho in (0.1, 0.5, 0.9)]

NODES: list[Row] = [
    (150, 60, 0.9),
    (2000, 1000, 0.9),
    (1500, 1000, 0.9),
    (1100, 1000, 0.1),
    (5000, 3000, 0.9),
    (4000, 3000, 0.9),
]

# System and duration of bestk.datasets.make_dynamics, k, and seconds for each target.
LIBRARY: list[tuple[str, float, int, float]] = [
    ("lorenz", 8.0, 5, 0.1),
    ("mhd", 16.0, 3, 0.2),
    ("mhd", 16.0, 4, 3.0),
]
