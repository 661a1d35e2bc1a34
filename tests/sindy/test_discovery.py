"""discover: the choice it says it makes, and the equations of OKRidge."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pysindy as ps
import pytest
from helpers.trajectories import ALPHAS, KS, STEP, lorenz_terms, oscillator, pipeline, supports
from scipy.integrate import solve_ivp

from bestk import Status
from bestk.datasets import EQUATIONS, simulate
from bestk.sindy import OKRidge, discover
from bestk.sindy.discovery import margin
from bestk.sindy.scoring import rows_worth


def ridge(X, y, support, alpha):
    M = np.vstack([X[:, support], np.sqrt(alpha) * np.eye(len(support))])
    return np.linalg.lstsq(M, np.append(y, np.zeros(len(support))), rcond=None)[0]


def test_the_choice_has_the_least_score_on_rows_it_has_not_seen(states, found):
    """Scores are recomputed from the supports alone, on another way to terms and derivatives."""
    (X, Y), (held_X, held_Y) = pipeline(states[:1000]), pipeline(states[1000:])
    for i, grid in enumerate(found.grids):
        residuals = {}
        for a, (alpha, path) in enumerate(grid.items()):
            for j, result in enumerate(path.results):
                b = ridge(X, Y[:, i], result.support, alpha)
                residuals[a, j] = held_Y[:, i] - held_X[:, result.support] @ b
        best = min(residuals.values(), key=np.linalg.norm)
        m, scores = rows_worth(best, [len(best)]), np.empty((len(ALPHAS), len(KS)))
        for (a, j), residual in residuals.items():
            K = len(list(grid.values())[a].results[j].support)
            scores[a, j] = 2 * K + m * np.log(np.mean(residual**2))
            scores[a, j] += 2 * (K + 1) * (K + 2) / max(m - K - 2, 1)
        np.testing.assert_allclose(found.scores[i], scores, rtol=1e-6)
        a, j = np.unravel_index(np.argmin(scores), scores.shape)
        assert (found.results[i].alpha, found.results[i].k) == (found.alphas[a], KS[j])


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
    assert (found.results[2].k, found.results[2].alpha) == (1, found.alphas[0])
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
