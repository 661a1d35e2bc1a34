"""What every solver file shares: read a question, solve it, time it, write the claim.

A solver file is run as ``python solver_run.py QUESTION.json CLAIM.json`` in the solver's own
environment, so nothing but NumPy is imported here.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .process import peak_memory, timed


@dataclass(frozen=True, kw_only=True)
class Question:
    """min ||y - X b||^2 + alpha ||b||^2 with at most k nonzeros; stop at the paper's gap."""

    k: int
    alpha: float
    gap: float
    """Relative to y'y - objective."""
    time_limit: float
    threads: int
    options: dict[str, Any] = field(default_factory=dict)
    """What this solver alone understands; ``start`` is a warm start, one number per feature, ``l0``
    the price of a feature for solvers that want one instead of k, ``M`` a box |b| <= M."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a solver claims, y'y included; a heuristic claims no bound."""

    coef: np.ndarray
    """One number per feature; what is zero must be exactly zero."""
    objective: float
    lower_bound: float | None = None
    nodes: int = 0
    notes: dict[str, Any] = field(default_factory=dict)
    """Anything else worth keeping, in JSON."""


Solver = Callable[[np.ndarray, np.ndarray, Question], Answer]


def run(solve: Solver, *packages: str) -> None:
    """Answer the question named on the command line; ``packages`` are those whose version counts.

    A tiny problem goes first, so that imports, licences and compilation are not timed.
    """
    question_file, claim_file = map(Path, sys.argv[1:])
    content = json.loads(question_file.read_text())
    X, y = np.load(content.pop("X")), np.load(content.pop("y"))
    question = Question(**content)
    solve(*_tiny(question))
    seconds, answer = timed(lambda: solve(X, y, question))
    support = np.flatnonzero(answer.coef)
    claim = {
        "seconds": seconds,
        "support": support.tolist(),
        "coef": np.asarray(answer.coef)[support].tolist(),
        "objective": float(answer.objective),
        "lower_bound": None if answer.lower_bound is None else float(answer.lower_bound),
        "nodes": int(answer.nodes),
        "notes": answer.notes,
        "memory": peak_memory(),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in (*packages, "numpy")},
        },
    }
    claim_file.write_text(json.dumps(claim))


def _tiny(question: Question) -> tuple[np.ndarray, np.ndarray, Question]:
    """A problem of seconds at most, with the same options but for what belongs to the data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 12))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(60)
    own = ("start", "l0")
    options = {name: value for name, value in question.options.items() if name not in own}
    if "M" in options:
        options["M"] = 100.0
    tiny = Question(
        k=3, alpha=1e-3, gap=1e-4, time_limit=5.0, threads=question.threads, options=options
    )
    return X, y, tiny
