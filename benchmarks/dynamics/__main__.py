"""The dynamical systems study of the paper: which method finds the equations of a trajectory?

Every row is appended to benchmarks/results/dynamics.csv as soon as it is measured, and a study that
was interrupted goes on where it stopped. Delete the file to start anew. At the end, or alone with
--report, the rows become benchmarks/results/dynamics.md and the figures and tables of the
documentation.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..harness import machine
from ..harness.environments import python_of, run_script
from ..harness.referee import judge, refitted, value
from ..harness.rows import append, read
from ..harness.tables import RESULTS
from . import report
from .rows import Row, Task
from .trajectories import (
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
    "bestk": ("bestk", "dynamics/bestk_run.py", ("bestk", "beam search")),
    "scikit-learn": ("bestk", "peers/sklearn_run.py", ("OMP", "Lasso")),
    "PySINDy": (
        "pysindy",
        "peers/pysindy_run.py",
        ("STLSQ", "E-STLSQ", "FROLS", "SSR", "MIOSR"),
    ),
}
METHODS = [method for _, _, methods in RUNNERS.values() for method in methods]
# Grids are compared with bestk's, and E-STLSQ takes over what STLSQ has chosen.
NEEDS = {"beam search": "bestk", "MIOSR": "bestk", "E-STLSQ": "STLSQ"}
# Trials of methods that would take most of the hour.
SLOW = {("MIOSR", "lorenz"): 1}
# The built-in licence of Gurobi ends at 200 variables, and each term takes two.
LICENSED_TERMS = 100

# A solve counts as worse than that of bestk beyond this, relative to the objective of bestk.
WORSE = 1e-6
# Gurobi calls a model optimal within this fraction of y'y - objective.
GUROBI_GAP = 1e-4


def main() -> None:
    arguments = _arguments()
    folder = RESULTS / "quick" if arguments.quick else RESULTS
    path = folder / "dynamics.csv"
    if not arguments.report:
        machine.warn_if_busy()
        slow = {} if arguments.full or arguments.trials else SLOW
        effort = Effort(threads=arguments.threads)
        if arguments.quick:
            effort = replace(effort, ks=range(1, 4), solve_limit=2.0, loop_limit=4.0)
        study(_tasks(arguments), arguments.methods or METHODS, slow, effort, path)
    report.write(path, into_docs=not arguments.quick)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, metavar="METHOD", help=str(METHODS)
    )
    parser.add_argument("--trials", type=int, help="of each length (default 5; MHD, MIOSR less)")
    parser.add_argument("--lengths", type=int, nargs="+", choices=range(1, 13), metavar="1..12")
    parser.add_argument("--full", action="store_true", help="20 trials of all 12 lengths (days)")
    parser.add_argument("--quick", action="store_true", help="one short trajectory of each system")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--threads", type=int, default=2, help="of bestk and Gurobi (default 2)")
    return parser.parse_args()


def _tasks(arguments: argparse.Namespace) -> list[Task]:
    # Lengths for which means of MIOSR have been published; MHD is too slow for all of them.
    lengths = {"lorenz": (1, 3, 5, 7, 9, 12), "hopf": (1, 3, 5, 7, 9, 12), "mhd": (5, 9, 12)}
    trials = {"lorenz": 5, "hopf": 5, "mhd": 1}
    if arguments.full:
        lengths, trials = dict.fromkeys(SYSTEMS, range(1, 13)), dict.fromkeys(SYSTEMS, 20)
    if arguments.quick:
        lengths = {"lorenz": (2,), "hopf": (2,), "mhd": (1,)}
        trials = dict.fromkeys(SYSTEMS, 1)
    return [
        Task(system, length, trial)
        for system in arguments.systems
        for trial in range(1, (arguments.trials or trials[system]) + 1)
        for length in arguments.lengths or lengths[system]
    ]


def study(
    tasks: list[Task],
    methods: list[str],
    slow: dict[tuple[str, str], int],
    effort: Effort,
    path: Path,
) -> None:
    """Measure what the file does not hold yet, slow methods in their first trials only."""
    known = {row.key for row in read(path, Row)}
    for i, task in enumerate(tasks, start=1):
        missing = [
            method
            for method in methods
            if (task, method) not in known
            and _applies(method, task.system)
            and task.trial <= slow.get((method, task.system), task.trial)
        ]
        if not missing:
            continue
        print(f"  {i} of {len(tasks)}: {task}", file=sys.stderr, flush=True)
        for row in measure(task, missing, effort):
            append(path, row, effort.threads)


def _applies(method: str, system: str) -> bool:
    return method != "MIOSR" or true_coef(system).shape[1] <= LICENSED_TERMS


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
            print(_line(row), file=sys.stderr, flush=True)
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
        python = python_of(environment)
        answers = run_script(
            python,
            script,
            data_file,
            answer_file,
            threads=1,
            patience=patience,
        )
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
        verdict = judge(
            data.X,
            y,
            k=k,
            alpha=alpha,
            claim=solve,
            best_known=min(rival, best[cell]),
        )
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


def _line(row: Row) -> str:
    return (
        f"    {row.method:<12} {row.seconds:8.2f} s  TPR {row.tpr:.3f}  "
        f"error {row.coef_error:.2e}  RMSE {row.rmse:.2e}  {row.fits} fits"
        + (f", {row.skipped} skipped" if row.skipped else "")
        + (f", {row.failed} failed" if row.failed else "")
        + (f", {row.proven} of {row.solves} proven" if row.solves else "")
        + (f", {row.worse} worse" if row.worse else "")
        + (f"  {row.remark}" if row.remark else "")
    )


if __name__ == "__main__":
    main()
