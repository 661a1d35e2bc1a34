"""Tables and figures of the dynamical systems study, made from its rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..harness import machine
from ..harness.rows import read
from ..harness.tables import Table, markdown_rows, percent, read_csv
from .rows import Row
from .trajectories import SYSTEMS

DOCS = machine.ROOT / "docs" / "_static"
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
# Colours of Okabe and Ito, told apart by colour-blind readers; markers help in print.
STYLES = {
    "bestk": ("#0072b2", "o"),
    "beam search": ("#56b4e9", "o"),
    "MIOSR": ("#d55e00", "s"),
    "STLSQ": ("#009e73", "^"),
    "E-STLSQ": ("#b3a800", "v"),
    "SSR": ("#cc79a7", "D"),
    "FROLS": ("#e69f00", "P"),
    "OMP": ("#808080", "<"),
    "Lasso": ("#000000", ">"),
}


def write(path: Path, into_docs: bool) -> None:
    """The page beside the rows, and the figure, which goes to the documentation."""
    rows = read(path, Row)
    page = path.with_suffix(".md")
    page.write_text("\n".join(_page(rows, read_csv(path).notes)).rstrip() + "\n")
    figure = (DOCS if into_docs else path.parent) / "dynamics.svg"
    draw(rows, figure)
    for written in (page, figure):
        print(f"written to {written.relative_to(machine.ROOT)}")


def _page(rows: list[Row], notes: Sequence[str]) -> list[str]:
    text = ["# Dynamical systems benchmark", "", "<!-- findings -->", ""]
    for system in SYSTEMS:
        text += _findings(system, [row for row in rows if row.system == system])
    text += ["", "<!-- tables -->", ""]
    for system, settings in SYSTEMS.items():
        chosen = [row for row in rows if row.system == system]
        if not chosen:
            continue
        text += [f"## {settings.title}", ""]
        for table in [_means(chosen, metric) for metric in METRICS] + [
            _proofs(chosen),
            _shortfalls(chosen),
        ]:
            text += [f"**{table.name}**", "", *markdown_rows(table), ""]
            text += [f"- {note}" for note in table.notes] + [""] * bool(table.notes)
    commits = sorted({row.commit for row in rows})
    text += ["<!-- machine -->", "", *(f"- {note}" for note in notes)]
    text += [f"- rows measured at {', '.join(commits)}"]
    return text


def _findings(system: str, rows: list[Row]) -> list[str]:
    """Sentences about one system, every number from the rows."""
    ours = [row for row in rows if row.method == "bestk"]
    if not ours:
        return []
    solves, proven = _sum(ours, "solves"), _sum(ours, "proven")
    exact = "all" if proven == solves else f"{proven} ({percent(proven / solves)})"
    times = [row.seconds for row in ours]
    slowest = max(seconds for row in ours for seconds in _by_size(row))
    text = [
        f"- **{SYSTEMS[system].title}**: `bestk` solved {solves} problems on {len(ours)} "
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
    for method, chosen in _by_method(rows).items():
        cells = []
        for length in lengths:
            values = _values(chosen, metric, length)
            cells.append(format(np.mean(values), digits) if len(values) else "-")
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
    for method, chosen in _by_method(rows).items():
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
    for method, chosen in _by_method(rows).items():
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


def draw(rows: list[Row], path: Path) -> None:
    """One row of pictures per system: means over trials with standard errors against length."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    systems = [system for system in SYSTEMS if any(row.system == system for row in rows)]
    style = {"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "bestk", "lines.markersize": 4}
    with mpl.rc_context(style):
        figure, axes = plt.subplots(
            len(systems),
            len(METRICS),
            figsize=(11, 0.6 + 2.3 * len(systems)),
            squeeze=False,
            sharex="row",
            layout="constrained",
        )
        for row_of_axes, system in zip(axes, systems, strict=True):
            chosen = [row for row in rows if row.system == system]
            for ax, metric in zip(row_of_axes, METRICS, strict=True):
                _panel(ax, chosen, metric)
            row_of_axes[0].set_ylabel(SYSTEMS[system].title, fontsize=11)
        for ax, title in zip(axes[0], METRICS.values(), strict=True):
            ax.set_title(title, fontsize=10)
        for ax in axes[-1]:
            ax.set_xlabel("seconds of training data")
        handles = {h.get_label(): h for ax in axes.ravel() for h in ax.get_lines()}
        known = [name for name in [*STYLES, "MIOSR, published"] if name in handles]
        figure.legend([handles[name] for name in known], known, loc="outside lower center", ncols=5)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, facecolor="white", metadata={"Date": None})
        plt.close(figure)


def _panel(ax, rows: list[Row], metric: str) -> None:
    system = rows[0].system
    durations = SYSTEMS[system].durations
    for method, chosen in _by_method(rows).items():
        lengths = [n for n in sorted({row.length for row in chosen}) if _values(chosen, metric, n)]
        groups = [_values(chosen, metric, length) for length in lengths]
        means = np.array([np.mean(group) for group in groups])
        errors = [np.std(g, ddof=1) / np.sqrt(len(g)) if len(g) > 1 else 0.0 for g in groups]
        colour, marker = STYLES[method]
        x = durations[np.array(lengths, dtype=int) - 1]
        width, order = (2.2, 5) if method == "bestk" else (1.1, 3)
        line = {"color": colour, "marker": marker, "lw": width, "zorder": order, "label": method}
        if method == "beam search":  # a ring, seen around the points of bestk
            line |= {"fillstyle": "none", "markersize": 8, "ls": "--"}
        ax.plot(x, means, **line)
        low = np.maximum(means - errors, 0.1 * means)  # keeps bands on logarithmic axes
        ax.fill_between(x, low, means + errors, color=colour, alpha=0.15, lw=0)
    if metric == "tpr":
        lengths = sorted(PUBLISHED[system])
        x = durations[np.array(lengths) - 1]
        published = [PUBLISHED[system][length] for length in lengths]
        ax.plot(x, published, color="#d55e00", ls=":", lw=1, label="MIOSR, published")
        ax.set_ylim(-0.03, 1.03)
    else:
        ax.set_yscale("log")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.grid(alpha=0.25)


def _by_method(rows: list[Row]) -> dict[str, list[Row]]:
    present = {row.method for row in rows}
    return {m: [row for row in rows if row.method == m] for m in STYLES if m in present}


def _values(rows: list[Row], metric: str, length: int) -> list[float]:
    values = [getattr(row, metric) for row in rows if row.length == length]
    return [value for value in values if np.isfinite(value)]


def _by_size(row: Row) -> list[float]:
    return [float(seconds) for seconds in row.slowest.split()]


def _sum(rows: list[Row], name: str) -> int:
    return sum(getattr(row, name) for row in rows)
