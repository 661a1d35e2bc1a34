"""Factors on a device: what is proven is true, and searches come to the same models."""

import numpy as np
import pytest
from helpers.checks import assert_same_run
from helpers.dense import HostDense
from helpers.seeds import seeds

import bestk
from bestk import Advanced
from bestk.form.definiteness import cholesky_factor, is_positive_semidefinite, uniform_charge
from bestk.form.on_device import DeviceWork, dense_work_on, device_in_use


@pytest.fixture
def device(dense):
    return DeviceWork(dense)


def correlations(rng, p):
    """A unit diagonal, and eigenvalues down to nothing."""
    rank = int(rng.integers(1, 2 * p))
    X = rng.standard_normal((rank, p)) + rng.choice([0.0, 3.0]) * rng.standard_normal((rank, 1))
    A = X.T @ X + rng.choice([0.0, 1e-8, 0.1]) * np.eye(p)
    scale = 1.0 / np.sqrt(A.diagonal())
    return A * scale[:, None] * scale


@seeds(300, chunk=30)
def test_what_is_proven_is_true(seed, device, force):
    rng = np.random.default_rng([seed, 21])
    p = int(rng.integers(1, 30))
    A = correlations(rng, p)
    smallest = np.linalg.eigvalsh(A)[0]
    t = rng.uniform(0.0, 1.0, p)
    t *= smallest / t.max() * (1.0 + rng.choice([-1e-3, -1e-9, 0.0, 1e-12, 1e-6, 0.5]))
    force.factors_on_device()
    with dense_work_on(device):
        proven = is_positive_semidefinite(A, t, rng.choice([0.0, 1e-14]))
    if proven:
        assert np.linalg.eigvalsh(A - np.diag(t))[0] >= -1e-15 * p
    if smallest - t.max() > 1e-11 * p:
        assert proven


def test_a_factor_that_is_wrong_proves_nothing(device, force, monkeypatch):
    """Whatever the library returns: the residual is looked at."""
    force.factors_on_device()
    A = correlations(np.random.default_rng(4), 12) + 0.5 * np.eye(12)
    dense = device.dense
    right = dense.cholesky
    for change in (1e-3, 1e-7, np.nan):
        monkeypatch.setattr(dense, "cholesky", lambda Q, change=change: right(Q) * (1.0 + change))
        with dense_work_on(device):
            assert not is_positive_semidefinite(A, np.zeros(12))
    monkeypatch.setattr(dense, "cholesky", right)
    with dense_work_on(device):
        assert is_positive_semidefinite(A, np.zeros(12))
        assert not is_positive_semidefinite(A, np.full(12, np.inf))


@seeds(40, chunk=10)
def test_factors_are_those_of_the_host(seed, device, force):
    rng = np.random.default_rng([seed, 22])
    p = int(rng.integers(1, 30))
    A, t = correlations(rng, p) + 0.1 * np.eye(p), rng.uniform(0.0, 0.05, p)
    here = cholesky_factor(A, t)
    force.factors_on_device()
    with dense_work_on(device):
        there = cholesky_factor(A, t)
        assert cholesky_factor(A, 2.0) is None
        assert uniform_charge(A) > 0.0
    right = rng.standard_normal(p)
    np.testing.assert_allclose(there.solve(right), here.solve(right), rtol=1e-9, atol=1e-12)
    for mine, other in zip(there.inverse_sums(), here.inverse_sums(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9)


@pytest.mark.parametrize("bounds", [None, (-2.0, 2.0)])
def test_searches_come_to_the_same_model(bounds, device, force, monkeypatch):
    X, y, _ = bestk.datasets.make_synthetic(100, 40, k=6, rho=0.9)
    plain = bestk.solve(X, y, 6, alpha=0.1, bounds=bounds)
    force.factors_on_device()
    force.shared_charges()
    used = []
    there = DeviceWork._there
    monkeypatch.setattr(
        DeviceWork, "_there", lambda self, A: (used.append(len(A)), there(self, A))[1]
    )
    monkeypatch.setattr("bestk.search.run.open_dense", lambda name: device.dense)
    monkeypatch.setattr("bestk.search.run.open_device", lambda name: None)
    result = bestk.solve(X, y, 6, alpha=0.1, bounds=bounds, device="cuda")
    assert used
    np.testing.assert_array_equal(result.support, plain.support)
    assert result.status is plain.status
    assert result.certificate.verify(X, y)
    assert device_in_use() is None


def test_products_of_wide_data(device, force, monkeypatch):
    X, y, _ = bestk.datasets.make_synthetic(30, 60, k=4, rho=0.3)
    force.wide_search()
    question = {"alpha": 1.0, "bounds": (-2.0, 2.0), "advanced": Advanced(enumeration=False)}
    plain = bestk.solve(X, y, 4, **question)
    force.factors_on_device()
    used = []
    times = DeviceWork.times
    monkeypatch.setattr(
        DeviceWork, "times", lambda self, *a: (used.append(len(a[0])), times(self, *a))[1]
    )
    monkeypatch.setattr("bestk.search.run.open_dense", lambda name: device.dense)
    monkeypatch.setattr("bestk.search.run.open_device", lambda name: None)
    there = bestk.solve(X, y, 4, **question, device="cuda")
    assert used
    np.testing.assert_array_equal(there.support, plain.support)
    assert there.lower_bound == pytest.approx(plain.lower_bound)
    assert there.certificate.verify(X, y)


@pytest.mark.parametrize("what", ["upload", "cholesky"])
def test_without_memory_the_cpu_goes_on(what, force, monkeypatch):
    X, y, _ = bestk.datasets.make_synthetic(100, 40, k=6, rho=0.9)
    plain = bestk.solve(X, y, 6, alpha=0.1, n_threads=1)
    force.factors_on_device()
    dense = HostDense()

    def no_room(*arguments):
        raise MemoryError

    monkeypatch.setattr(dense, what, no_room)
    monkeypatch.setattr("bestk.search.run.open_dense", lambda name: dense)
    monkeypatch.setattr("bestk.search.run.open_device", lambda name: None)
    result = bestk.solve(X, y, 6, alpha=0.1, n_threads=1, device="cuda")
    assert_same_run(result, plain)
    assert result.engine == "1 thread (the device has no memory for large matrices)"
