"""A virtual environment per peer, and solver runs as subprocesses with pinned threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
VENVS = HERE / ".venvs"

# okridge imports requests, and gurobipy for its matrix variables scipy, without declaring it.
REQUIREMENTS = {
    "okridge": ("okridge==0.1.1", "requests"),
    "gurobi": ("gurobipy==13.0.3", "numpy>=2,<3", "scipy>=1.13,<2"),
    "pysindy": ("pysindy==2.1.0", "gurobipy==13.0.3"),
    "dysts": ("dysts==0.96",),
}
RUNNERS = {
    "bestk": HERE / "bestk_run.py",
    "okridge": HERE / "peers" / "okridge_run.py",
    "gurobi": HERE / "peers" / "gurobi_run.py",
}


def python_of(solver: str) -> Path:
    """The interpreter that runs a solver; a peer's environment is made on first use."""
    if solver not in REQUIREMENTS:
        return Path(sys.executable)
    folder = VENVS / solver
    python = folder / "bin" / "python"
    stamp = folder / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[solver]) + "\n"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"setting up {folder.relative_to(HERE.parent)} ({', '.join(REQUIREMENTS[solver])})")
        venv.create(folder, with_pip=True, clear=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *REQUIREMENTS[solver]], check=True)
        stamp.write_text(wanted)
    return python


def pinned(threads: int, **extra: str) -> dict[str, str]:
    """This environment with every pool of threads set to the same size."""
    pools = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(pools, str(threads)), **extra}


def run_solver(
    solver: str,
    X: np.ndarray,
    y: np.ndarray,
    *,
    k: int,
    alpha: float,
    gap: float,
    time_limit: float,
    threads: int,
    **options: Any,
) -> dict[str, Any]:
    """Run one solver on one instance; returns what it claims, or ``{"error": reason}``.

    ``gap`` is the paper's (relative to y'y - objective); a runner may take further ``options``.
    """
    python = python_of(solver)
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        data, answer = Path(folder) / "data.npz", Path(folder) / "answer.json"
        settings = {"k": k, "alpha": alpha, "gap": gap, "time_limit": time_limit}
        np.savez(data, X=X, y=y, threads=threads, **settings, **options)
        return run_script(
            python, RUNNERS[solver], data, answer, threads=threads, patience=4 * time_limit + 120
        )


def run_script(
    python: Path, script: Path, *args: object, threads: int, patience: float, **extra: str
) -> dict[str, Any]:
    """Run ``python script args...``; the last argument is the JSON file it writes, read here."""
    answer = Path(str(args[-1]))
    try:
        done = subprocess.run(
            [python, "-P", script, *map(str, args)],
            env=pinned(threads, **extra),
            capture_output=True,
            text=True,
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer after {patience:.0f} s"}
    if done.returncode != 0 or not answer.exists():
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    claim: dict[str, Any] = json.loads(answer.read_text())
    return claim
