"""Derivatives of measured states: even and uneven times, with noise and without."""

import numpy as np
import pysindy as ps
import pytest
from helpers.trajectories import STEP, T, oscillator, supports, table

from bestk.datasets import simulate
from bestk.sindy import discover
from bestk.sindy.differentiation import SavitzkyGolayDifference, is_clean, slopes


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
