"""The picture of near-optimal models shows their objectives and their features."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from helpers.near_optimal_stub import find, many, proxies
from matplotlib.figure import Figure

from bestk.show.near_optimal_plot import MAX_FEATURES, MAX_MODELS, plot_near_optimal

NAMES = ["<b>", "x & y", "$a_1$ b$", "_hidden", "a very long name of a feature that must be cut"]


@pytest.fixture(scope="module")
def found():
    names = NAMES + [f"f{j}" for j in range(5, 12)]
    X, y = proxies(names, noise=4.0)
    return find(X, y, names, k=3, within=0.25)


def objectives(ax):
    return next(other for other in ax.figure.axes if other.get_label() == "objectives")


def drawn(ax):
    ax.figure.canvas.draw()
    return ax


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_dots_are_the_features_of_the_models(found, ax):
    assert plot_near_optimal(found, ax) is ax
    labels = [text.get_text().rpartition("  ")[0] for text in drawn(ax).get_yticklabels()]
    dots = {(int(x), labels[int(y)]) for x, y in ax.collections[-1].get_offsets()}
    short = {name: name if len(name) <= 22 else name[:21] + "…" for name in found.names}
    assert dots == {(i, short[name]) for i, m in enumerate(found.models, 1) for name in m.names}


def test_objectives_are_per_cent_above_the_best(found, ax):
    top = objectives(plot_near_optimal(found, ax))
    values = [100 * (m.objective / found.best.objective - 1) for m in found.models]
    np.testing.assert_allclose(top.lines[0].get_ydata(), values, atol=1e-9)
    assert top.get_title() == f"{len(found.models)} models within 25% of the best"
    assert top.lines[-1].get_ydata()[0] == pytest.approx(25)


def test_what_is_not_known_is_marked(found, ax):
    last = replace(found.models[-1], is_borderline=True)
    below = 1.03 * found.best.objective
    models = (*found.models[:-1], last)
    stopped = replace(found, models=models, complete=False, complete_below=below)
    top = objectives(plot_near_optimal(stopped, ax))
    assert "perhaps not all" in top.get_title()
    labels = [text.get_text() for text in top.get_legend().get_texts()]
    assert labels == ["at the threshold up to rounding", "threshold", "models may be missing"]


def test_a_long_list_is_cut(ax):
    plot_near_optimal(many(500), ax)
    assert len(drawn(ax).get_yticks()) == MAX_FEATURES
    assert len(objectives(ax).lines[0].get_xdata()) == MAX_MODELS
    assert objectives(ax).get_title().endswith("; the first 60")
    assert ax.get_xlabel().endswith("more features are in some model")


def test_axes_without_a_place_in_a_grid_are_split():
    ax = Figure().add_axes([0.2, 0.1, 0.7, 0.8])
    names = [f"f{j}" for j in range(6)]
    X, y = proxies(names)
    plot_near_optimal(find(X, y, names, k=2, within=0.05), ax)
    lower, upper = ax.get_position(), objectives(ax).get_position()
    assert lower.y0 == pytest.approx(0.1)
    assert lower.y1 < upper.y0
    assert upper.y1 == pytest.approx(0.9)


def test_an_empty_list_and_a_model_without_features(found, ax):
    plot_near_optimal(replace(found, models=(), complete=False), ax)
    drawn(ax)
    none = replace(found.models[0], support=np.zeros(0, dtype=int), names=(), values=np.zeros(0))
    drawn(plot_near_optimal(replace(found, models=(none,)), Figure().subplots()))


def test_a_new_figure_is_made(found):
    import matplotlib.pyplot as plt

    with mpl.rc_context({"backend": "agg"}):
        ax = plot_near_optimal(found)
        drawn(ax)
        plt.close(ax.figure)
