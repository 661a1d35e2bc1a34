"""Simulations of equations that were found: where they end, and how long they follow the data."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.trajectories import oscillator, supports

from bestk.sindy import discover
from bestk.sindy.simulation import integrate


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


@pytest.mark.parametrize("t", [[0.0], [1.0, 0.0], np.ones((2, 2))])
def test_times_of_a_simulation_increase(found, t):
    with pytest.raises(ValueError, match="t must be at least two times that increase"):
        found.simulate(t)
