"""discover: the choice it says it makes, the equations of OKRidge, errors that say what to do."""

import pickle
import re
import runpy
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pysindy as ps
import pytest
from scipy.integrate import solve_ivp
from sklearn.exceptions import ConvergenceWarning

from bestk import Status
from bestk.datasets import EQUATIONS, simulate
from bestk.sindy import OKRidge, discover
from bestk.sindy.differentiation import SavitzkyGolayDifference, is_clean, slopes
from bestk.sindy.discovery import equation, margin, next_best
from bestk.sindy.search import score_of
from bestk.sindy.simulation import integrate

STEP = 0.002
KS, ALPHAS = range(1, 5), (1e-5, 0.05)


@pytest.fixture(scope="module")
def states():
    return simulate("lorenz", 3.0, noise=0.002)


@pytest.fixture(scope="module")
def found(states):
    return discover(states, STEP, degree=3, names=["x", "y", "z"], ks=KS, alphas=ALPHAS)


def oscillator(t, decay=0.1, start=(2.0, 0.0)):
    """x' = -decay x + 2 y, y' = -2 x - decay y, exactly."""
    rotated = np.exp((-decay - 2j) * (t - t[0])) * (start[0] + 1j * start[1])
    return np.c_[rotated.real, rotated.imag]


def supports(found):
    return [set(result.names) for result in found.results]


def lorenz_terms():
    return [{"x", "y"}, {"x", "y", "x z"}, {"z", "x y"}]


def pipeline(states):
    """(terms, derivatives) by other means than PySINDy's."""
    from scipy.signal import savgol_filter

    smooth = savgol_filter(states, 9, 3, axis=0)
    derivatives = np.gradient(smooth, STEP, axis=0, edge_order=2)
    columns = [np.ones(len(states))]
    for degree in (1, 2, 3):
        for powers in sorted(
            {p for p in np.ndindex(degree + 1, degree + 1, degree + 1) if sum(p) == degree},
            reverse=True,
        ):
            columns.append(np.prod(states ** np.array(powers), axis=1))
    return np.column_stack(columns), derivatives


def ridge(X, y, support, alpha):
    M = np.vstack([X[:, support], np.sqrt(alpha) * np.eye(len(support))])
    return np.linalg.lstsq(M, np.append(y, np.zeros(len(support))), rcond=None)[0]


def test_the_choice_has_the_least_score_on_rows_it_has_not_seen(states, found):
    """Scores are recomputed from the supports alone, on another way to terms and derivatives."""
    (X, Y), (held_X, held_Y) = pipeline(states[:1000]), pipeline(states[1000:])
    for i, grid in enumerate(found.grids):
        scores = np.empty((len(ALPHAS), len(KS)))
        for a, (alpha, path) in enumerate(grid.items()):
            for j, result in enumerate(path.results):
                b = ridge(X, Y[:, i], result.support, alpha)
                residual = held_Y[:, i] - held_X[:, result.support] @ b
                m, K = len(residual), len(result.support)
                scores[a, j] = 2 * K + m * np.log(residual @ residual / m)
                scores[a, j] += 2 * (K + 1) * (K + 2) / max(m - K - 2, 1)
        np.testing.assert_allclose(found.scores[i], scores, rtol=1e-6)
        a, j = np.unravel_index(np.argmin(scores), scores.shape)
        assert (found.results[i].alpha, found.results[i].k) == (ALPHAS[a], KS[j])


def test_equations_are_those_of_the_optimizer_on_all_rows(states, found):
    X, Y = pipeline(states)
    ks, alphas = [r.k for r in found.results], [r.alpha for r in found.results]
    optimizer = OKRidge(k=ks, alpha=alphas, gap_tol=0.0).fit(X, Y)
    np.testing.assert_allclose(found.coef, optimizer.coef_, rtol=1e-6)
    np.testing.assert_array_equal(found.coef, found.model.coefficients())
    assert found.results is found.model.optimizer.results_
    assert found.terms == tuple(found.model.get_feature_names())
    for ours, theirs in zip(found.results, optimizer.results_, strict=True):
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-9)
        assert ours.n_samples == len(states)
    error = np.sqrt(np.mean((Y - X @ found.coef.T) ** 2, axis=0) / np.mean(Y**2, axis=0))
    np.testing.assert_allclose(found.derivative_errors, error, rtol=1e-6)


