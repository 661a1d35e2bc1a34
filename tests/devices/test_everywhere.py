"""device= wherever there is a search: paths, folds, estimators, equations."""

import numpy as np
import pytest
from helpers.devices import Plain, using

import bestk
from bestk import Problem, SparseRidge, SparseRidgeCV
from bestk.datasets import make_dynamics
from bestk.selection.cross_validation import cross_validate_batches


@pytest.fixture
def data():
    X, y, _ = bestk.datasets.make_synthetic(80, 12, k=4, rho=0.7)
    return X, y


def problem(X, y, **options):
    return [Problem.from_data(X, y).solve(4, **options)]


def path(X, y, **options):
    return bestk.solve_path(X, y, range(1, 5), **options).results


def folds(X, y, **options):
    batches = [(X[:40], y[:40]), (X[40:], y[40:])]
    found, _ = cross_validate_batches(batches, range(1, 5), (0.0, 1.0), n_folds=3, **options)
    return [result for paths in found.paths for path in paths for result in path.results]


def estimator(X, y, **options):
    return [SparseRidge(k=4, **options).fit(X, y).result_]


def jobs(X, y, **options):
    """Several searches at a time share a device."""
    Y = np.column_stack([y, X[:, 0] + y, X[:, 1] - y])
    return SparseRidge(k=4, n_jobs=2, **options).fit(X, Y).result_


def estimator_cv(X, y, **options):
    return [SparseRidgeCV(ks=[3, 4], cv=3, **options).fit(X, y).result_]


@pytest.mark.parametrize("ask", [problem, path, folds, estimator, jobs, estimator_cv])
def test_searches_use_the_device(ask, data, force):
    plain = ask(*data)
    force.closed_by_device_at_once()
    with using(Plain()) as device:
        results = ask(*data, device="cuda")
    assert device.n_tasks > 0
    assert all(result.engine.startswith("plain:0 (NumPy)") for result in results if result.k >= 3)
    for result, other in zip(results, plain, strict=True):
        np.testing.assert_array_equal(result.support, other.support)
        assert result.gap <= 1e-4


def test_equations_use_the_device(force):
    from bestk.sindy import OKRidge

    found = make_dynamics("lorenz", duration=2.0, degree=2)
    plain = OKRidge(k=3).fit(found.X, found.derivatives)
    force.closed_by_device_at_once()
    with using(Plain()) as device:
        there = OKRidge(k=3, device="cuda").fit(found.X, found.derivatives)
    assert device.n_tasks == 3
    np.testing.assert_allclose(there.coef_, plain.coef_, rtol=1e-9, atol=1e-12)
