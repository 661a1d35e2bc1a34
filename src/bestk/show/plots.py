"""Pictures of results, paths, cross-validations and found equations, drawn with matplotlib.

matplotlib is imported by the first picture, not by this module.
"""

from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np

from bestk.base.validation import as_vector, counted
from bestk.show.axes import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    MAX_LABELS,
    PINK,
    RED,
    axes_or_new,
    fit_objectives,
    integer_ticks,
    label_ends,
    outer_legend,
    require_matplotlib,
    short,
)
from bestk.show.error_plots import draw_lines, draw_surface, position
from bestk.show.structure import k_label

__all__ = [
    "BLUE",
    "COLOURS",
    "CRITERION_NAMES",
    "GREEN",
    "GREY",
    "MARKERS",
    "MAX_STATES",
    "PINK",
    "RED",
    "coefficients",
    "cross_validation",
    "discovery",
    "gap",
    "path",
    "percent",
    "position",
    "predicted",
    "require_matplotlib",
    "scores",
    "states",
]

CRITERION_NAMES = {"aicc": "AICc", "bic": "BIC", "ebic": "EBIC"}

# More values of alpha than this make a surface instead of lines.
_MAX_LINES = 6
# Beyond this many points a vector drawing gets too heavy.
_MAX_VECTOR = 2000
# More states than this are not drawn, and not more dots than this in each.
MAX_STATES = 12
_MAX_DOTS = 400
# Axes turn logarithmic where the values span more than this factor.
_WIDE = 100.0


def gap(result: Any, ax: Any = None) -> Any:
    """Objective of the best model and proven lower bound over time; what lies between is the gap.

    Parameters
    ----------
    result : Result
        Its ``history`` is drawn.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    seconds, incumbent, bound = (result.history[name] for name in ("seconds", "incumbent", "bound"))
    marker = "o" if len(seconds) <= 2 else None
    ax.fill_between(seconds, bound, incumbent, step="post", color=GREY, alpha=0.2, linewidth=0)
    for values, colour, size, label in (
        (incumbent, BLUE, 7, "best model found"),
        (bound, RED, 3.5, "proven lower bound"),
    ):
        ax.step(seconds, values, where="post", color=colour, marker=marker, ms=size, label=label)
    if seconds[-1] > _WIDE * seconds[0] > 0:
        ax.set_xscale("log")
    else:
        ax.set_xlim(0, 1.05 * seconds[-1])
        ax.locator_params(axis="x", nbins=6)
    fit_objectives(ax, incumbent, bound)
    ax.set_title(f"Gap {percent(result.gap)} after {result.seconds:.3g} s")
    ax.set_xlabel("seconds")
    ax.set_ylabel("objective")
    ax.legend(frameon=False)
    return ax


def path(path: Any, ax: Any = None, criterion: str | None = None) -> Any:
    """Objective and proven lower bound of the best model of each size.

    Parameters
    ----------
    path : Path
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.
    criterion : {"aicc", "bic", "ebic"} or None
        Mark the size that this criterion chooses.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    ks, objectives, bounds = path.ks, path.objectives, path.lower_bounds
    proven = np.array([result.is_proven for result in path.results])
    ax.fill_between(ks, bounds, objectives, color=GREY, alpha=0.2, linewidth=0)
    ax.plot(ks, objectives, color=BLUE, marker="o", label="best model found")
    ax.plot(ks, bounds, color=RED, linestyle="--", marker="_", label="proven lower bound")
    if np.all(objectives > 0) and objectives.max() > _WIDE * objectives.min():
        ax.set_yscale("log", nonpositive="clip")
    fit_objectives(ax, objectives, bounds)
    if criterion is not None:
        best = path.best(criterion)
        label = f"k = {best.k}, smallest {CRITERION_NAMES[criterion]}"
        ax.plot(best.k, best.objective, "o", ms=12, mfc="none", mec=GREEN, mew=2, label=label)
    title = "All sizes proven" if proven.all() else f"{proven.sum()} of {len(ks)} sizes proven"
    if path.is_closed and not path.is_proven:
        title = "All sizes proven inside a chosen box"
    ax.set_title(title)
    ax.set_xlabel(k_label(path.results))
    ax.set_ylabel("objective")
    integer_ticks(ax)
    ax.legend(frameon=False)
    return ax


