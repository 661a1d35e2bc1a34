"""A virtual environment per peer, and solver runs as subprocesses with pinned threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .answering import Question

HERE = Path(__file__).parents[1]
"""The folder of the benchmarks: scripts are named from there."""
VENVS = HERE / ".venvs"

# okridge imports requests, and gurobipy for its matrix variables scipy, without declaring it.
REQUIREMENTS = {
    "okridge": ("okridge==0.1.1", "requests"),
    "gurobi": ("gurobipy==13.0.3", "numpy>=2,<3", "scipy>=1.13,<2"),
    "pysindy": ("pysindy==2.1.0", "gurobipy==13.0.3"),
    "dysts": ("dysts==0.96",),
    "scip": ("pyscipopt==6.3.0", "numpy>=2,<3"),
    "l0bnb": ("l0bnb==1.0.0", "numpy<2"),
    "el0ps": ("el0ps==0.0.4", "mpich"),
    "sdp": ("cvxpy==1.9.3", "clarabel==0.11.1", "scs==3.3.1"),
    "abess": ("abess==0.4.11",),
    "skglm": ("skglm==0.5",),
    # sparse-lm calls what scikit-learn 1.6 has taken away.
    "sparselm": ("sparse-lm==0.5.2", "cvxpy==1.9.3", "gurobipy==13.0.3", "scikit-learn<1.6"),
    # What PySINDy's tests import, and what bestk needs. cvxpy 1.9 hands problems of these tests to
    # Gurobi together with options of OSQP, and 36 of them fail.
    "pysindy_tests": (
        *("pysindy==2.1.0", "numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1"),
        *("gurobipy==13.0.3", "cvxpy==1.7.5", "scs==3.3.1", "jax==0.10.2", "numpyro==0.22.0"),
        *("pytest==7.4.4", "pytest-lazy-fixture==0.6.3", "hypothesis==6.170.15"),
        *("numba==0.68.1", "rich", "typer"),
    ),
}


def python_of(solver: str) -> Path:
    """The interpreter that runs a solver; a peer's environment is made on first use."""
    if solver not in REQUIREMENTS:
        return Path(sys.executable)
    folder = VENVS / solver
    if interpreter(solver) is None:
        print(f"setting up {folder.relative_to(HERE.parent)} ({', '.join(REQUIREMENTS[solver])})")
        venv.create(folder, with_pip=True, clear=True)
        pip = [_python(solver), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *REQUIREMENTS[solver]], check=True)
        _stamp(solver).write_text(_wanted(solver))
    return _python(solver)


def interpreter(solver: str) -> Path | None:
    """The interpreter of a peer's environment; None unless it was made, with these versions."""
    stamp = _stamp(solver)
    is_ready = stamp.exists() and stamp.read_text() == _wanted(solver)
    return _python(solver) if is_ready else None


def _python(solver: str) -> Path:
    return VENVS / solver / "bin" / "python"


def _stamp(solver: str) -> Path:
    return VENVS / solver / "requirements.txt"


def _wanted(solver: str) -> str:
    return "\n".join(REQUIREMENTS[solver]) + "\n"


def pinned(python: Path, threads: int) -> dict[str, str]:
    """This environment with every pool of threads set to the same size, and benchmarks in reach.

    Other paths to packages are for the interpreter that has them: a peer keeps to its own.
    """
    pools = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    paths = [str(HERE.parent)]
    if python == Path(sys.executable) and "PYTHONPATH" in os.environ:
        paths.append(os.environ["PYTHONPATH"])
    return {
        **os.environ,
        **dict.fromkeys(pools, str(threads)),
        "PYTHONPATH": os.pathsep.join(paths),
    }


@dataclass(frozen=True)
class DataFiles:
    """X and y in files that every solver of a row reads."""

    folder: Path

    @classmethod
    def write(cls, folder: Path, X: np.ndarray, y: np.ndarray) -> DataFiles:
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        return cls(folder)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """X as it is on disk, read where it is looked at, and y."""
        return np.load(self.folder / "X.npy", mmap_mode="r"), np.load(self.folder / "y.npy")


def run_solver(solver: str, X: np.ndarray, y: np.ndarray, *, question: Question) -> dict[str, Any]:
    """Run one solver on arrays; see :func:`run_on`."""
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        return run_on(DataFiles.write(Path(folder), X, y), solver, question)


def run_on(files: DataFiles, solver: str, question: Question) -> dict[str, Any]:
    """Run one solver on one instance; returns what it claims, or ``{"error": reason}``."""
    names = {name: str(files.folder / f"{name}.npy") for name in ("X", "y")}
    asked, claim = files.folder / "question.json", files.folder / "claim.json"
    asked.write_text(json.dumps(names | asdict(question)))
    claim.unlink(missing_ok=True)
    return run_script(
        python_of(solver),
        f"solvers/{solver}_run.py",
        asked,
        claim,
        threads=question.threads,
        patience=4 * question.time_limit + 120,
    )


def run_fresh(script: str, *args: object, threads: int, **extra: str) -> dict[str, Any]:
    """Run one of our own measuring scripts in a new process."""
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        python, answer = Path(sys.executable), Path(folder) / "answer.json"
        return run_script(python, script, *args, answer, threads=threads, patience=1800.0, **extra)


def run_script(
    python: Path, script: str, *args: object, threads: int, patience: float, **extra: str
) -> dict[str, Any]:
    """Run ``python script args...``; the last argument is the JSON file it writes, read here.

    ``extra`` are variables of its environment.
    """
    answer = Path(str(args[-1]))
    try:
        done = subprocess.run(
            [python, "-P", HERE / script, *map(str, args)],
            env=pinned(python, threads) | extra,
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


if __name__ == "__main__":  # python -m benchmarks.harness.environments NAME... makes these
    for name in sys.argv[1:]:
        python_of(name)