def test_lorenz(found):
    assert supports(found) == lorenz_terms()
    assert found.is_proven
    assert found.is_grid_proven
    assert found.share_proven == 1.0
    assert found.equations[0] == f"x' = {found.coef[0, 1]:.4g} x + {found.coef[0, 2]:.4g} y"
    assert found.horizon() == pytest.approx(3.0, abs=0.01)
    assert all(result.gap == 0.0 for result in found.results)


def test_hopf():
    states = simulate("hopf", 24.0, noise=0.002)
    found = discover(states, STEP, degree=3, names=["x", "y"], alphas=[1e-5])
    assert supports(found) == [{"x", "y", "x^3", "x y^2"}, {"x", "y", "x^2 y", "y^3"}]
    true = [value for row in EQUATIONS["hopf"] for value in row.values()]
    np.testing.assert_allclose(found.coef[found.coef != 0], true, atol=0.05)


def test_runners_up_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    t = np.arange(0, 4, 0.02)
    x = oscillator(t) + 0.01 * rng.standard_normal((len(t), 2))
    found = discover(x, t, degree=2, ks=[2], alphas=[0.1])
    problems = found.model.optimizer.problems_
    for problem, result, other in zip(problems, found.results, found.runners_up, strict=True):
        losses = {
            pair: problem.fit(np.array(pair))[1]
            for pair in combinations(range(len(found.terms)), 2)
        }
        winner = min(losses, key=losses.get)
        assert winner == tuple(result.support)
        losses.pop(winner)
        assert other.objective == pytest.approx(min(losses.values()), rel=1e-9)
        assert result.objective <= other.lower_bound * (1 + 1e-12)
        assert other.status is Status.OPTIMAL
        worse = other.objective / result.objective - 1
        assert margin(result, other) == pytest.approx(worse, rel=1e-6)


def test_ties_take_fewer_terms_then_the_first_alpha():
    """A constant state has zero derivatives: every model of the grid is the empty one."""
    t = np.arange(0, 3, 0.02)
    x = np.c_[oscillator(t), np.full(len(t), 0.1)]
    found = discover(x, t, degree=1, ks=[1, 2], alphas=[0.01, 0.1])
    assert found.equations[2] == "x2' = 0"
    assert (found.results[2].k, found.results[2].alpha) == (1, 0.01)
    assert found.runners_up[2] is None
    assert found.margins[2] == np.inf
    assert "none" in found.summary()
    assert found.horizon() == pytest.approx(t[-1])


def test_data_frames_steps_and_times_are_the_same(states, found):
    frame = pd.DataFrame(states, columns=["x", "y", "z"])
    times = 5.0 + STEP * np.arange(len(states))
    for x, t in [(pl.from_pandas(frame), STEP), (frame, times), (frame, pd.Series(times))]:
        other = discover(x, t, degree=3, ks=KS, alphas=ALPHAS)
        assert other.states == ("x", "y", "z")
        assert other.equations == found.equations
        np.testing.assert_allclose(other.coef, found.coef, rtol=1e-6)
        assert other.horizon() == pytest.approx(found.horizon())


def test_several_trajectories(states):
    other = simulate("lorenz", 2.0, noise=0.002, seed=4)
    options = {"degree": 2, "ks": [2, 3], "alphas": [1e-3], "names": ["x", "y", "z"]}
    found = discover([states, other], [STEP * np.arange(len(states)), STEP], **options)
    assert supports(found) == lorenz_terms()
    assert found.results[0].n_samples == len(states) + len(other)
    assert found.grids[0][1e-3][2].n_samples == 1000 + 667
    simulated = found.simulate()
    assert [part.shape for part in simulated] == [states.shape, other.shape]
    for part, data in zip(simulated, (states, other), strict=True):
        np.testing.assert_array_equal(part[0], data[0])
    assert found.horizon() == pytest.approx([3.0, 2.0], abs=0.01)
    shared = discover([states, states], STEP, **options)
    np.testing.assert_allclose(shared.coef, discover(states, STEP, **options).coef, rtol=1e-3)


