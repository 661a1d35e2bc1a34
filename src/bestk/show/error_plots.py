"""Errors of a cross-validation over sizes and penalties: as lines, or as a surface."""

import numpy as np

from bestk.show.axes import COLOURS, MARKERS, RED, integer_ticks


def draw_lines(ax, cv, choices):
    # Neighbouring lines are moved a little sideways, or their bars would hide each other.
    step = 0.06 * (np.diff(cv.ks).min() if len(cv.ks) > 1 else 1.0)
    shifts = step * (np.arange(len(cv.alphas)) - (len(cv.alphas) - 1) / 2)
    for i, alpha in enumerate(cv.alphas):
        ax.errorbar(
            cv.ks + shifts[i],
            cv.mean[i],
            yerr=cv.standard_error[i],
            color=COLOURS[i % len(COLOURS)],
            marker=MARKERS[i],
            markersize=3.5,
            linewidth=1.2,
            elinewidth=0.8,
            capsize=2,
            label=f"alpha = {alpha:.3g}",
        )
    for name, marker, size, (alpha, k) in choices:
        i, j = position(cv, alpha, k)
        ax.plot(
            k + shifts[i],
            cv.mean[i, j],
            linestyle="none",
            marker=marker,
            markersize=size + 4,
            markerfacecolor="none",
            markeredgecolor=ax.yaxis.label.get_color(),
            markeredgewidth=1.2,
            label=f"{name}: k = {k}" + (f", alpha = {alpha:.3g}" if len(cv.alphas) > 1 else ""),
        )
    ax.set_ylabel(cv.measure)
    integer_ticks(ax)
    ax.legend(frameon=False, fontsize="small", labelspacing=0.8)


def draw_surface(ax, cv, choices):
    from matplotlib import colormaps

    # Cells of equal size whatever the grid: the axes count, the tick labels tell the values.
    # The worst quarter shares one colour, or it would leave none to tell good models apart.
    top = np.quantile(cv.mean, 0.75)
    cells = ax.pcolormesh(
        np.arange(len(cv.ks)),
        np.arange(len(cv.alphas)),
        cv.mean,
        vmax=top,
        cmap=colormaps["cividis_r"].resampled(32),
        edgecolors="face",
        linewidth=0.6,
    )
    for name, marker, size, (alpha, k) in choices:
        i, j = position(cv, alpha, k)
        ax.plot(
            j,
            i,
            linestyle="none",
            marker=marker,
            markersize=size,
            markerfacecolor=RED,
            markeredgecolor="white",
            label=f"{name}: k = {k}, alpha = {alpha:.3g}",
        )
    for axis, values in ((ax.xaxis, cv.ks), (ax.yaxis, cv.alphas)):
        every = -(-len(values) // 10)
        shown = range(0, len(values), every)
        axis.set_ticks(list(shown), [f"{values[i]:.3g}" for i in shown])
    ax.set_ylabel("alpha")
    ax.figure.colorbar(
        cells, ax=ax, label=cv.measure, extend="max" if top < cv.mean.max() else None
    )
    ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0))


def position(cv, alpha, k):
    """Row and column of a choice; alphas are compared by distance, they may have been rounded."""
    return int(np.argmin(np.abs(cv.alphas - alpha))), int(np.argmin(np.abs(cv.ks - k)))