def coefficients(path: Any, ax: Any = None, scale: Any = None) -> Any:
    """Coefficients against k, one line per feature that enters any model; 0 means left out.

    Parameters
    ----------
    path : Path
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.
    scale : (p,) array or None
        Factors for the coefficients. ``X.std(axis=0)`` makes features of different units
        comparable.

    Returns
    -------
    matplotlib Axes
    """
    coefs = path.coefs
    if scale is not None:
        coefs = coefs * as_vector("scale", scale, length=coefs.shape[1], of="features")
    ax = axes_or_new(ax)
    features = np.flatnonzero(coefs.any(axis=0))
    # The last model has what readers look for first; the lines that end in it lead the legend.
    features = features[np.argsort(-np.abs(coefs[-1, features]), kind="stable")]
    ax.axhline(0.0, color=GREY, linewidth=0.8)
    lines = []
    for i, feature in enumerate(features):
        values = coefs[:, feature]
        (line,) = ax.plot(
            path.ks,
            values,
            color=COLOURS[i % len(COLOURS)],
            marker=MARKERS[i // len(COLOURS) % len(MARKERS)],
            markevery=np.flatnonzero(values).tolist(),
            markersize=4,
            linewidth=1.2,
        )
        lines.append(line)
    names = [short(path.results[0].name(feature)) for feature in features]
    integer_ticks(ax)
    if len(lines) <= MAX_LABELS:
        label_ends(ax, lines, names)
    else:
        outer_legend(ax, lines, names)
    enter = "enters" if len(features) == 1 else "enter"
    ax.set_title(f"{counted(len(features), 'feature')} {enter}")
    ax.set_xlabel(k_label(path.results))
    ax.set_ylabel("coefficient" if scale is None else "scaled coefficient")
    return ax


def cross_validation(cv: Any, ax: Any = None) -> Any:
    """Cross-validation error against k, and what the two rules choose.

    There is one line per alpha with bars of one standard error, or, for many values of alpha, a
    surface over alpha and k.

    Parameters
    ----------
    cv : CrossValidation
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    choices = [
        ("smallest error", "*", 13, cv.best("min")),
        ("one-SE rule", "D", 7, cv.best("one-se")),
    ]
    if len(cv.alphas) > _MAX_LINES:
        draw_surface(ax, cv, choices)
    else:
        draw_lines(ax, cv, choices)
    ax.set_xlabel(k_label([result for path in cv.paths[:1] for result in path[0].results]))
    return ax


def predicted(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """Predictions against observations, with the line on which they agree.

    Parameters
    ----------
    model : Result or estimator
        Anything with ``predict(X)``.
    X, y : array-like, (n, p) and (n,)
        Data of the fit, or better, data the fit has not seen.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    fitted = np.asarray(model.predict(X), dtype=float).ravel()
    observed = as_vector("y", y, length=len(fitted), of="rows of X").astype(float)
    ax = axes_or_new(ax)
    ax.scatter(
        observed,
        fitted,
        s=12,
        color=BLUE,
        alpha=0.5,
        linewidths=0,
        rasterized=len(observed) > _MAX_VECTOR,
    )
    ax.axline((observed.mean(), observed.mean()), slope=1.0, color=RED, linewidth=1)
    total = float(np.sum((observed - observed.mean()) ** 2))
    r2 = 1.0 - float(np.sum((observed - fitted) ** 2)) / total if total > 0 else np.nan
    ax.set_title(f"R² = {r2:.4g}" if np.isfinite(r2) else "R² is not defined: y is constant")
    ax.set_xlabel("observed")
    ax.set_ylabel("predicted")
    return ax


def discovery(found: Any, path: Any = None, *, figure: Any = None, trajectory: int = 0) -> Any:
    """The states of a trajectory with the simulation of the equations, and the choice of each k.

    Parameters
    ----------
    found : Discovery
    path : str, Path or None
        Where to write the picture, if anywhere.
    figure : matplotlib Figure or None
        Where to draw; None makes a new one.
    trajectory : int
        Which one, if there are several.

    Returns
    -------
    (states, 2) array of matplotlib Axes
    """
    require_matplotlib()
    shown = range(min(len(found.states), MAX_STATES))
    if figure is None:
        size = (9.6, 1.2 + 1.5 * len(shown))
        if path is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(figsize=size, layout="constrained")
        else:
            from matplotlib.figure import Figure  # nobody is going to show it

            figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(shown), 2, sharex="col", squeeze=False, width_ratios=[3, 1])
    for i, (left, right) in zip(shown, axes, strict=True):
        states(found, i, left, trajectory).get_legend().remove()
        scores(found, i, right)
        left.set_title(found.equations[i], loc="left", parse_math=False, fontsize="medium")
        left.set_title(found.remarks[i], loc="right", fontsize="small", color=GREY)
        right.set_title(_above(found) if i == 0 else "", fontsize="medium")
        right.set_ylabel("")
        for ax in (left, right):
            ax.set_xlabel("" if i < len(shown) - 1 else ax.get_xlabel())
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=150)
    return axes  # a notebook that gets the figure would show it twice