def test_uneven_times():
    t = np.unique(np.random.default_rng(1).uniform(0, 6, 600)) + 1e6
    rng = np.random.default_rng(2)
    x = oscillator(t) + 1e-4 * rng.standard_normal((len(t), 2))
    found = discover(x, t, degree=2, ks=[1, 2, 3], alphas=[1e-5])
    assert supports(found) == [{"x0", "x1"}, {"x0", "x1"}]
    np.testing.assert_allclose(found.coef[:, 1:3], [[-0.1, 2.0], [-2.0, -0.1]], atol=0.02)


def test_slopes_are_exact_for_cubics_at_any_times():
    t = np.sort(np.random.default_rng(0).uniform(0, 2, 40))
    powers = t[:, None] ** np.arange(4)
    expected = np.c_[np.zeros(40), np.ones(40), 2 * t, 3 * t**2]
    np.testing.assert_allclose(slopes(powers, t), expected, atol=1e-8)


def test_the_default_is_the_smoothed_difference_of_pysindy(states):
    theirs = ps.SmoothedFiniteDifference(smoother_kws={"window_length": 9, "polyorder": 3})
    ours = SavitzkyGolayDifference()
    np.testing.assert_array_equal(ours(states, STEP), theirs(states, STEP))
    np.testing.assert_array_equal(ours.smoothed_x_, states)


def pendulum():
    t = np.arange(0, 6, 0.02)
    solution = solve_ivp(
        lambda t, x: [x[1], -np.sin(x[0])], (0, 6), [2.5, 0], t_eval=t, rtol=1e-9, atol=1e-9
    )
    return solution.y.T, t


def test_other_libraries_and_methods():
    x, t = pendulum()
    library = ps.FourierLibrary(n_frequencies=1) + ps.PolynomialLibrary(degree=1)
    method = ps.FiniteDifference(order=4, drop_endpoints=True)
    found = discover(
        x, t, library=library, differentiation=method, names=["q", "p"], ks=[1, 2], alphas=[1e-5]
    )
    assert found.equations == ["q' = 1 p", "p' = -1 sin(1 q)"]
    assert found.results[0].n_samples == len(t) - 4
    assert not hasattr(library, "n_features_in_")
    assert found.model.feature_library is not library
    np.testing.assert_allclose(found.simulate(t[:60]), x[:60], atol=1e-3)


def test_sizes_end_at_the_number_of_terms():
    t = np.arange(0, 3, 0.02)
    found = discover(oscillator(t), t, degree=1, ks=range(1, 9), alphas=[1e-5])
    assert found.ks.tolist() == [1, 2, 3]
    assert found.scores.shape == (2, 1, 3)


def test_parallel_equations_change_nothing(states, found):
    options = {"degree": 3, "names": ["x", "y", "z"], "ks": KS, "alphas": ALPHAS}
    other = discover(states, STEP, n_jobs=2, **options)
    np.testing.assert_array_equal(other.coef, found.coef)
    np.testing.assert_array_equal(other.scores, found.scores)


def test_a_blow_up_ends_a_simulation_cleanly():
    """x' = x^2 from 1 is 1 / (1 - t)."""
    t = np.linspace(0, 0.9, 300)
    found = discover(1 / (1 - t)[:, None], t, degree=2, ks=[1], alphas=[1e-5], names=["x"])
    assert supports(found) == [{"x^2"}]
    longer = np.linspace(0, 3, 301)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulated = found.simulate(longer)
    assert np.isfinite(simulated[:90]).all()
    assert np.isnan(simulated[105:]).all()
    np.testing.assert_allclose(simulated[:80, 0], 1 / (1 - longer[:80]), rtol=0.02)


