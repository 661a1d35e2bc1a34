"""Equations with control inputs: known forces in the terms, without equations of their own."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp

from bestk.sindy import discover


def driven(start, phase: float):
    """A pendulum-like pair of states, driven by u = sin(1.7 t + phase)."""
    t = np.linspace(0.0, 12.0, 1500)

    def force(time):
        return np.sin(1.7 * time + phase)

    def rhs(time, x):
        return [x[1], -1.5 * x[0] - 0.2 * x[1] + 0.8 * force(time)]

    x = solve_ivp(rhs, (0.0, 12.0), start, t_eval=t, rtol=1e-10, atol=1e-10).y.T
    return t, x, force(t)


@pytest.fixture(scope="module")
def found():
    t, x, u = driven([1.0, 0.0], 0.0)
    return discover(x, t, u=u, degree=2, names=["x", "v"], control_names=["f"])


def test_the_force_is_found_where_it_acts(found):
    first, second = found.results
    assert first.names == ["v"]
    assert set(second.names) == {"x", "v", "f"}
    position = found.terms.index("f")
    assert second.coef[position] == pytest.approx(0.8, rel=1e-3)
    assert found.is_proven


def test_simulations_know_the_force(found):
    simulated = found.simulate()
    assert np.abs(simulated - found.x).max() < 1e-2
    assert found.horizon() == pytest.approx(12.0)


def test_an_experiment_that_is_not_among_the_data(found):
    """The same motion, whether the force is a function or rows; and other forces move it."""
    t, x, u = driven([0.3, -0.5], 1.0)
    by_rows = found.simulate(t, start=x[0], u=u)
    by_function = found.simulate(t, start=x[0], u=lambda time: np.sin(1.7 * time + 1.0))
    assert np.abs(by_rows - x).max() < 1e-2
    assert np.abs(by_function - x).max() < 1e-2
    assert np.abs(found.simulate(t, start=x[0], u=0 * u) - x).max() > 0.1
    assert found.simulate(start=x[0], u=u).shape == x.shape


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"u": np.ones(1500)}, "start"),
        ({"start": [1.0, 0.0]}, "pass u, a function"),
        ({"start": [1.0], "u": np.ones(1500)}, "start"),
        ({"start": [1.0, 0.0], "u": np.ones(9)}, "u has 9 rows for 1,500 times"),
        ({"start": [1.0, 0.0], "u": np.ones((1500, 2))}, "u gives 2 control inputs"),
        ({"start": [1.0, 0.0], "u": lambda t: [1.0, 2.0]}, "u gives 2 control inputs"),
    ],
)
def test_what_a_new_experiment_needs(found, options, words):
    with pytest.raises(ValueError, match=words):
        found.simulate(**options)


def test_a_new_experiment_without_control():
    t, x, _ = driven([1.0, 0.0], 0.0)
    found = discover(x, t, degree=1)
    assert found.simulate(t, start=[0.5, 0.5]).shape == x.shape
    with pytest.raises(ValueError, match="leave u out"):
        found.simulate(t, start=[0.5, 0.5], u=t)


def test_several_trajectories_with_forces_of_their_own():
    cases = [driven([1.0, 0.0], 0.0), driven([0.0, -1.0], 1.0)]
    t, x, u = (list(part) for part in zip(*cases, strict=True))
    frames = [pd.DataFrame({"push": each}) for each in u]
    found = discover(x, t, u=frames, degree=1)
    assert found.control_names == ("push",)
    assert found.terms == ("1", "x0", "x1", "push")
    assert len(found.simulate()) == 2
    assert "push" in found.equations[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"u": np.ones(5)}, "u has 5 rows, but the trajectory has 1,500"),
        ({"u": np.ones(1500), "control_names": ["x0"]}, "names a state and a control input"),
        ({"u": np.ones(1500), "control_names": ["a", "b"]}, "must be 1 string, one per control"),
        ({"control_names": ["a"]}, "no control inputs"),
        ({"u": np.full(1500, np.nan)}, "u"),
    ],
)
def test_bad_control_inputs_are_named(options, words):
    t, x, _ = driven([1.0, 0.0], 0.0)
    with pytest.raises(ValueError, match=words):
        discover(x, t, **options)
