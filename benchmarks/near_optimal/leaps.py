"""leaps in R: the n best supports of every size up to k, by branch and bound."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..harness.environments import pinned
from ..harness.referee import refitted
from .problems import Problem

SCRIPT = Path(__file__).with_name("regsubsets.R")
SAME = 1e-9
"""Objectives are equal if they differ by less than this share of y'y."""


class Listed(NamedTuple):
    """What R answers: supports of all sizes, or why there are none."""

    versions: str = ""
    seconds: float = float("nan")
    supports: Sequence[Sequence[int]] = ()
    error: str = ""


def rscript() -> str | None:
    """The command that runs R; None unless it is here and has leaps."""
    command = shutil.which("Rscript")
    if command is None:
        return None
    asked = [command, "-e", 'quit(status = !requireNamespace("leaps", quietly = TRUE))']
    return command if subprocess.run(asked, capture_output=True).returncode == 0 else None


def regsubsets(command: str, data: Problem, k: int, count: int, patience: float) -> Listed:
    """The ``count`` best supports of each size up to k, on one thread."""
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        table, answer = Path(folder) / "data.csv", Path(folder) / "answer.txt"
        np.savetxt(table, np.column_stack([data.X, data.y]), fmt="%.17g", delimiter=",")
        words = [command, "--vanilla", SCRIPT, table, k, count, answer]
        try:
            done = subprocess.run(
                [*map(str, words)],
                env=os.environ | pinned(Path(command), 1),
                capture_output=True,
                text=True,
                timeout=patience,
            )
        except subprocess.TimeoutExpired:
            return Listed(error=f"leaps: no answer after {patience:.0f} s")
        if done.returncode != 0 or not answer.exists():
            return Listed(error=f"leaps: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        versions, seconds, *supports = answer.read_text().splitlines()
    return Listed(versions, float(seconds), [[int(j) for j in row.split()] for row in supports])


def worse(
    data: Problem, ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]
) -> tuple[int, int]:
    """At how many places is the one list worse than the other, refitted and sorted; (we, they).

    Supports that tie may differ. A list that ends sooner is worse at the places that it lacks.
    """
    X, y = data.centred()
    values = np.full((2, max(len(ours), len(theirs))), np.inf)
    for row, supports in zip(values, (ours, theirs), strict=True):
        fits = [refitted(X, y, np.array(support), data.alpha) for support in supports]
        row[: len(fits)] = np.sort(fits)
    slack = SAME * float(y @ y)
    return int(np.sum(values[0] > values[1] + slack)), int(np.sum(values[1] > values[0] + slack))