def test_a_simulation_that_creeps_is_given_up():
    t = np.linspace(0, 1, 11)
    states = integrate(lambda t, x: np.array([1.0]), np.zeros(1), t, scale=1.0, time_limit=0.0)
    assert states[0, 0] == 0.0
    assert np.isnan(states[1:]).all()


def test_the_horizon_ends_where_simulation_and_data_part():
    t = np.arange(0, 10, 0.01)
    x = oscillator(t)
    found = discover(x, t, degree=1, ks=[2], alphas=[1e-5])
    assert found.horizon() == pytest.approx(t[-1])
    jumps = np.where(t[:, None] >= 5.995, x + 2 * x.std(), x)
    assert replace(found, x=jumps).horizon() == pytest.approx(5.99)
    assert replace(found, x=jumps).horizon(tolerance=100.0) == pytest.approx(t[-1])


class Impatient:
    """Ctrl-C at the n-th update."""

    def __init__(self, updates):
        self.left = updates

    def update(self, snapshot):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def close(self):
        pass


def test_an_interruption_gives_what_there_is(states):
    with pytest.warns(ConvergenceWarning, match="left for"):
        found = discover(states, STEP, degree=5, alphas=[1e-5], progress=Impatient(1))
    assert found.grids[0][1e-5].results[-1].status is Status.INTERRUPTED
    reached = len(found.grids[0][1e-5])
    assert reached < 5
    assert np.isinf(found.scores[0, 0, reached:]).all()
    assert np.isfinite(found.scores[1:]).all()
    assert found.share_proven < 1.0
    assert not found.is_proven
    for result in found.searches:
        assert (result.status is Status.OPTIMAL) == (result.gap == 0.0)
        assert result.lower_bound <= result.objective
    assert "not proven" in str(found)


def test_a_time_limit_leaves_gaps_and_says_so(states):
    with pytest.warns(ConvergenceWarning, match=r"gap of \d+\.\d\d% left") as caught:
        found = discover(states, STEP, degree=5, ks=[3], alphas=[1e-5], time_limit=0.0)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert {result.status for result in found.results} == {Status.TIME_LIMIT}
    assert not found.is_proven
    assert "time limit" in found.summary()
    assert Status.TIME_LIMIT.advice in found.summary()
    assert all("gap" in remark for remark in found.remarks)
    assert (found.margins >= 0).all()


def test_summary_and_pickle(found):
    text = str(found)
    for line in found.equations:
        assert line in text
    assert "Every equation is proven the best of its size." in text
    assert "24 models, 24 of them proven" in text
    copy = pickle.loads(pickle.dumps(found))
    assert str(copy) == text


def test_equations_as_text():
    terms = ["1", "x", "x y"]
    assert equation("x", terms, np.array([-2.0, 0.0, 0.5])) == "x' = -2 + 0.5 x y"
    assert equation("x", terms, np.array([0.0, 1.23456, -1.0])) == "x' = 1.235 x - 1 x y"
    assert equation("y", terms, np.zeros(3)) == "y' = 0"


@pytest.mark.parametrize(
    ("excess", "changes", "text"),
    [
        (0.0689999, {}, "6.89% worse"),
        (0.5, {"status": Status.TIME_LIMIT, "gap": 0.1}, "at least 50% worse"),
        (0.5, {"gap": 1e-5}, "at least 50% worse"),
        (19.999, {}, "20.9 times the objective"),
        (-0.1, {"status": Status.TIME_LIMIT, "gap": 0.1}, "may be as good"),
        (0.5, {"status": Status.INTERRUPTED, "gap": 0.1}, "may be as good"),
    ],
)
def test_distances_are_rounded_down_and_claim_no_more_than_is_proven(found, excess, changes, text):
    result = replace(found.results[0], objective=1.0)
    other = replace(found.runners_up[0], lower_bound=1.0 + excess, **changes)
    assert next_best(result, other) == text


