"""Sums of products on a device are those of the host, up to rounding, however rows arrive."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.dense import HostDense
from helpers.seeds import seeds

import bestk
from bestk.base.device.driver import DeviceUnavailable
from bestk.base.fingerprint import rows_digest
from bestk.problem import regression
from bestk.problem.regression import Regression
from bestk.problem.rows import moments_and_digest, moments_of


def data(seed):
    rng = np.random.default_rng([seed, 12])
    n, p = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-3, 3, p)
    X += rng.choice([0.0, 1.0, 100.0]) * rng.standard_normal(p)
    X = X.astype(rng.choice([np.float64, np.float32]))
    X = np.asfortranarray(X) if rng.random() < 0.3 else X
    y = X @ rng.standard_normal(p) + rng.standard_normal(n) + rng.choice([0.0, 50.0])
    weight = rng.uniform(0.0, 2.0, n) if rng.random() < 0.4 else None
    return X, y, weight, bool(rng.random() < 0.5)


def assert_same_sums(ours, theirs):
    """Entry by entry, up to the errors that both state."""
    scale = np.sqrt(theirs.squares)
    error = 4.0 * (ours.error + theirs.error)
    assert np.isfinite(error)
    assert (np.abs(ours.gram - theirs.gram) <= error * np.outer(scale, scale) + 1e-300).all()
    np.testing.assert_array_equal(ours.gram, ours.gram.T)
    root = np.sqrt(theirs.yy)
    assert (np.abs(ours.moment - theirs.moment) <= error * scale * root + 1e-300).all()
    assert ours.yy == pytest.approx(theirs.yy, rel=error)
    assert (ours.n_rows, ours.weight) == (theirs.n_rows, pytest.approx(theirs.weight))
    np.testing.assert_allclose(ours.shift, theirs.shift, rtol=1e-9, atol=1e-9)


@seeds(200, chunk=20)
def test_sums_of_rows(seed, dense):
    X, y, weight, intercept = data(seed)
    X[0, 0] = -0.0
    ours, digest = moments_and_digest(X, y, weight, intercept, dense=dense)
    assert digest == rows_digest(X, y, weight)
    theirs = moments_of(X, y, weight, intercept)
    if np.isfinite(ours.error) and np.isfinite(theirs.error):
        assert_same_sums(ours, theirs)


@seeds(40, chunk=10)
def test_sums_of_batches(seed, dense, monkeypatch, force):
    force.sums_on_device()
    X, y, weight, intercept = data(seed)
    cuts = [0, len(y) // 3, len(y) // 2, len(y)]
    pairs = [(a, b) for a, b in pairwise(cuts) if a < b]
    rows = [(X[a:b], y[a:b], *([] if weight is None else [weight[a:b]])) for a, b in pairs]
    monkeypatch.setattr(regression, "open_dense", lambda name: dense)
    ours = Regression.from_batches(rows, fit_intercept=intercept, device="cuda")
    theirs = Regression.from_batches(rows, fit_intercept=intercept)
    assert ours.digest == theirs.digest
    assert_same_sums(ours.moments, theirs.moments)


def test_large_data_go_to_the_device_and_small_ones_do_not(force, monkeypatch):
    dense = HostDense()
    monkeypatch.setattr(regression, "open_dense", lambda name: dense)
    X, y, _ = bestk.datasets.make_synthetic(80, 12, k=3, rho=0.5)
    Regression.from_data(X, y, device="cuda")
    assert dense.n_rows == 0
    force.sums_on_device()
    there = Regression.from_data(X, y, device="cuda", fit_intercept=True)
    assert dense.n_rows == 80
    here = Regression.from_data(X, y, fit_intercept=True)
    for k in (1, 3):
        support = np.arange(k)
        assert there.fit(support)[1] == pytest.approx(here.fit(support)[1])
    assert there.digest == here.digest


def test_extreme_columns_are_scaled_there_as_well(dense):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3)) * np.array([1e-170, 1.0, 1e170])
    y = rng.standard_normal(30)
    ours, _ = moments_and_digest(X, y, None, False, dense=dense)
    assert_same_sums(ours, moments_of(X, y, None, False))


def test_rows_far_from_the_first_ones_keep_their_digits(dense):
    """The origin is guessed from rows of the whole table, not from its beginning."""
    n = 20_000
    X = np.linspace(0.0, 1e4, n)[:, None] + np.random.default_rng(1).standard_normal((n, 2))
    y = X[:, 0].copy()
    ours, _ = moments_and_digest(X, y, None, True, dense=dense)
    assert ours.error < 1e-9
    assert_same_sums(ours, moments_of(X, y, None, True))


class OnDevice:
    """What CuPy and PyTorch call an array that is not in the memory of the host."""

    @property
    def __cuda_array_interface__(self):
        return {"version": 3}


def test_arrays_on_a_device_need_its_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(DeviceUnavailable, match=r"X is on a GPU.*bestk\[gpu\]"):
        bestk.solve(OnDevice(), np.zeros(3), 1)


@pytest.mark.cuda
def test_arrays_on_a_device_are_taken(cuda_dense):
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=3, rho=0.5)
    plain = bestk.solve(X, y, 3)
    there = bestk.solve(*map(cuda_dense.xp.asarray, (X, y)), 3)
    assert there.objective == plain.objective
    np.testing.assert_array_equal(there.coef, plain.coef)
