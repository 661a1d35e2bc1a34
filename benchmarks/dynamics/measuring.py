"""All methods on one trajectory: tuned in a process, every claim recomputed from the data."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..harness import machine
from ..harness.environments import python_of, run_script
from ..harness.referee import judge, refitted, value
from .rows import Row, Task
from .trajectories import (
    LICENSED_TERMS,
    SYSTEMS,
    Split,
    coefficient_error,
    prediction_error,
    split,
    true_coef,
    true_positivity,
)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What every method is tuned over, and how long that may take."""

    ks: range = range(1, 6)
    alphas: tuple[float, ...] = (1e-5, 1e-3, 1e-2, 0.05, 0.2)
    solve_limit: float = 30.0
    """Seconds for one problem of bestk or MIOSR."""
    loop_limit: float = 90.0
    """Seconds after which a loop starts no further fit; bestk always ends its grid."""
    threads: int = 2
    """Of bestk and Gurobi. BLAS has one: a second makes fits of this size slower."""


# In the order in which they run. The methods of a runner share a process.
RUNNERS = {
    "bestk": (
        "bestk",
        "dynamics/bestk_run.py",
        ("bestk", "bestk, EBIC", "bestk, rows worth", "beam search"),
    ),
    "scikit-learn": ("bestk", "peers/sklearn_run.py", ("OMP", "Lasso")),
    "PySINDy": (
        "pysindy",
        "peers/pysindy_run.py",
        ("STLSQ", "E-STLSQ", "FROLS", "SSR", "MIOSR"),
    ),
}
METHODS = [method for _, _, methods in RUNNERS.values() for method in methods]
# Grids are compared with bestk's or chosen from, and E-STLSQ takes over what STLSQ has chosen.
NEEDS = {
    "bestk, EBIC": "bestk",
    "bestk, rows worth": "bestk",
    "beam search": "bestk",
    "MIOSR": "bestk",
    "E-STLSQ": "STLSQ",
}
# A solve counts as worse than that of bestk beyond this, relative to the objective of bestk.
WORSE = 1e-6
# Gurobi calls a model optimal within this fraction of y'y - objective.
GUROBI_GAP = 1e-4


def applies(method: str, system: str) -> bool:
    return method != "MIOSR" or true_coef(system).shape[1] <= LICENSED_TERMS


def by_runner(methods: list[str]) -> list[list[str]]:
    """Methods in the groups that can be measured apart; MIOSR takes longest."""
    groups = [[m for m in runner if m != "MIOSR"] for *_, runner in RUNNERS.values()]
    return [
        chosen for group in [*groups, ["MIOSR"]] if (chosen := [m for m in group if m in methods])
    ]


def measure(task: Task, wanted: list[str], effort: Effort) -> Iterator[Row]:
    """Rows of the wanted methods; methods that these need run along."""
    data = split(task.system, task.duration, task.trial)
    needed = {*wanted, *(NEEDS[method] for method in wanted if method in NEEDS)}
    best: dict[tuple, float] = {}
    for environment, script, methods in RUNNERS.values():
        chosen = [method for method in methods if method in needed]
        if not chosen:
            continue
        answers = _run(task, data, environment, script, chosen, effort)
        for method in chosen:
            answer = answers.get(method, {"error": answers.get("error", "no answer")})
            if method == "bestk" and "error" in answer:
                raise SystemExit(f"bestk failed on {task}: {answer['error']}")
            row = _row(task, data, method, answer, best)
            print(f"    {row}", file=sys.stderr, flush=True)
            if method in wanted:
                yield row


def _run(
    task: Task, data: Split, environment: str, script: str, methods: list[str], effort: Effort
) -> dict[str, Any]:
    """What each method answers, those before a failure included."""
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        data_file, answer_file = Path(folder) / "data.npz", Path(folder) / "answer.json"
        np.savez(
            data_file,
            **asdict(data),
            methods=np.array(methods),
            **asdict(effort),
            thresholds=SYSTEMS[task.system].thresholds,
            trial=task.trial,
        )
        # The grid of bestk has limits for each solve only, so it may take longest.
        solves = len(effort.ks) * len(effort.alphas) * data.Y.shape[1]
        patience = len(methods) * (2 * effort.loop_limit + 120) + solves * effort.solve_limit
        python, files = python_of(environment), (data_file, answer_file)
        answers = run_script(python, script, *files, threads=1, patience=patience)
        if "error" in answers and answer_file.exists():
            answers |= json.loads(answer_file.read_text())
    return answers


def _row(
    task: Task, data: Split, method: str, answer: dict[str, Any], best: dict[tuple, float]
) -> Row:
    row = {**task._asdict(), "duration": task.duration, "method": method}
    row["commit"] = machine.commit()
    if "error" in answer:
        return Row(**row, remark=answer["error"])
    truth, coef = true_coef(task.system), np.array(answer["coef"])
    return Row(
        **row,
        tpr=true_positivity(coef, truth),
        coef_error=coefficient_error(coef, truth),
        rmse=prediction_error(coef, task.system, task.trial),
        seconds=answer["seconds"],
        fits=answer["fits"],
        skipped=answer["skipped"],
        failed=answer["failed"],
        choice="; ".join(_settings(choice) for choice in answer["choice"]),
        **_judged(data, truth, answer["solves"], best, sets_the_mark=method == "bestk"),
    )


def _settings(choice: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in choice.items())


def _judged(
    data: Split,
    truth: np.ndarray,
    solves: list[dict[str, Any]],
    best: dict[tuple, float],
    sets_the_mark: bool,
) -> dict[str, Any]:
    """Every solve of a grid recomputed from the data and held against that of bestk.

    ``best`` maps (equation, k, alpha) to the objective of bestk, which is put there or looked up.
    """
    if not solves:
        return {}
    gaps, ratios, complaints, slowest = [], [], set(), {}
    proven = claimed_worse = 0
    for solve in solves:
        equation, k, alpha = cell = solve["equation"], solve["k"], solve["alpha"]
        y = data.Y[:, equation]
        support, coef = np.array(solve["support"], dtype=int), np.array(solve["coef"])
        objective = value(data.X, y, support, coef, alpha)
        if sets_the_mark:
            best[cell] = objective
        true_support = np.flatnonzero(truth[equation])
        rival = refitted(data.X, y, true_support, alpha) if len(true_support) <= k else np.inf
        rival = min(rival, best[cell])
        verdict = judge(data.X, y, k=k, alpha=alpha, claim=solve, best_known=rival)
        complaints |= {verdict.complaint} - {""}
        # Recomputing rounds differently, so "exactly 0" is about the claim that was judged.
        proven += not verdict.complaint and solve["objective"] == solve["lower_bound"]
        gaps.append(verdict.gap)
        slowest[k] = max(slowest.get(k, 0.0), solve["seconds"])
        mark = best[cell]
        ratios.append(objective / mark)
        beyond = objective - mark > WORSE * mark + GUROBI_GAP * (verdict.yy - mark)
        claimed_worse += beyond and solve["claims_optimal"]
    return {
        "solves": len(solves),
        "claimed": sum(solve["claims_optimal"] for solve in solves),
        "proven": proven,
        "largest_gap": max(gaps),
        "worse": sum(ratio > 1 + WORSE for ratio in ratios),
        "claimed_worse": claimed_worse,
        "worst_ratio": max(ratios),
        "slowest": " ".join(f"{slowest[k]:.3f}" for k in sorted(slowest)),
        "remark": _summary(complaints),
    }


def _summary(complaints: set[str]) -> str:
    first, *others = sorted(complaints) or [""]
    return first + (f" (and {len(others)} like it)" if others else "")
