"""A picture of near-optimal models: their objectives, and which features each of them has.

matplotlib is imported when something is drawn, not by this module.
"""

from typing import Any

import numpy as np

from bestk.base.words import counted
from bestk.show.axes import BLUE, GREY, RED, axes_or_new, short
from bestk.show.plots import percent
from bestk.show.structure import label_units, structure_of, unit_of

# More features, or models, than this are not drawn: dots and names would get too small to read.
MAX_FEATURES, MAX_MODELS = 25, 60
# Heights of the objectives and of the dots.
_HEIGHTS = (1.0, 2.0)


def plot_near_optimal(found: Any, ax: Any = None) -> Any:
    """Objectives of near-optimal models, the best first, above dots for the features they have.

    Features are sorted by the number of models with them. At most 60 models and 25 features are
    drawn; the title and the last row tell what is left out. Groups of features, where there are
    some, have a row each.

    Parameters
    ----------
    found : NearOptimal
    ax : matplotlib Axes or None
        Where to draw: it keeps the lower part for the dots, and new Axes above it show the
        objectives. None makes a new figure.

    Returns
    -------
    matplotlib Axes
        Those with the dots. Those with the objectives are labelled "objectives".
    """
    new = ax is None
    ax = axes_or_new(ax)
    if new:
        ax.figure.set_size_inches(7.2, 5.4)
    models = found.models[:MAX_MODELS]
    top = _axes_above(ax)
    _draw_objectives(top, found, models)
    _draw_dots(ax, found, models)
    top.set_title(_title(found, models))
    return ax


def _axes_above(ax):
    """New Axes in the upper part of the place of others, which keep the lower part."""
    place = ax.get_subplotspec()
    if place is not None:
        upper, lower = place.subgridspec(2, 1, height_ratios=_HEIGHTS, hspace=0.08)
        ax.set_subplotspec(lower)
        top = ax.figure.add_subplot(upper, sharex=ax, label="objectives")
    else:
        x, y, width, height = ax.get_position().bounds
        part = height * _HEIGHTS[1] / sum(_HEIGHTS)
        ax.set_position([x, y, width, 0.97 * part])
        above = [x, y + part, width, height - part]
        top = ax.figure.add_axes(above, sharex=ax, label="objectives")
    top.spines[["top", "right"]].set_visible(False)
    return top


def _draw_objectives(top, found, models):
    best = found.best.objective
    above = np.array([m.objective for m in models], dtype=float) - best
    limit, complete = found.threshold - best, found.complete_below - best
    if best > 0:
        above, limit, complete = (100 * v / best for v in (above, limit, complete))
    borderline = np.array([m.is_borderline for m in models], dtype=bool)
    x = np.arange(1, len(models) + 1)
    size = 5 if len(models) <= 30 else 3.5
    top.plot(x[~borderline], above[~borderline], "o", color=BLUE, ms=size)
    if borderline.any():
        label = "at the threshold up to rounding"
        top.plot(x[borderline], above[borderline], "o", mfc="none", mec=BLUE, ms=size, label=label)
    top.axhline(limit, color=RED, linestyle="--", linewidth=1, label="threshold")
    if not found.complete and np.isfinite(complete) and complete < limit:
        label = "models may be missing"
        top.axhspan(max(complete, 0.0), limit, color=GREY, alpha=0.2, linewidth=0, label=label)
    top.set_ylim(min(0.0, above.min(initial=0.0)) - 0.05 * limit, 1.1 * limit or 1.0)
    top.set_ylabel("% above the best" if best > 0 else "objective above\nthe best")
    top.tick_params(labelbottom=False)
    top.legend(frameon=False, fontsize="small", loc="best")


def _draw_dots(ax, found, models):
    structure = structure_of(found)
    labels, names = label_units(structure, found.names)
    held = [np.unique(labels[np.asarray(m.support, dtype=int)]).tolist() for m in found.models]
    listed = [j for own in held for j in own]
    times = np.bincount(np.array(listed, dtype=int), minlength=len(names))
    used = np.flatnonzero(times)
    shown = used[np.argsort(-times[used], kind="stable")][:MAX_FEATURES]
    row = {j: i for i, j in enumerate(shown.tolist())}
    drawn = held[: len(models)]
    dots = [(x, row[j]) for x, own in enumerate(drawn, start=1) for j in own if j in row]
    for i in range(0, len(shown), 2):
        ax.axhspan(i - 0.5, i + 0.5, color=GREY, alpha=0.1, linewidth=0)
    size = 30 if len(models) <= 30 and len(shown) <= 15 else 12
    ax.scatter(*np.array(dots, dtype=float).reshape(-1, 2).T, s=size, color=BLUE, linewidths=0)
    total = max(len(found.models), 1)
    texts = [f"{short(names[j])}  {_share(times[j], total)}" for j in shown]
    small = "small" if len(shown) <= 15 else "x-small"
    ax.set_yticks(range(len(shown)), texts, fontsize=small)
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(shown), 1) - 0.5, -0.5)
    ax.set_xlim(0.5, max(len(models), 1) + 0.5)
    ax.locator_params(axis="x", integer=True)
    more, unit = len(used) - len(shown), unit_of(structure)
    left = f"; {more} more {unit}s are in some model" if more > 1 else ""
    left = f"; 1 more {unit} is in some model" if more == 1 else left
    ax.set_xlabel(f"models, the best first{left}")


def _title(found, models):
    number = len(found.models)
    within = (found.threshold - found.best.objective) / (found.best.objective or 1.0)
    text = counted(number, "model")
    if found.best.objective > 0:
        text += f" within {percent(within)} of the best"
    if not found.complete:
        text += ", perhaps not all"
    return text + (f"; the first {len(models)}" if len(models) < number else "")


def _share(times, total):
    """Rounded, but 100% means all."""
    return f"{min(round(100 * times / total), 100 if times == total else 99)}%"
