"""Figures of the synthetic study: time and gap against p, n and rho; peers; growth of the cost."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np

from ..harness.arena import Instance
from ..harness.contest import Row, by_task
from ..harness.figures import save
from ..harness.paper import ALPHA
from .parts import PARTS, SCALING
from .standings import certified, label

# Colours of Okabe and Ito, told apart by colour-blind readers; markers help in print.
STYLES = {
    "bestk": ("#0072b2", "o"),
    "okridge": ("#d55e00", "s"),
    "Gurobi": ("#009e73", "^"),
    "SCIP": ("#b3a800", "v"),
    "l0bnb": ("#cc79a7", "D"),
    "el0ps": ("#e69f00", "P"),
    "optimal": ("#56b4e9", "X"),
}
TITLES = {"optimal": "SDP"}
FLOOR = 1e-8
"""Gaps below this are drawn here."""


def draw(rows: list[Row], folder: Path) -> list[Path]:
    """All figures for which there are rows."""
    tall, square = PARTS["tall"].chosen(rows), PARTS["square"].chosen(rows)
    small = [*PARTS["small"].chosen(rows), *PARTS["quick"].chosen(rows)]
    by_p = [(r, r.p, f"rho = {r.rho}") for r in tall]
    by_n = [(r, r.n, f"rho = {r.rho}") for r in square]
    by_rho = [(r, r.rho, f"n = {r.n}, p = {r.p}") for r in square if r.n in (4000, 5000, 7000)]
    figures = {
        "synthetic_p": (against, by_p, "p"),
        "synthetic_n": (against, by_n, "n"),
        "synthetic_rho": (against, by_rho, "rho"),
        "synthetic_small": (race, small),
        "synthetic_growth": (growth, PARTS["scaling"].chosen(rows)),
    }
    made = {name: partial(*recipe) for name, recipe in figures.items() if recipe[1]}
    return save(made, folder)


def against(points: list[tuple[Row, float, str]], axis: str):
    """Time above, gap below; one column of panels for each third entry of the points."""
    from matplotlib import pyplot as plt

    usual = [p for p in points if p[0].alpha == ALPHA]
    panels = list(dict.fromkeys(panel for _, _, panel in usual))
    figure, axes = plt.subplots(
        2, len(panels), figsize=(1 + 2.6 * len(panels), 5), squeeze=False, sharex="col",
        sharey="row", layout="constrained",
    )  # fmt: skip
    for column, panel in zip(axes.T, panels, strict=True):
        here = [(row, x) for row, x, name in usual if name == panel]
        place = {row.instance: x for row, x in here}
        runs = certified(row for row, _ in here)
        for name, (colour, marker) in STYLES.items():
            line = sorted((place[i], found[name]) for i, found in runs.items() if name in found)
            line = [(x, row) for x, row in line if not row.complaint]
            if line:
                style = look(name, colour, marker)
                x = [x for x, _ in line]
                column[0].plot(x, [row.seconds for _, row in line], **style)
                column[1].plot(x, [max(row.gap, FLOOR) for _, row in line], **style)
        floor = sorted((x, r.seconds) for r, x in here if r.contender == "X.T @ X alone")
        if floor:
            column[0].plot(
                *zip(*floor, strict=True), color="0.4", ls="--", lw=1, label="X.T @ X alone"
            )
        column[0].set_title(panel, fontsize=10)
        column[1].axhline(1e-4, color="0.6", lw=0.8, ls=":")
        column[1].set_xlabel(axis)
        for ax in column:
            ax.set_yscale("log")
            ax.grid(alpha=0.25)
            if axis == "p":
                ax.set_xscale("log")
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("gap of the paper")
    _legend(figure, axes)
    return figure


def race(rows: list[Row]):
    """One line per problem, one mark per program: filled where the gap was closed."""
    from matplotlib import pyplot as plt

    runs = certified(rows)
    figure, ax = plt.subplots(figsize=(8, 1.2 + 0.42 * len(runs)), layout="constrained")
    for height, found in enumerate(runs.values()):
        for name, (colour, marker) in STYLES.items():
            row = found.get(name)
            if row is not None and not row.complaint:
                style = look(name, colour, marker) | {"ls": "", "zorder": 3}
                fill = "full" if row.is_closed else "none"
                ax.plot(row.seconds, height, fillstyle=fill, markersize=7, **style)
    ax.set_yticks(range(len(runs)), [label(instance) for instance in runs])
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlabel("seconds, best formulation of each; hollow: not closed")
    ax.set_ylabel("n, p, rho")
    ax.grid(alpha=0.25)
    _legend(figure, np.array([[ax]]))
    return figure


def growth(rows: list[Row]):
    """Time of bestk against p, n, k and rows per feature, with one thread and with all."""
    from matplotlib import pyplot as plt

    known = by_task(rows)
    figure, axes = plt.subplots(1, len(SCALING), figsize=(11, 2.8), layout="constrained")
    for ax, (axis, instances) in zip(axes, SCALING.items(), strict=True):
        for name, colour, title in (
            ("bestk", "#0072b2", "all threads"),
            ("1 thread", "#808080", "one"),
        ):
            found = [known[i, name] for i in instances if (i, name) in known]
            x = [getattr(r, axis) if axis in Instance._fields else r.n / r.p for r in found]
            ax.plot(x, [row.seconds for row in found], color=colour, marker="o", ms=4, label=title)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(x, [f"{value:g}" for value in x], rotation=45, minor=False)
        ax.set_xticks([], minor=True)
        ax.set_xlabel(axis)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    return figure


def look(name: str, colour: str, marker: str) -> dict:
    width = 2.2 if name == "bestk" else 1.2
    return {"color": colour, "marker": marker, "lw": width, "label": TITLES.get(name, name)}


def _legend(figure, axes: np.ndarray) -> None:
    lines: Iterable = (line for ax in axes.ravel() for line in ax.get_lines())
    handles = {h.get_label(): h for h in lines if not h.get_label().startswith("_")}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=8)
