"""The figure of the study of real tables: the share of problems that is proven after a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ..harness.figures import save
from ..synthetic.figures import STYLES
from ..synthetic.standings import best_known
from .report import Standing, hits, standings
from .rows import Row

FIRST = 1e-3
"""Seconds at which the picture begins, at the latest."""


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Written to ``folder``, if there is anything to draw."""
    everyone, best = standings(rows), best_known(rows)
    certified = [one for one in everyone if not one.is_heuristic]
    found = [
        f"{one.program} in {hits(one, best)} of {one.asked}" for one in everyone if one.is_heuristic
    ]
    note = f"The best known model, without a proof: {', '.join(found)} problems" if found else ""
    return save({"tables": partial(proven, certified, note)}, folder) if certified else []


def proven(certified: Sequence[Standing], note: str):
    """One rising line per program, dashed where the proof holds in a box, and a note below."""
    from matplotlib import pyplot as plt

    end = max(row.limit for standing in certified for row in standing.rows)
    figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
    for standing in certified:
        seconds = np.sort([row.seconds for row in standing.proven])
        x = [FIRST, *np.maximum(seconds, FIRST), max(end, *seconds, FIRST)]
        share = 100.0 * np.arange(len(seconds) + 1) / standing.asked
        colour = STYLES[standing.program.split()[0]][0]
        ax.step(
            x, [*share, share[-1]], where="post", color=colour,
            lw=2.4 if standing.program == "bestk" else 1.4,
            ls="--" if standing.is_boxed else "-",
            label=f"{standing.program}: {len(seconds)} of {standing.asked}",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(FIRST, end)
    ax.set_ylim(0.0, 101.0)
    ax.set_xlabel("seconds")
    ax.set_ylabel("problems proven, %")
    ax.grid(alpha=0.25)
    figure.legend(loc="outside right upper", title="proven in the end")
    figure.supxlabel(note, fontsize=8)
    return figure
