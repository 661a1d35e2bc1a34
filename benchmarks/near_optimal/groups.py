"""Lists below a threshold, the price of one beside the best model alone, and lists beside R."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..harness.environments import run_fresh
from ..harness.paper import ALPHA
from ..harness.tables import Table, announced, percent
from .checking import check
from .leaps import regsubsets, rscript, worse
from .problems import Problem, problem, unpenalised

# Data, k and the tolerance.
LISTS: list[tuple[str, int, float]] = [
    ("diabetes 2", 5, 0.02),
    ("diabetes 2", 5, 0.05),
    ("diabetes 2", 8, 0.01),
    *[(f"lorenz {equation}", 5, 0.1) for equation in range(3)],
]
ALONE: list[tuple[str, int]] = [
    *[("diabetes 2", k) for k in (5, 8, 10)],
    ("1000, 60, 0.9", 10),
    ("150, 60, 0.9", 10),
    ("wine 2", 5),
]
# Data, k and the number of supports of each size.
BESIDE_R: list[tuple[str, int, int]] = [
    ("diabetes 1", 8, 10),
    ("wine 1", 8, 10),
    ("breast cancer 1", 8, 10),
    ("breast cancer 1", 12, 100),
    *[("diabetes 2, first 30", 8, count) for count in (1, 10, 100)],
    ("diabetes 2, first 45", 8, 10),
    ("diabetes 2", 5, 10),
    *[(f"1000, {p}, 0.9", 10, 10) for p in (30, 35, 40, 50)],
    ("1000, 40, 0.9", 10, 100),
]
PATIENCE = 900.0
"""Seconds that R may take, warm-up included."""
DATA = (
    "NAME d: a table with all products up to degree d; lorenz: an equation in 56 terms; "
    "n, p, rho: synthetic data, SNR 5"
)


def lists(threads: int, quick: bool) -> Table:
    """All models of at most k features within a tolerance of the best, listed and verified."""
    columns = [
        *("data", "k", "within", "seconds", "models", "of size k", "complete", "verified"),
        *("verify s", "checked", "remarks"),
    ]
    table = Table(name="near_lists", columns=columns)
    rows = [("diabetes 1", 4, 0.1), ("120, 16, 0.9", 3, 0.1)] if quick else LISTS
    for name, k, within in announced(rows):
        data = problem(name)
        answer = _run("list_run.py", data, threads, k=k, within=within)
        if "error" in answer:
            _add(table, name, k, percent(within), *["-"] * 7, answer["error"])
            continue
        seconds, checked = answer["seconds"], check(data, k, within, answer)
        _add(
            *(table, name, k, percent(within), f"{seconds['list']:.3f}", len(answer["supports"])),
            "-" if checked.of_size_k is None else checked.of_size_k,
            *(_yes(answer["complete"]), _yes(answer["valid"]), f"{seconds['verify']:.3f}"),
            *(checked.how, "; ".join([*answer["failures"], *checked.complaints])),
        )
    table.notes.append(
        f"{DATA}; tables: alpha = 1 and an intercept, others: alpha = {ALPHA}; models: irreducible "
        "ones; of size k: the supports of exactly k features below the threshold that they stand "
        "for"
    )
    table.notes.append(_checks())
    return table


def alone(threads: int, quick: bool) -> Table:
    """A list with tolerance 0 beside bestk.solve, both from (X, y) to a gap of 0."""
    columns = [
        *("data", "k", "solve s", "list s", "ratio", "models", "complete", "verified"),
        *("verify s", "checked", "remarks"),
    ]
    table = Table(name="near_alone", columns=columns)
    ratios = []
    for name, k in announced([("diabetes 1", 4)] if quick else ALONE):
        data = problem(name)
        answer = _run("list_run.py", data, threads, k=k, within=0.0)
        if "error" in answer:
            _add(table, name, k, *["-"] * 8, answer["error"])
            continue
        seconds, checked = answer["seconds"], check(data, k, 0.0, answer)
        ratios.append(seconds["list"] / seconds["solve"])
        unsolved = [] if answer["status"] == "OPTIMAL" else [f"solve: {answer['status']}"]
        _add(
            *(table, name, k, f"{seconds['solve']:.4f}", f"{seconds['list']:.4f}"),
            *(f"{ratios[-1]:.2f}", len(answer["supports"])),
            *(_yes(answer["complete"]), _yes(answer["valid"]), f"{seconds['verify']:.4f}"),
            *(checked.how, "; ".join([*unsolved, *answer["failures"], *checked.complaints])),
        )
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")
    table.notes.append(
        f"{DATA}; tables: alpha = 1 and an intercept, others: alpha = {ALPHA}; ratio: list over "
        f"solve, geometric mean {mean:.2f}; two models: ties"
    )
    table.notes.append(_checks())
    return table


def leaps(threads: int, quick: bool) -> Table:
    """The n best supports of 1..k features beside leaps::regsubsets in R, one thread each."""
    columns = [
        *("data", "n", "p", "k", "n best", "leaps s", "bestk s, size k", "ratio"),
        *("bestk s, 1..k", "ratio", "equal", "remarks"),
    ]
    table = Table(name="near_leaps", columns=columns)
    command = rscript()
    if command is None:
        table.notes.append("nothing measured: there is no R with the package leaps here")
        return table
    versions: set[str] = set()
    for name, k, count in announced([("diabetes 1", 4, 5)] if quick else BESIDE_R):
        data = unpenalised(name)
        title = [name, *data.X.shape, k, count]
        ours = _run("best_run.py", data, 1, k=k, count=count)
        theirs = regsubsets(command, data, k, count, PATIENCE)
        error = ours.get("error", theirs.error)
        if error:
            _add(table, *title, *["-"] * 6, error)
            continue
        versions.add(theirs.versions)
        equal, remarks = _compared(data, ours, theirs.supports)
        _add(
            *(table, *title, f"{theirs.seconds:.4f}", f"{ours['seconds']:.4f}"),
            *(_times(theirs.seconds, ours["seconds"]), f"{ours['all_seconds']:.4f}"),
            *(_times(theirs.seconds, ours["all_seconds"]), equal, "; ".join(remarks)),
        )
    table.notes.append(
        "alpha = 0, with an intercept, both on one thread; tables standardised, none of their "
        "columns twice, or the first columns of them; synthetic data as n, p, rho, SNR 5; leaps "
        "lists all sizes up to k in one call, bestk one size a call; ratio: leaps over bestk, "
        "above 1 bestk is faster; equal: sizes whose lists have the same objectives, recomputed "
        "from the data"
    )
    table.notes.append(
        f"{', '.join(sorted(versions))}, the clock is that of regsubsets alone; bestk proves its "
        "lists, certificates included"
    )
    return table


def _compared(data: Problem, ours: dict, theirs: Any) -> tuple[str, list[str]]:
    """How many sizes have the same list, and what is wrong."""
    remarks = [] if ours["complete"] else ["bestk is not complete"]
    equal = 0
    for size, own in enumerate(ours["supports"], start=1):
        we, they = worse(data, own, [one for one in theirs if len(one) == size])
        equal += not (we or they)
        remarks += [f"bestk is worse at {we} places of size {size}"] if we else []
        remarks += [f"leaps is worse at {they} places of size {size}"] if they else []
    return f"{equal} of {len(ours['supports'])}", remarks


def _run(script: str, data: Problem, threads: int, **asked: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, threads=threads, **data._asdict(), **asked)
        return run_fresh(f"near_optimal/{script}", file, threads=threads)


def _add(table: Table, *cells: object) -> None:
    """A row, shown as soon as it is there."""
    table.rows.append([str(cell) for cell in cells])
    print("  " + "  ".join(table.rows[-1]), flush=True)


def _yes(it_is: bool) -> str:
    return "yes" if it_is else "NO"


def _times(theirs: float, ours: float) -> str:
    ratio = theirs / ours
    return f"{ratio:.2g}" if ratio < 10.0 else f"{ratio:.0f}"


def _checks() -> str:
    return (
        "checked by fits of the suite: models are as claimed and cannot be reduced, and no other "
        "support is below the threshold among all of k features, or among the listed ones with "
        "one feature replaced; medians of up to 5 runs after a warm-up"
    )


GROUPS = {"near_lists": lists, "near_alone": alone, "near_leaps": leaps}
