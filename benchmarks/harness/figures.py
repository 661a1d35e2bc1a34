"""Figures as files: the same rows give the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def save(
    figures: dict[str, Callable[[], Any]], folder: Path, markersize: float = 5.0
) -> list[Path]:
    """Draw each figure, named as its file, by calling what makes it."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    settings = {"font.size": 9, "svg.fonttype": "path", "svg.hashsalt": "bestk"}
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(settings | {"lines.markersize": markersize}):
        for name, draw in figures.items():
            figure = draw()
            written.append(folder / f"{name}.svg")
            figure.savefig(written[-1], facecolor="white", metadata={"Date": None})
            plt.close(figure)
    return written
