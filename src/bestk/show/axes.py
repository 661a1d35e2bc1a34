"""What pictures share: colours, axes, ticks, and names of lines.

matplotlib is imported when something is drawn, not by this module. Text and axes keep the colours
of the current style; everything else uses colours that differ for colour-blind readers and are
seen on white and on black.
"""

from pathlib import Path

import numpy as np

from bestk.show.html import POWER

BLUE, RED, GREEN, PINK, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#808080"
COLOURS = (BLUE, RED, GREEN, PINK, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

# More lines than this are named in a legend, since names at the line ends would not fit. The
# legend has room for two columns.
MAX_LABELS = 14
_MAX_ROWS = 22
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def require_matplotlib() -> None:
    """Fail with advice where the optional dependency is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'pictures need matplotlib; install it with: pip install "bestk[plots]"'
        ) from error


def require_picture(name: str, path: Path) -> None:
    """Fail before long work if no picture can be written to this file."""
    require_matplotlib()
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in known:
        raise ValueError(
            f"{name}: there are no pictures in the format {path.suffix}; choose another name, such "
            f"as {path.with_suffix('.png')}"
        )


def axes_or_new(ax):
    """The given Axes, or new ones of a pyplot figure, which notebooks show by themselves."""
    require_matplotlib()
    if ax is not None and not hasattr(ax, "spines"):
        raise TypeError(f"ax must be an Axes of matplotlib or None, got {ax!r}")
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def integer_ticks(ax):
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def fit_objectives(ax, objectives, bounds):
    """Limits that show the gap: a bound of 0 says nothing yet, so it may leave the picture."""
    values = np.concatenate([objectives, bounds[bounds > 0]])
    low, high = values.min(), values.max()
    if high <= 0:
        return
    if high - low <= 1e-9 * high:
        ax.set_ylim(0, 1.15 * high)
    elif ax.get_yscale() == "log":
        ax.set_ylim(low / 1.5, high * 1.5)
    else:
        margin = 0.08 * (high - low)
        ax.set_ylim(max(low - margin, 0), high + margin)


def short(name, length=22):
    """A name that fits, with its powers raised: sex² for ``sex^2``."""
    name = POWER.sub(lambda power: power[1].translate(_RAISED), " ".join(name.split()))
    return name if len(name) <= length else name[: length - 1] + "…"


def label_ends(ax, lines, names):
    """Names beside the line ends, moved apart where they would overlap."""
    if not lines:
        return
    low, high = ax.get_ylim()
    ends = np.array([(line.get_ydata()[-1] - low) / (high - low) for line in lines])
    order = np.argsort(ends, kind="stable")
    for i, height in zip(order, _spread(ends[order], 1 / MAX_LABELS), strict=True):
        ax.annotate(
            names[i],
            xy=(1.0, ends[i]),
            xytext=(1.06, height),
            xycoords="axes fraction",
            textcoords="axes fraction",
            verticalalignment="center",
            fontsize="small",
            parse_math=False,
            arrowprops={
                "arrowstyle": "-",
                "color": lines[i].get_color(),
                "linewidth": 0.8,
                "shrinkA": 0,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
        )
    # The leaders start at the edge, so the lines have to reach it.
    ax.set_xlim(right=lines[0].get_xdata()[-1])


def _spread(heights, space):
    """Ascending heights in [0, 1] moved apart to at least `space`, each group about its mean.

    Touching neighbours are merged into blocks, as in isotonic regression.
    """
    blocks: list[list[float]] = []  # [centre, number of labels]
    for height in heights:
        blocks.append([height, 1])
        while True:
            for block in blocks[-2:]:
                half = (block[1] - 1) * space / 2
                block[0] = min(max(block[0], half), 1 - half)
            if len(blocks) < 2:
                break
            (below, m), (above, n) = blocks[-2:]
            if above - below >= (m + n) * space / 2:
                break
            blocks[-2:] = [[(m * below + n * above) / (m + n), m + n]]
    return [
        centre + (i - (count - 1) / 2) * space
        for centre, count in blocks
        for i in range(int(count))
    ]


def outer_legend(ax, lines, names):
    shown = lines[: 2 * _MAX_ROWS]
    if len(names) > len(shown):
        names = [*names[: len(shown) - 1], f"and {len(names) - len(shown) + 1} more"]
    legend = ax.legend(
        shown,
        ["" for _ in shown],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        ncols=-(-len(shown) // _MAX_ROWS),
        fontsize="x-small",
        labelspacing=0.2,
        frameon=False,
    )
    # Set afterwards: as labels, names that begin with an underscore would be left out.
    for text, name in zip(legend.get_texts(), names, strict=False):
        text.set_text(name)
        text.set_parse_math(False)
