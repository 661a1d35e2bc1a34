"""The data of the two studies."""

import numpy as np
import pytest

from bestk.datasets import make_dynamics, make_synthetic, simulate


def test_synthetic_has_k_ones_spread_evenly():
    X, y, coef = make_synthetic(50, 23, 5)
    assert X.shape == (50, 23)
    assert y.shape == (50,)
    assert np.flatnonzero(coef).tolist() == [0, 4, 8, 12, 16]
    assert set(coef) == {0.0, 1.0}


@pytest.mark.parametrize("rho", [0.0, 0.5, -0.8, 0.95])
def test_synthetic_columns_are_correlated_by_distance(rho):
    X, _, _ = make_synthetic(40_000, 6, 2, rho=rho)
    expected = rho ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)).astype(float))
    np.testing.assert_allclose(X.T @ X / 40_000, expected, atol=0.03)


@pytest.mark.parametrize("snr", [0.5, 5.0])
def test_synthetic_noise_has_the_ratio_asked_for(snr):
    X, y, coef = make_synthetic(20_000, 10, 3, snr=snr)
    signal = X @ coef
    noise = y - signal
    assert (signal @ signal) / (noise @ noise) == pytest.approx(snr, rel=0.05)


def test_same_seed_same_data_other_seed_other_data():
    a, b, c = (make_synthetic(20, 6, 2, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)
    assert not np.array_equal(a.X, c.X)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"k": 0}, "k must"), ({"k": 11}, "k must"), ({"rho": 1.5}, "rho"), ({"snr": 0.0}, "snr")],
)
def test_synthetic_arguments_are_checked(options, match):
    with pytest.raises(ValueError, match=match):
        make_synthetic(20, 10, **options)


TERMS = {"lorenz": (3, 56, [2, 3, 2]), "hopf": (2, 21, [4, 4]), "mhd": (6, 462, [2] * 6)}


@pytest.mark.parametrize("system", TERMS)
def test_dynamics_have_the_library_of_the_study(system):
    dims, p, sizes = TERMS[system]
    data = make_dynamics(system, 0.2, dt=0.01)
    assert data.X.shape == (20, p)
    assert data.derivatives.shape == (20, dims)
    assert len(data.names) == len(set(data.names)) == p
    assert data.names[: dims + 1] == ["1", *(f"x{i}" for i in range(dims))]
    assert np.count_nonzero(data.coef, axis=1).tolist() == sizes
    np.testing.assert_array_equal(data.X[:, 0], 1.0)


@pytest.mark.parametrize("system", TERMS)
def test_dynamics_obey_their_equations_without_noise(system):
    data = make_dynamics(system, 1.0, noise=0.0, degree=3)
    inner = slice(10, -10)  # the filter is less accurate at the ends
    expected = data.X[inner] @ data.coef.T
    scale = np.abs(expected).max()
    np.testing.assert_allclose(data.derivatives[inner], expected, atol=2e-3 * scale)


def test_library_columns_are_the_monomials_they_are_called():
    data = make_dynamics("hopf", 0.5, degree=3)
    x0, x1 = data.X[:, data.names.index("x0")], data.X[:, data.names.index("x1")]
    np.testing.assert_allclose(data.X[:, data.names.index("x0 x1^2")], x0 * x1**2, rtol=1e-12)
    np.testing.assert_allclose(data.X[:, data.names.index("x0^3")], x0**3, rtol=1e-12)


def test_trials_are_reproducible_and_different():
    a, b, c = (simulate("hopf", 0.1, noise=0.01, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_noise_has_the_size_asked_for():
    clean, noisy = (simulate("hopf", 4.0, noise=noise) for noise in (0.0, 0.1))
    scale = np.sqrt(np.mean(clean**2, axis=0)).mean()
    assert np.std(noisy - clean) == pytest.approx(0.1 * scale, rel=0.05)


def test_dynamics_arguments_are_checked():
    with pytest.raises(ValueError, match="system must be one of"):
        make_dynamics("pendulum", 1.0)
    with pytest.raises(ValueError, match="duration"):
        make_dynamics("hopf", 0.01)
    with pytest.raises(ValueError, match="degree = 1 is too low"):
        make_dynamics("lorenz", 0.1, degree=1)
