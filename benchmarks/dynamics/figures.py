"""The figure of the dynamical systems study: what each method finds against the length of data."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from ..harness.figures import save
from .report import METRICS, PUBLISHED, by_method, values
from .rows import Row
from .trajectories import SYSTEMS

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


def draw(rows: list[Row], folder: Path) -> list[Path]:
    return save({"dynamics": partial(panels, rows)}, folder, markersize=4.0)


def panels(rows: list[Row]):
    """One row of pictures per system: means over trials with standard errors against length."""
    from matplotlib import pyplot as plt

    systems = [system for system in SYSTEMS if any(row.system == system for row in rows)]
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
    return figure


def _panel(ax, rows: list[Row], metric: str) -> None:
    system = rows[0].system
    durations = SYSTEMS[system].durations
    for method, chosen in by_method(rows).items():
        if method not in STYLES:  # the other criteria are in the tables
            continue
        lengths = [n for n in sorted({row.length for row in chosen}) if values(chosen, metric, n)]
        groups = [values(chosen, metric, length) for length in lengths]
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
