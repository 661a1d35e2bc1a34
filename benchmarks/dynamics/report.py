"""Tables and findings of the dynamical systems study, made from its rows alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..harness.tables import Table, markdown_notes, markdown_rows, percent
from .rows import Row
from .trajectories import SYSTEMS

METRICS = {
    "tpr": "True positivity rate",
    "coef_error": "Coefficient error",
    "rmse": "RMSE of derivatives",
    "seconds": "Seconds of the tuning loop",
}
# Means over 50 trials (Bertsimas and Gurnee 2023), by number of the length.
PUBLISHED = {
    "lorenz": dict(zip((1, 3, 5, 7, 9, 12), (0.241, 0.756, 0.937, 1.0, 1.0, 1.0), strict=True)),
    "hopf": dict(zip((1, 3, 5, 7, 9, 12), (0.136, 0.268, 0.623, 0.977, 1.0, 1.0), strict=True)),
    "mhd": dict(zip((1, 3, 5, 7, 9, 12), (0.902, 0.978, 0.987, 0.997, 1.0, 1.0), strict=True)),
}
PUBLISHED_SECONDS = {
    "lorenz": "1587 s for the shortest and 132 s for the longest trajectory",
    "hopf": "70 to 83 s",
    "mhd": "2807 s for the shortest and 267 s for the longest trajectory, with 84 terms",
}
ORDER = (
    *("bestk", "bestk, rows worth", "bestk, EBIC", "beam search"),
    *("MIOSR", "STLSQ", "E-STLSQ", "SSR", "FROLS", "OMP", "Lasso"),
)
"""Of the methods, in tables and figure."""


def findings(rows: list[Row]) -> list[str]:
    """Sentences about each system, every number from the rows."""
    by_system = {system: [row for row in rows if row.system == system] for system in SYSTEMS}
    return ["\n".join(found) for args in by_system.items() if (found := _findings(*args))]


def tables(rows: list[Row]) -> Iterator[str]:
    for system, settings in SYSTEMS.items():
        chosen = [row for row in rows if row.system == system]
        if not chosen:
            continue
        yield from (f"## {settings.title}", "")
        means = [_means(chosen, metric) for metric in METRICS]
        for table in (*means, _proofs(chosen), _shortfalls(chosen)):
            yield from (f"**{table.name}**", "", *markdown_rows(table))
            if table.notes:
                yield from markdown_notes(table)


def _findings(system: str, rows: list[Row]) -> list[str]:
    """Of one system; all but the first go on in the same item."""
    ours = [row for row in rows if row.method == "bestk"]
    if not ours:
        return []
    solves, proven = _sum(ours, "solves"), _sum(ours, "proven")
    exact = "all" if proven == solves else f"{proven} ({percent(proven / solves)})"
    times = [row.seconds for row in ours]
    slowest = max(seconds for row in ours for seconds in _by_size(row))
    text = [
        f"**{SYSTEMS[system].title}**: `bestk` solved {solves} problems on {len(ours)} "
        f"trajectories, {exact} with gap exactly 0; a loop of {solves // len(ours)} problems took "
        f"{min(times):.2g} to {max(times):.2g} s, a single problem at most {slowest:.2g} s."
    ]
    for method in ("beam search", "MIOSR"):
        theirs = [row for row in rows if row.method == method and row.solves]
        if theirs:
            worse, solves = _sum(theirs, "worse"), _sum(theirs, "solves")
            sentence = (
                f"  {method[0].upper() + method[1:]}: {worse} of {solves} models are worse, by a "
                f"factor of {max(row.worst_ratio for row in theirs):.4g} at most"
            )
            if method == "MIOSR":
                sentence += (
                    f"; {_sum(theirs, 'claimed_worse')} were called optimal and are worse by more "
                    "than the solver's own tolerance"
                )
            text.append(sentence + ".")
    return text


def _means(rows: list[Row], metric: str) -> Table:
    """Methods against lengths, mean over trials."""
    lengths = sorted({row.length for row in rows})
    durations = {row.length: row.duration for row in rows}
    table = Table(
        name=f"{METRICS[metric]}, mean over trials",
        columns=["method", "trials", *(f"{durations[length]:.3g} s" for length in lengths)],
    )
    digits = ".3f" if metric == "tpr" else ".2g"
    for method, chosen in by_method(rows).items():
        cells = []
        for length in lengths:
            found = values(chosen, metric, length)
            cells.append(format(np.mean(found), digits) if found else "-")
        trials = str(len({row.trial for row in chosen}))
        table.rows.append([method, trials, *cells])
    system = rows[0].system
    if metric == "tpr":
        cells = [f"{PUBLISHED[system].get(length, np.nan):.3f}" for length in lengths]
        cells = [cell.replace("nan", "-") for cell in cells]
        table.rows.append(["MIOSR, published", "50", *cells])
    if metric == "seconds":
        table.notes.append(f"published for MIOSR: {PUBLISHED_SECONDS[system]}")
    return table


def _proofs(rows: list[Row]) -> Table:
    """The grids of problems (equation, k, alpha), each recomputed from the data."""
    table = Table(
        name="Problems of the grid, one by one",
        columns=[
            *("method", "problems", "called optimal", "gap exactly 0", "largest gap"),
            *("worse than bestk", "beyond tolerance", "worst ratio"),
            "slowest, s, by k",
        ],
    )
    for method, chosen in by_method(rows).items():
        chosen = [row for row in chosen if row.solves]
        if not chosen:
            continue
        gap = max(row.largest_gap for row in chosen)
        sizes = map(max, zip(*map(_by_size, chosen), strict=False))
        table.rows.append(
            [
                *(method, str(_sum(chosen, "solves")), str(_sum(chosen, "claimed"))),
                *(str(_sum(chosen, "proven")), percent(gap) if np.isfinite(gap) else "none"),
                *(str(_sum(chosen, "worse")), str(_sum(chosen, "claimed_worse"))),
                f"{max(row.worst_ratio for row in chosen):.6g}",
                ", ".join(f"{seconds:.3g}" for seconds in sizes),
            ]
        )
    table.notes.append(
        "objectives and gaps are recomputed from the data; worse: by more than a millionth; beyond "
        "tolerance: called optimal and worse by more than Gurobi's 1e-4 of the explained sum"
    )
    return table


def _shortfalls(rows: list[Row]) -> Table:
    table = Table(
        name="What was cut or failed",
        columns=["method", "loops", "loops cut", "fits", "fits skipped", "fits failed", "remarks"],
    )
    for method, chosen in by_method(rows).items():
        remarks = sorted({row.remark for row in chosen} - {""})
        cut = sum(row.skipped > 0 for row in chosen)
        if cut or _sum(chosen, "failed") or remarks:
            table.rows.append(
                [
                    *(method, str(len(chosen)), str(cut), str(_sum(chosen, "fits"))),
                    *(str(_sum(chosen, "skipped")), str(_sum(chosen, "failed"))),
                    remarks[0] + f" (rows like it: {len(remarks)})" if remarks else "",
                ]
            )
    return table


def by_method(rows: list[Row]) -> dict[str, list[Row]]:
    present = {row.method for row in rows}
    return {m: [row for row in rows if row.method == m] for m in ORDER if m in present}


def values(rows: list[Row], metric: str, length: int) -> list[float]:
    """The finite ones, of all trials of one length."""
    found = [getattr(row, metric) for row in rows if row.length == length]
    return [value for value in found if np.isfinite(value)]


def _by_size(row: Row) -> list[float]:
    return [float(seconds) for seconds in row.slowest.split()]


def _sum(rows: list[Row], name: str) -> int:
    return sum(getattr(row, name) for row in rows)