def test_a_tolerance_is_part_of_what_is_proven(found):
    loose = replace(found.results[0], gap=1.2e-3)
    head, _ = replace(found, results=[loose, *found.results[1:]]).verdict
    assert head == "Every equation is proven the best of its size, up to a gap of 0.12%."


def test_aicc_of_few_rows():
    assert score_of("aicc", rss=4.0, m=4, size=3, p=9) == pytest.approx(6 + 0 + 2 * 4 * 5)
    assert score_of("aicc", rss=0.0, m=4, size=1, p=9) == -np.inf


def test_other_criteria_ask_for_more_evidence(states):
    assert score_of("bic", rss=20.0, m=20, size=3, p=9) == pytest.approx(3 * np.log(20))
    ebic = 3 * np.log(20) + 2 * np.log(84)
    assert score_of("ebic", rss=20.0, m=20, size=3, p=9) == pytest.approx(ebic)
    sizes = {}
    for criterion in ("aicc", "bic", "ebic"):
        found = discover(states[:700], 0.002, degree=3, alphas=[1e-5], criterion=criterion)
        assert found.criterion == criterion
        sizes[criterion] = [len(result.support) for result in found.results]
    assert sizes["ebic"] <= sizes["bic"] <= sizes["aicc"]
    with pytest.raises(ValueError, match="criterion"):
        discover(states, 0.002, criterion="aic")


