"""What every solver file of this study shares; only NumPy is imported, peers have nothing else.

A file is run as ``python FILE DATA.npz ASKED.json ANSWER.json``. The data are X (n, p) and Y (n, d)
as they are, and ``matrix``, ``target``: one matrix and one target for all coefficients, the
intercept taken out.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.process import timed


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A problem for a solver that knows its structure."""

    X: np.ndarray
    Y: np.ndarray
    matrix: np.ndarray
    target: np.ndarray
    groups: np.ndarray
    lhs: np.ndarray
    rhs: np.ndarray
    names: Sequence[str]
    parents: Sequence[Sequence[int]]
    structure: str
    """A kind of hierarchy, "groups", "within" or "across"."""
    k: int
    alpha: float
    fit_intercept: bool
    gap: float
    """Relative to the objective; for those who leave out y'y it is ``peer_gap``."""
    peer_gap: float
    limit: float
    threads: int
    box: float
    """For those who need one: |b| <= box."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """An answer: what is zero is exactly zero, a heuristic has no bound."""

    coef: np.ndarray
    lower_bound: float | None = None
    objective: float | None = None
    """As claimed, y'y included; recomputed from the coefficients if it is not told."""
    nodes: int = 0
    box: float | None = None
    notes: str = ""


def read(data_file: str, asked_file: str) -> list[Asked]:
    """All questions of a file, on the same data."""
    questions = json.loads(Path(asked_file).read_text())
    with np.load(data_file) as data:
        arrays = dict(data)
    return [Asked(**arrays, **question) for question in questions]


def versions(*packages: str) -> str:
    told = {"python": platform.python_version(), **{p: version(p) for p in (*packages, "numpy")}}
    return ", ".join(f"{name} {number}" for name, number in told.items())


def claim(asked: Asked, model: Model, seconds: float, runs: int) -> dict[str, Any]:
    """As the referee wants it."""
    support = np.flatnonzero(model.coef)
    b = model.coef[support]
    residual = asked.target - asked.matrix[:, support] @ b
    value = float(residual @ residual + asked.alpha * (b @ b))
    return {
        "seconds": seconds,
        "runs": runs,
        "support": support.tolist(),
        "coef": b.tolist(),
        "objective": value if model.objective is None else float(model.objective),
        "lower_bound": None if model.lower_bound is None else float(model.lower_bound),
        "nodes": int(model.nodes),
        "box": model.box,
        "notes": model.notes,
    }


def refit(asked: Asked, groups: Sequence[int] | np.ndarray) -> np.ndarray:
    """The best coefficients on these groups; the shortest ones where there are several."""
    support = np.flatnonzero(np.isin(asked.groups, groups))
    A = np.vstack([asked.matrix[:, support], np.sqrt(asked.alpha) * np.eye(len(support))])
    target = np.concatenate([asked.target, np.zeros(len(support))])
    coef = np.zeros(len(asked.groups))
    coef[support] = np.linalg.lstsq(A, target, rcond=None)[0]
    return coef


def run(solve: Callable[[Asked], Model], *packages: str) -> None:
    """Answer all questions, after a tiny one: k = 1 on the same data. What fails says why."""
    *files, answer_file = sys.argv[1:]
    questions = read(*files)
    solve(replace(questions[0], k=1, limit=2.0))
    told = versions(*packages)
    answers = [_answered(solve, asked) | {"versions": told} for asked in questions]
    Path(answer_file).write_text(json.dumps(answers))


def _answered(solve: Callable[[Asked], Model], asked: Asked) -> dict[str, Any]:
    calls: list[Model] = []
    try:
        seconds, model = timed(lambda: calls.append(solve(asked)) or calls[-1])
    except Exception as error:  # of whatever kind: the row tells it
        return {"error": f"{type(error).__name__}: {error}"}
    return claim(asked, model, seconds, len(calls))
