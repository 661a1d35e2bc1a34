"""Verification of a certificate against the run that made it, on rows of the core benchmarks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from bestk.datasets import make_dynamics, make_synthetic

from ..core.groups import LIBRARY
from ..harness.environments import run_fresh
from ..harness.paper import ALPHA, K, Shape
from ..harness.tables import Table, announced

# Rows that are closed within a minute or two; others are measured without being proven.
SYNTHETIC: list[Shape] = [
    *[(10_000, p, rho) for p in (100, 1000) for rho in (0.1, 0.9)],
    *[(n, 1000, rho) for n in (3000, 1500) for rho in (0.1, 0.9)],
    (1100, 1000, 0.1),
    (120, 60, 0.5),
    (150, 60, 0.9),
    (150, 100, 0.5),
    (1000, 100, 0.9),
    (4000, 3000, 0.5),
    (100_000, 1000, 0.5),
]


def verification(threads: int, quick: bool) -> Table:
    """Seconds to solve (gap_tol 1e-4; libraries 0) and to verify, and the certificate's file."""
    table = Table(
        name="verification",
        columns=[
            *("data", "k", "solve s", "verify s", "ratio", "nodes", "supports", "file MB"),
            "remarks",
        ],
    )
    rows: list[tuple[str, int, float]] = [("120, 60, 0.5", K, 1e-4)]
    if not quick:
        rows = [(", ".join(map(str, row)), K, 1e-4) for row in SYNTHETIC]
        rows += [(f"{name} {duration:g}", k, 0.0) for name, duration, k, _ in LIBRARY]
    ratios = []
    for name, k, gap in announced(rows):
        X, y = _data(name)
        with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
            file = Path(folder) / "data.npz"
            np.savez(file, X=X, y=y, k=k, alpha=ALPHA, gap=gap, threads=threads)
            answer = run_fresh("trust/verify_run.py", file, threads=threads)
        if "error" in answer:
            table.rows.append([name, str(k), *["-"] * 6, answer["error"]])
            continue
        ratios.append(answer["verify"] / answer["solve"])
        remarks = [] if answer["valid"] else ["; ".join(answer["failures"])]
        remarks += [] if answer["status"] == "OPTIMAL" else [answer["status"]]
        table.rows.append(
            [
                *(name, str(k), f"{answer['solve']:.3f}", f"{answer['verify']:.3f}"),
                *(f"{ratios[-1]:.2f}", str(answer["nodes"]), f"{answer['supports']:.3g}"),
                *(f"{answer['bytes'] / 1e6:.3f}", ", ".join(remarks)),
            ]
        )
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")
    table.notes.append(
        f"alpha = {ALPHA}; synthetic data as n, p, rho, SNR 5, or the first equation of a library "
        f"of terms; ratio: verify over solve, geometric mean {mean:.2f}, "
        f"{sum(r < 1 for r in ratios)} of {len(ratios)} below 1"
    )
    return table


def _data(name: str) -> tuple[np.ndarray, np.ndarray]:
    if "," in name:
        n, p, rho = name.split(", ")
        X, y, _ = make_synthetic(int(n), int(p), K, rho=float(rho))
        return X, y
    system, duration = name.split()
    X, derivatives, _, _ = make_dynamics(system, float(duration))
    return X, np.ascontiguousarray(derivatives[:, 0])


GROUPS = {"verification": verification}
