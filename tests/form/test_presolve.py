"""Before the search: copies are left out, and what leaves nothing to choose is answered."""

import numpy as np
import pytest
from helpers.regression import data

import bestk
from bestk import Status


def test_nothing_to_choose_is_answered_at_once():
    X, y = data()
    empty = bestk.solve(X, y, 0)
    assert empty.support.size == 0
    assert empty.objective == empty.lower_bound == pytest.approx(y @ y)
    excluded = bestk.solve(X, y, 3, exclude=range(8))
    assert excluded.support.size == 0
    assert excluded.status is Status.OPTIMAL


def test_without_columns_y_is_all_residual():
    y = np.array([1.0, 2.0])
    result = bestk.solve(np.zeros((2, 0)), y, 2)
    assert result.coef.shape == (0,)
    assert result.objective == result.lower_bound == 5.0


@pytest.mark.parametrize("factor", [1.0, -1.0, 3.0, 1e-7])
def test_copies_of_features_do_not_hinder_the_proof(factor):
    """Without ridge a copy makes every relaxation worthless; it is left out instead."""
    X, y, _ = bestk.datasets.make_synthetic(300, 40, k=6, rho=0.5, seed=1)
    doubled = np.column_stack([X, factor * X[:, 0], factor * X[:, 7]])
    plain, result = bestk.solve(X, y, 6), bestk.solve(doubled, y, 6, node_limit=500)
    assert result.status is bestk.Status.OPTIMAL
    assert result.objective == pytest.approx(plain.objective, rel=1e-12)


def test_included_copies_stay():
    X, y, _ = bestk.datasets.make_synthetic(100, 8, k=2, rho=0.5, seed=1)
    doubled = np.column_stack([X, X[:, 0]])
    result = bestk.solve(doubled, y, 3, include=[0, 8])
    assert {0, 8} <= set(result.support.tolist())
    assert result.objective == pytest.approx(bestk.solve(X, y, 2, include=[0]).objective, rel=1e-12)


def test_nearly_equal_features_are_not_taken_for_copies():
    rng = np.random.default_rng(0)
    x, e = rng.standard_normal((2, 50))
    X = np.column_stack([x, x + 1e-9 * e, rng.standard_normal(50)])
    result = bestk.solve(X, e, 2)
    assert result.support.tolist() == [0, 1]
    assert result.objective < 1e-9 * (e @ e)
