"""Pictures: they show the numbers of the result, and leave the rest of the session alone."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.text import Text

import bestk
from bestk import Advanced, Status
from bestk.show import axes, inline_svg, plots

NAMES = ["<b>", "x & y", "$a_1$ b$", "_hidden", "a very long name of a feature that must be cut"]


@pytest.fixture(scope="module")
def data():
    X, y, _ = bestk.datasets.make_synthetic(120, 20, k=6, rho=0.5)
    return pd.DataFrame(X, columns=NAMES + [f"f{j}" for j in range(5, 20)]), y


@pytest.fixture(scope="module")
def path(data):
    return bestk.solve_path(*data, ks=range(7), fit_intercept=True)


@pytest.fixture(scope="module")
def stopped():
    """A run that ends with a gap."""
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    slow = Advanced(enumeration=False, batch_size=1)
    result = bestk.solve(X, y, k=6, node_limit=20, advanced=slow)
    assert result.gap > 0.001
    return result


@pytest.fixture
def ax():
    return Figure().subplots()


def make_cv(n_alphas):
    """Stands for a CrossValidation; its best model is in row 1, k = 4."""
    rng = np.random.default_rng(0)
    errors = 2.0 + rng.random((n_alphas, 5, 4)) / 100
    errors[1, 3] = [1.0, 1.2, 1.1, 1.3]
    mean, standard_error = errors.mean(axis=2), errors.std(axis=2, ddof=1) / 2
    alphas = np.logspace(-3, 1, n_alphas)
    return SimpleNamespace(
        ks=np.arange(1, 6),
        alphas=alphas,
        errors=errors,
        mean=mean,
        standard_error=standard_error,
        measure="mean squared error",
        paths=(),
        best=lambda rule="min": (float(alphas[1]), 4) if rule == "min" else (float(alphas[0]), 2),
    )


def line(ax, label):
    return next(item for item in ax.lines if item.get_label().startswith(label))


def texts(ax):
    return [text.get_text() for text in ax.texts]


def draw(ax):
    ax.figure.canvas.draw()
    return ax


def test_gap_shows_the_history(stopped, ax):
    assert plots.gap(stopped, ax=ax) is ax
    found, bound = line(ax, "best model"), line(ax, "proven")
    np.testing.assert_array_equal(found.get_xdata(), stopped.history["seconds"])
    np.testing.assert_array_equal(found.get_ydata(), stopped.history["incumbent"])
    np.testing.assert_array_equal(bound.get_ydata(), stopped.history["bound"])
    assert plots.percent(stopped.gap) in ax.get_title()


def test_gap_looks_where_the_gap_is(stopped, ax):
    """The bound starts at 0, before anything is known; the axis does not."""
    plots.gap(stopped, ax=ax)
    assert stopped.history["bound"][0] == 0.0
    assert 0 < ax.get_ylim()[0] < stopped.lower_bound
    assert stopped.objective < ax.get_ylim()[1]


@pytest.mark.parametrize(("k", "factor"), [(0, 1.0), (2, 1.0), (2, 0.0)])
def test_gap_of_a_run_without_a_search(data, ax, k, factor):
    X, y = data
    result = bestk.solve(X, factor * y, k=k)
    assert len(result.history) <= 2
    draw(plots.gap(result, ax=ax))
    assert "Gap 0%" in ax.get_title()
    assert line(ax, "best model").get_marker() == "o"  # a step of one point has no line


def test_path_shows_objectives_and_bounds(path, ax):
    plots.path(path, ax=ax)
    np.testing.assert_array_equal(line(ax, "best model").get_xdata(), path.ks)
    np.testing.assert_array_equal(line(ax, "best model").get_ydata(), path.objectives)
    np.testing.assert_array_equal(line(ax, "proven").get_ydata(), path.lower_bounds)
    assert ax.get_title() == "All sizes proven"


def test_path_counts_what_is_proven(path, stopped, ax):
    plots.path(bestk.Path((*path.results, stopped)), ax=ax)
    assert ax.get_title() == "7 of 8 sizes proven"


@pytest.mark.parametrize("criterion", ["aicc", "bic", "ebic"])
def test_path_marks_the_choice(path, ax, criterion):
    plots.path(path, ax=ax, criterion=criterion)
    best = path.best(criterion)
    assert line(ax, "k = ").get_xydata().tolist() == [[best.k, best.objective]]


def test_path_of_one_size(path, ax):
    one = bestk.Path((path[3],))
    draw(plots.path(one, ax=ax))
    draw(plots.coefficients(one, ax=Figure().subplots()))


def test_coefficients_are_those_of_the_path(path, ax):
    plots.coefficients(path, ax=ax)
    entering = np.flatnonzero(path.coefs.any(axis=0))
    drawn = {tuple(item.get_ydata()) for item in ax.lines if len(item.get_xdata()) == len(path)}
    assert drawn == {tuple(path.coefs[:, j]) for j in entering}
    assert sorted(texts(ax)) == sorted(axes.short(path[6].name(j)) for j in entering)


def test_coefficients_can_be_scaled(data, path, ax):
    scale = np.arange(1.0, 21.0)
    plots.coefficients(path, ax=ax, scale=scale)
    drawn = {tuple(item.get_ydata()) for item in ax.lines if len(item.get_xdata()) == len(path)}
    entering = np.flatnonzero(path.coefs.any(axis=0))
    assert drawn == {tuple(path.coefs[:, j] * scale[j]) for j in entering}


def test_coefficients_of_the_empty_model(path, ax):
    draw(plots.coefficients(bestk.Path((path[0],)), ax=ax))
    assert texts(ax) == []


def model_of_all(path, n_features):
    """A path from the empty model to one with n features, all with the same coefficient."""
    coef = np.zeros_like(path[0].coef)
    coef[:n_features] = 1.0
    return bestk.Path((path[0], replace(path[0], k=n_features, coef=coef)))


def test_labels_do_not_overlap(path):
    ax = Figure(figsize=inline_svg.SIZE, layout="constrained").subplots()
    draw(plots.coefficients(model_of_all(path, 14), ax=ax))
    heights = sorted(text.get_position()[1] * ax.bbox.height for text in ax.texts)
    # The extent of an annotation has its leader in it, that of a text has not.
    tallest = max(Text.get_window_extent(text).height for text in ax.texts)
    assert len(heights) == 14
    assert np.diff(heights).min() >= tallest


def test_many_features_get_a_legend(path, ax):
    draw(plots.coefficients(model_of_all(path, 20), ax=ax))
    assert texts(ax) == []
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(shown) == sorted(axes.short(path[6].name(j)) for j in range(20))


def test_labels_are_moved_as_little_as_needed():
    rng = np.random.default_rng(0)
    for count in range(1, 15):
        heights = np.sort(rng.random(count) ** 3)
        moved = np.array(axes._spread(heights, 1 / 14))
        assert np.all(np.diff(moved) >= 1 / 14 - 1e-12)
        assert moved.min() >= -1e-12
        assert moved.max() <= 1 + 1e-12
    apart = [0.1, 0.5, 0.9]
    assert axes._spread(apart, 0.2) == apart


def test_cross_validation_lines(ax):
    cv = make_cv(3)
    draw(plots.cross_validation(cv, ax=ax))
    for i, (points, _, (bars,)) in enumerate(ax.containers):
        np.testing.assert_allclose(points.get_xdata(), cv.ks, atol=0.2)
        np.testing.assert_array_equal(points.get_ydata(), cv.mean[i])
        half = [(segment[1, 1] - segment[0, 1]) / 2 for segment in bars.get_segments()]
        np.testing.assert_allclose(half, cv.standard_error[i])
    assert line(ax, "smallest error: k = 4").get_ydata()[0] == cv.mean[1, 3]
    assert line(ax, "one-SE rule: k = 2").get_ydata()[0] == cv.mean[0, 1]
    assert ax.get_ylabel() == cv.measure


def test_cross_validation_surface(ax):
    cv = make_cv(9)
    draw(plots.cross_validation(cv, ax=ax))
    (cells,) = ax.collections
    np.testing.assert_array_equal(np.reshape(cells.get_array(), (9, 5)), cv.mean)
    assert line(ax, "smallest error: k = 4").get_xydata().tolist() == [[3, 1]]
    assert line(ax, "one-SE rule: k = 2").get_xydata().tolist() == [[1, 0]]


def test_predictions_against_observations(data, path, ax):
    X, y = data
    plots.predicted(path[6], X, y, ax=ax)
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), np.c_[y, path[6].predict(X)])
    assert ax.get_title() == f"R² = {path[6].r2:.4g}"
    plots.predicted(path[6], X, np.ones(len(y)), ax=ax)
    assert "not defined" in ax.get_title()


@pytest.fixture(scope="module")
def found():
    """Equations of two trajectories, the second a short one."""
    from bestk.sindy import discover

    states = [bestk.datasets.simulate("lorenz", 8.0, noise=0.002)]
    states += [bestk.datasets.simulate("lorenz", 1.0, noise=0.002, seed=2)]
    return discover(states, 0.002, degree=2, names=["$x", "y_1", "z"], alphas=[1e-5, 0.1])


def test_states_with_their_simulation(found, ax):
    plots.states(found, 2, ax)
    np.testing.assert_array_equal(line(ax, "simulation").get_ydata(), found.simulated[0][:, 2])
    dots = line(ax, "data").get_xydata()
    assert len(dots) <= 400
    np.testing.assert_array_equal(dots[:, 1], found.x[0][::10, 2])
    assert line(ax, "follows").get_xdata()[0] == pytest.approx(found.horizon()[0])
    assert found.horizon()[0] < found.t[0][-1]
    assert ax.get_ylabel() == "z"
    draw(plots.states(found, 0, Figure().subplots(), trajectory=1))


def test_a_simulation_that_blows_up_does_not_hide_the_data(found, ax):
    wild = replace(found)
    wild.__dict__["simulated"] = [1e9 * found.x[0], found.x[1]]
    plots.states(wild, 1, ax)
    low, high = ax.get_ylim()
    assert low < found.x[0][:, 1].min() < found.x[0][:, 1].max() < high < 100


def test_scores_are_those_of_the_best_alpha(found, ax):
    plots.scores(found, 1, ax)
    best = found.scores[1].min(axis=0)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.c_[found.ks, best - best.min()])
    assert ax.lines[1].get_xydata().tolist() == [[found.results[1].k, 0.0]]
    assert ax.get_yscale() == "symlog"


def test_scores_that_are_not_known_are_left_out(found, ax):
    cut = np.where(found.ks >= 4, np.inf, found.scores)
    draw(plots.scores(replace(found, scores=cut), 1, ax))
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3]
    nothing = np.full_like(cut, -np.inf)
    draw(plots.scores(replace(found, scores=nothing), 0, Figure().subplots()))


def test_a_picture_of_equations(found, tmp_path):
    file = tmp_path / "found.png"
    left, right = found.plot(file).T
    assert file.read_bytes().startswith(b"\x89PNG")
    assert [ax.get_title(loc="left") for ax in left] == found.equations
    assert [ax.get_title(loc="right") for ax in left] == found.remarks
    assert [ax.get_xlabel() for ax in left] == ["", "", "time"]
    assert right[0].get_title() == "AICc above the best"
    assert plots.discovery(found, figure=Figure(), trajectory=1)[0, 0].get_xlim()[1] < 1.0


def test_at_most_twelve_states_are_drawn(found):
    many = SimpleNamespace(
        states=tuple("abcdefghijklmnop"),
        equations=["a' = 0"] * 16,
        remarks=["proven"] * 16,
        results=found.results[:1] * 16,
        criterion=found.criterion,
        scores=found.scores[[0] * 16],
        ks=found.ks,
        horizons=[1.0],
        simulated=[np.zeros((50, 16))],
        trajectories=SimpleNamespace(x=[np.zeros((50, 16))], t=[np.linspace(0, 1, 50)]),
    )
    assert plots.discovery(many, figure=Figure()).shape == (12, 2)


def test_without_axes_there_is_a_new_figure(stopped, path, found):
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    try:
        for picture in (stopped.plot(), path.plot(criterion="bic"), plots.coefficients(path)):
            assert picture.figure.number in plt.get_fignums()
        assert found.plot()[0, 0].figure.number in plt.get_fignums()
        assert len(plt.get_fignums()) == 4
    finally:
        plt.close("all")


def test_pictures_follow_the_style_and_do_not_change_it(stopped, path):
    with style.context("dark_background"):
        before = dict(mpl.rcParams)
        ax = plots.path(path, ax=plots.gap(stopped, ax=Figure().subplots()))
        assert dict(mpl.rcParams) == before
        assert ax.title.get_color() == "white"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (1e-4, "0.01%"), (0.031901, "3.2%"), (0.5, "50%"), (1.0, "100%"), (np.inf, "∞")],
)
def test_gaps_are_rounded_up(share, text):
    assert plots.percent(share) == text


def test_the_import_is_free_of_matplotlib():
    code = "import bestk.plots, bestk.report, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_matplotlib_says_what_to_install(path, found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert path.is_proven
    assert path[6].status is Status.OPTIMAL
    for picture in (path.plot, path[6].plot, found.plot):
        with pytest.raises(ImportError, match=r'pip install "bestk\[plots\]"'):
            picture()


@pytest.mark.parametrize(
    ("name", "shown"),
    [("sex^2", "sex²"), ("x0^12 x1", "x0¹² x1"), ("a**3", "a³"), ("2^k", "2^k"), ("a^b", "a^b")],
)
def test_powers_are_raised_in_pictures(name, shown):
    assert axes.short(name) == shown
