"""The figure of the study of wide data: time and memory against the number of features."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..harness.figures import save
from ..synthetic.figures import STYLES, look
from .parts import PARTS
from .rows import Row


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Written to ``folder``, if there is anything to draw."""
    usable = [row for row in PARTS["growth"].chosen(rows) if not row.complaint]
    return save({"wide_growth": partial(growth, usable)}, folder) if usable else []


def growth(rows: Sequence[Row]):
    """Seconds, hollow where the gap is open at the limit, and peak memory of the process."""
    from matplotlib import pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for name in dict.fromkeys(row.contender for row in rows):
        own = [row for row in rows if row.contender == name]
        style = look(name, *STYLES[name])
        p = [row.p for row in own]
        memory.plot(p, [row.memory for row in own], **style)
        time.plot(p, [row.seconds for row in own], **style | {"marker": ""})
        for row in own:
            fill = "full" if row.is_closed else "none"
            time.plot(row.p, row.seconds, fillstyle=fill, **style | {"ls": "", "label": ""})
    p = sorted({row.p for row in rows})
    n = rows[0].n
    memory.plot(p, [n * m / 2**17 for m in p], color="0.4", ls="--", lw=1, label="X")
    memory.plot(p, [m * m / 2**17 for m in p], color="0.4", ls=":", lw=1, label="p x p matrix")
    for ax, title in ((time, "seconds; hollow: not closed"), (memory, "peak memory, MiB")):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("p")
        ax.set_ylabel(title)
        ax.grid(alpha=0.25)
    memory.legend(fontsize=8)
    return figure