def test_the_demo_finds_the_lorenz_equations(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(r"x' = -9\.99\d x \+ 9\.99\d y +x' = -10 x \+ 10 y", printed)
    assert "Every equation is proven the best of its size." in printed
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def table(n=60, d=2):
    return np.random.default_rng(0).standard_normal((n, d)).cumsum(axis=0)


T = np.arange(60.0)


@pytest.mark.parametrize(
    ("x", "t", "options", "error", "match"),
    [
        (T, 1.0, {}, ValueError, r"x must have two dimensions.*reshape\(-1, 1\)"),
        (np.ones((3, 4, 5)), 1.0, {}, ValueError, "x must have two dimensions"),
        ([[1, 2], [3]], 1.0, {}, TypeError, "x cannot be read as an array of numbers"),
        (table() * 1j, 1.0, {}, TypeError, "x is complex"),
        (np.where(T[:, None] == 7, np.nan, table()), 1.0, {}, ValueError, "x contains NaN"),
        (table(d=0), 1.0, {}, ValueError, "x has no columns"),
        ([], 1.0, {}, ValueError, "x is an empty list"),
        ([table(), table(d=3)], 1.0, {}, ValueError, r"x\[1\] has 3 states, but x\[0\] has 2"),
        (table(), None, {}, TypeError, "t is missing"),
        (table(), 0.0, {}, ValueError, "t is the step between rows; it must be positive"),
        (table(), -1.0, {}, ValueError, "t must be a finite number >= 0"),
        (table(), "now", {}, TypeError, "t must be a number"),
        (table(), T[:-1], {}, ValueError, r"t has shape \(59,\), but the trajectory has 60 rows"),
        (table(), np.where(T == 5, np.nan, T), {}, ValueError, "t contains NaN"),
        (table(), np.where(T == 5, 4, T), {}, ValueError, r"t must increase, but t\[5\] = 4"),
        (table(), T * 1j, {}, TypeError, "t is complex"),
        ([table()] * 2, [1.0], {}, ValueError, "t has 1 entries for 2 trajectories"),
        ([table()] * 2, [1.0, T[:3]], {}, ValueError, r"t\[1\] has shape"),
        (table(), 1.0, {"names": ["a"]}, ValueError, "names must be 2 strings"),
        (table(), 1.0, {"names": ["a", "a"]}, ValueError, "names must be distinct"),
        (table(), 1.0, {"names": [1, 2]}, ValueError, "names must be 2 strings"),
        (table(), 1.0, {"degree": 0}, ValueError, "degree must be at least 1"),
        (table(), 1.0, {"degree": 2.5}, TypeError, "degree must be a whole number"),
        (table(), 1.0, {"validation": 0.0}, ValueError, "validation must be a share between"),
        (table(), 1.0, {"validation": 1}, ValueError, "validation must be a share between"),
        (table(), 1.0, {"validation": "a"}, TypeError, "validation must be a number"),
        (table(), 1.0, {"ks": 3}, TypeError, "ks must be several sizes"),
        (table(), 1.0, {"ks": []}, ValueError, "ks must hold at least one"),
        (table(), 1.0, {"alphas": [-1]}, ValueError, "each of alphas"),
        (table(), 1.0, {"gap_tol": -1}, ValueError, "gap_tol"),
        (table(), 1.0, {"time_limit": "x"}, TypeError, "time_limit"),
        (table(), 1.0, {"library": "cubic"}, TypeError, "library must be a PySINDy"),
        (table(), 1.0, {"differentiation": np.gradient}, TypeError, "differentiation must be"),
        (table(20), 1.0, {}, ValueError, "x has 20 rows, 13 to fit and 7 for validation"),
        ([table(), table(5)], 1.0, {}, ValueError, r"x\[1\] has 5 rows, 3 to fit and 2 for"),
        (table() * 1e80, 1.0, {}, ValueError, "library has terms that are NaN or infinite"),
    ],
)
def test_bad_input_is_named(x, t, options, error, match):
    with pytest.raises(error, match=match):
        discover(x, t, **options)


def test_frames_of_other_columns_are_an_error():
    frames = [pd.DataFrame(table(), columns=names) for names in (["a", "b"], ["b", "a"])]
    with pytest.raises(ValueError, match="different column names"):
        discover(frames, 1.0)


def test_libraries_of_fields_are_an_error():
    x = np.linspace(0, 1, 8)
    library = ps.PDELibrary(ps.PolynomialLibrary(degree=1), derivative_order=1, spatial_grid=x)
    with pytest.raises(TypeError, match=r"optimizer=bestk\.sindy\.OKRidge"):
        discover(table(), 1.0, library=library)


@pytest.mark.parametrize(
    "method",
    [
        ps.SmoothedFiniteDifference(),
        ps.FiniteDifference(is_uniform=True),
        ps.SpectralDerivative(),
        ps.SINDyDerivative(kind="finite_difference", k=1),
    ],
)
def test_methods_that_assume_even_steps_do_not_get_others(method):
    with pytest.raises(ValueError, match="t has uneven steps, but differentiation="):
        discover(table(), T**1.1, differentiation=method)


@pytest.mark.parametrize("t", [[0.0], [1.0, 0.0], np.ones((2, 2))])
def test_times_of_a_simulation_increase(found, t):
    with pytest.raises(ValueError, match="t must be at least two times that increase"):
        found.simulate(t)


def test_ctrl_c_spares_the_other_equations_of_the_optimizer(states, monkeypatch):
    """After the first equation was interrupted, the others only take their warm start."""
    from bestk.search import tree

    calls = []
    report = tree.Tree._report

    def interrupted(self):
        calls.append(self.settings.time_limit)
        report(self)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(tree.Tree, "_report", interrupted)
    X, Y = pipeline(states)
    with pytest.warns(ConvergenceWarning):
        optimizer = OKRidge(k=4, gap_tol=0.0).fit(X, Y)
    assert optimizer.results_[0].status is Status.INTERRUPTED
    assert set(calls[1:]) == {0.0}
    assert np.count_nonzero(optimizer.coef_, axis=1).tolist() == [4, 4, 4]


def test_states_without_noise_are_not_smoothed():
    """Errors of low-order differences would get terms of their own."""
    clean = simulate("lorenz", 3.0)
    found = discover(clean, 0.002, degree=3, ks=range(1, 5), alphas=[1e-5])
    assert [set(result.names) for result in found.results] == [
        {"x0", "x1"},
        {"x0", "x1", "x0 x2"},
        {"x2", "x0 x1"},
    ]
    assert found.coef.max() == pytest.approx(28.0, abs=1e-5)
    assert is_clean(clean)
    assert not is_clean(clean + 1e-4 * np.random.default_rng(0).standard_normal(clean.shape))
