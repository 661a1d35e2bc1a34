"""Wide problems: the same answers by rows, on tiny problems, a larger one, folds and batches."""

import tracemalloc

import numpy as np
import pytest
from helpers.checks import check_result, configuration
from helpers.forcing import forced
from helpers.instances import make
from helpers.seeds import seeds

import bestk
from bestk import Problem, SparseRidgeCV, Status
from bestk.base.threads import Workers
from bestk.datasets import make_synthetic
from bestk.selection.cross_validation import cross_validate_batches
from bestk.verification.verify import verify_batches

ONE = Workers(1)


@seeds(1500, chunk=50)
def test_tiny_problems_by_rows_are_proven_as_promised(seed, tiny_cores):
    instance, config = make(seed + 20_000), configuration(seed)
    # Without a penalty or a box nothing is charged, and trees are as large as they can be.
    config["node_limit"] = min(config["node_limit"] or 60, 60)
    result = instance.solve(**config)
    try:
        check_result(instance, result, config["gap_tol"])
        if result.certificate is not None:
            data = instance.X, instance.y, instance.options.get("sample_weight")
            assert result.certificate.verify(*data, n_threads=1)
    except AssertionError as error:
        error.add_note(f"{instance.regime}, {config}\n{result}")
        raise


def test_a_wide_problem_is_solved_without_a_square_matrix():
    n, p = 60, 6000
    data = make_synthetic(n, p, 3, rho=0.1, snr=20.0)
    tracemalloc.start()
    result = bestk.solve(data.X, data.y, k=3, alpha=1.0, bounds=(-2.0, 2.0), n_threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.status is Status.OPTIMAL
    assert peak < 0.25 * 8 * p**2
    assert result.lower_bound == pytest.approx(result.objective, rel=1e-4)
    check = result.certificate.verify(data.X, data.y, n_threads=1)
    assert check, check.failures
    # The same question to the path that has all products.
    with forced() as force:
        force.stored_search()
        stored = bestk.solve(data.X[:, :1500], data.y, k=3, alpha=1.0, bounds=(-2.0, 2.0))
    assert result.objective <= stored.objective * (1 + 1e-9)


def test_products_of_wide_data_are_not_at_hand_and_say_so():
    data = make_synthetic(20, 2500, 3)
    problem = Problem.from_data(data.X, data.y)
    assert problem.is_partial
    np.testing.assert_allclose(problem.squares, (data.X**2).sum(axis=0))
    with pytest.raises(ValueError, match="not formed for wide data"):
        _ = problem.gram


def test_cross_validation_of_wide_data(tiny_cores):
    data = make_synthetic(60, 40, 3, rho=0.1, snr=10.0)
    options = {"ks": (1, 2, 3), "alphas": (0.1, 1.0), "bounds": (-3.0, 3.0)}
    by = SparseRidgeCV(**options).fit(data.X, data.y)
    with forced() as force:
        force.stored_search()
        stored = SparseRidgeCV(**options).fit(data.X, data.y)
    assert by.result_.certificate is not None
    np.testing.assert_allclose(
        by.cross_validation_.errors, stored.cross_validation_.errors, rtol=1e-6
    )
    np.testing.assert_allclose(by.coef_, stored.coef_, rtol=1e-8, atol=1e-12)


def wide_batches(weighted):
    """Blocks of wide data that all lie in one array, as some readers make them."""
    rng = np.random.default_rng(4)
    X, y, weight = rng.standard_normal((60, 300)), rng.standard_normal(60), rng.random(60)
    y += X[:, :3].sum(axis=1)

    def blocks():
        room = np.empty((25, 300))
        for start in range(0, 60, 25):
            part = slice(start, start + 25)
            block = room[: len(y[part])]
            block[:] = X[part]
            # The second block says nothing about weights: they are one.
            yield (block, y[part], weight[part]) if weighted and start != 25 else (block, y[part])

    if weighted:
        weight[25:50] = 1.0
    return X, y, weight if weighted else None, blocks


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_batches_of_wide_data_are_kept_in_place_of_their_products(weighted, fit_intercept):
    X, y, weight, blocks = wide_batches(weighted)
    options = {"alpha": 1.0, "fit_intercept": fit_intercept, "bounds": (-2.0, 2.0)}
    problem = bestk.Problem.from_batches(blocks(), **options)
    assert problem.is_partial
    rows = bestk.Problem.from_data(X, y, sample_weight=weight, **options)
    ours, theirs = problem.solve(3), rows.solve(3)
    assert ours.status is Status.OPTIMAL
    assert ours.n_nodes == theirs.n_nodes
    np.testing.assert_array_equal(ours.coef, theirs.coef)
    assert ours.certificate.fingerprint == theirs.certificate.fingerprint
    assert verify_batches(ours.certificate, blocks())


def test_batches_that_are_no_longer_wide_are_summed_up():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((400, 210)), rng.standard_normal(400)
    blocks = ((X[i : i + 60], y[i : i + 60]) for i in range(0, 400, 60))
    problem = bestk.Problem.from_batches(blocks, alpha=1.0)
    assert not problem.is_partial
    assert problem.n_samples == 400
    np.testing.assert_allclose(problem.gram, X.T @ X, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_validation_of_wide_batches(weighted):
    X, y, weight, blocks = wide_batches(weighted)
    grid = {"ks": [1, 3], "alphas": [1.0], "bounds": (-2.0, 2.0), "n_folds": 4}
    ours, problem = cross_validate_batches(blocks(), **grid)
    assert problem.is_partial
    with forced() as force:
        force.stored_search()
        theirs, dense = cross_validate_batches(
            [(X, y) if weight is None else (X, y, weight)], **grid
        )
    assert not dense.is_partial
    np.testing.assert_allclose(ours.errors, theirs.errors, rtol=1e-6)
    with pytest.raises(ValueError, match="too few rows for n_folds = 61"):
        cross_validate_batches(blocks(), **grid | {"n_folds": 61})