def states(found: Any, state: int = 0, ax: Any = None, trajectory: int = 0) -> Any:
    """One state of a trajectory, and the simulation of the found equations from its first row.

    Parameters
    ----------
    found : Discovery
    state, trajectory : int
        Which one.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    data = found.trajectories
    t, x, simulated = data.t[trajectory], data.x[trajectory], found.simulated[trajectory]
    # Dots that touch would be a band: enough of them to see the curve.
    some = slice(None, None, -(-len(t) // _MAX_DOTS))
    ax.plot(t[some], x[some, state], "o", color=RED, ms=4, mew=0, alpha=0.35, label="data")
    ax.plot(t, simulated[:, state], color=BLUE, lw=1.2, label="simulation")
    end = t[0] + found.horizons[trajectory]
    if end < t[-1]:
        ax.axvline(end, color=GREY, ls=":", label=f"follows the data until {end:.3g}")
    low, high = x[:, state].min(), x[:, state].max()
    margin = 0.1 * (high - low) or 1.0
    ax.set_ylim(low - margin, high + margin)  # a simulation that blows up may leave the picture
    ax.set_xlim(t[0], t[-1])
    ax.set_xlabel("time")
    ax.set_ylabel(found.states[state], parse_math=False)
    ax.legend(frameon=False, fontsize="small", ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    return ax


def scores(found: Any, state: int = 0, ax: Any = None) -> Any:
    """Validation score of one equation against its size, for the best alpha of each.

    Parameters
    ----------
    found : Discovery
    state : int
        Which equation.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    best = found.scores[state].min(axis=0)
    known = np.isfinite(best)
    above = best[known] - best[known].min(initial=np.inf)
    result = found.results[state]
    ax.plot(found.ks[known], above, color=BLUE, marker="o", ms=4)
    ax.plot(result.k, 0.0, "o", ms=10, mfc="none", mec=GREEN, mew=2)
    if above.max(initial=0.0) > _WIDE:
        ax.set_yscale("symlog", linthresh=10.0)
        ax.set_ylim(bottom=-2.0)
    ax.set_title(f"k = {result.k}, alpha = {result.alpha:.3g}")
    ax.set_xlabel("largest number of terms k")
    ax.set_ylabel(_above(found))
    integer_ticks(ax)
    return ax


def _above(found):
    return f"{CRITERION_NAMES[found.criterion]} above the best"


def percent(share: float) -> str:
    """A share in per cent with three digits, rounded up: a gap must not look smaller than it is."""
    if not np.isfinite(share):
        return "∞"
    # The first rounding drops what is noise of the division, or 0.01 might become 0.0101.
    digits = Context(prec=3, rounding=ROUND_CEILING).create_decimal(f"{100 * share:.12g}")
    return f"{float(digits):.3g}%"
