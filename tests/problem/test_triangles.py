"""Triangles of batches say the same as the rows themselves, nearly dependent columns included."""

import numpy as np
import pytest
from helpers.extended import Case, Reference, make, needs_extended, verdict
from helpers.seeds import seeds

from bestk import Problem
from bestk.base.constants import UNIT_ROUNDOFF
from bestk.problem.triangles import Triangle


def triangle_of(X, y, weight=None, batches=3) -> Triangle:
    triangle = Triangle.empty(X.shape[1])
    for rows in np.array_split(np.arange(len(y)), batches):
        part = None if weight is None else weight[rows]
        triangle = triangle.with_rows(X[rows], y[rows], part)
    return triangle


@pytest.mark.parametrize("n", [1, 5, 40, 3000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_products_are_those_of_the_rows(n, dtype):
    rng = np.random.default_rng(n)
    X, y = (10 * rng.standard_normal((n, 7))).astype(dtype), rng.standard_normal(n)
    weight = rng.uniform(0.0, 2.0, n)
    R = triangle_of(X, y, weight).R
    rows = np.column_stack([np.ones(n), X, y])
    scale = np.sqrt(weight @ rows**2)
    np.testing.assert_array_equal(R, np.triu(R))
    np.testing.assert_allclose(R.T @ R / np.outer(scale, scale),
                               rows.T @ (weight[:, None] * rows) / np.outer(scale, scale),
                               atol=1e-13)  # fmt: skip


def test_parts_add_up_and_are_not_changed():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 5)), rng.standard_normal(50)
    first, second = triangle_of(X[:20], y[:20]), triangle_of(X[20:], y[20:])
    before = first.R.tobytes(), second.R.tobytes()
    total, whole = first + second, triangle_of(X, y, batches=1)
    assert (first.R.tobytes(), second.R.tobytes()) == before
    np.testing.assert_allclose(np.abs(total.R), np.abs(whole.R), atol=1e-13)
    assert total.n_features == 5


@seeds(100, chunk=20)
@needs_extended
def test_models_of_ill_conditioned_batches(seed):
    """Solved from a few rows that stand for all: as good as from the data."""
    case = make(seed)
    weight = case.options.get("sample_weight")
    intercept = bool(case.options.get("fit_intercept"))
    X, y = triangle_of(case.X, case.y, weight).rows(intercept)
    few = Case(X=X, y=y, k=case.k, options={"alpha": case.options.get("alpha", 0.0)})
    if intercept:
        # What is left of a constant is rounding.
        length = np.sqrt((case.X**2).sum(axis=0))
        few.X[:, np.linalg.norm(X, axis=0) < 1e-13 * length] = 0.0
        if np.linalg.norm(y) < 1e-8 * np.linalg.norm(case.y):
            return  # digits of y that centring has used up
    reference = Reference.of(case)
    truth = verdict(case, reference)
    support = few.solve().support
    loss, _, size = reference.fits(support[None])
    # The columns of the triangle are known to a few roundings: first order in their multiples.
    scale = max(truth.size, float(size[0]) + np.sqrt(reference.yy))
    error = 32.0 * UNIT_ROUNDOFF * scale
    assert np.sqrt(float(loss[0])) <= np.sqrt(truth.optimum) * (1 + 1e-9) + error


@pytest.mark.parametrize("least", [0.0, 1e-9])
@pytest.mark.parametrize("seed", range(40))
def test_rows_that_hardly_count_take_no_digits_from_a_bound(seed, least):
    """They come first, and lie far from all others: sums begin there, or their error is known."""
    rng = np.random.default_rng(seed)
    n, far = 30, 10.0 ** rng.integers(4, 9)
    X, weight = rng.standard_normal((n, 2)), np.ones(n)
    y = X[:, 0] + rng.standard_normal(n)
    weight[:7] = least
    X[:7, 1] += far * rng.integers(0, 2)
    y[:7] -= far
    rows = [slice(i, i + 5) for i in range(0, n, 5)]
    batches = [(X[i], y[i], weight[i]) for i in rows]
    result = Problem.from_batches(batches, fit_intercept=True).solve(1, n_threads=1)
    columns = (X - np.average(X, axis=0, weights=weight).astype(np.longdouble)).T
    target = y - np.average(y, weights=weight).astype(np.longdouble)
    for _ in range(2):  # means are rounded
        columns = columns - ((columns @ weight) / weight.sum())[:, None]
        target = target - (target @ weight) / weight.sum()
    left = [
        (weight * target) @ target - ((weight * x) @ target) ** 2 / ((weight * x) @ x)
        for x in columns
    ]
    assert result.lower_bound <= float(min(left)) * (1 + 2e-10)


def test_near_copies_survive_batches(force):
    """1e-10 apart: their products are equal, their triangle is not."""
    rng = np.random.default_rng(1)
    X, difference = rng.standard_normal((300, 6)), rng.standard_normal(300)
    X[:, 4] = X[:, 1] + 1e-10 * difference
    y = difference + 1e-2 * rng.standard_normal(300)
    few = Problem.from_data(*triangle_of(X, y).rows(fit_intercept=False))
    assert few.solve(2).support.tolist() == [1, 4]
    assert few.solve(2).objective == pytest.approx(
        Problem.from_data(X, y).solve(2).objective, rel=1e-4
    )
    batches = [(X[:100], y[:100]), (X[100:], y[100:])]
    result = Problem.from_batches(batches).solve(2)
    assert result.support.tolist() == [1, 4]
    assert not result.assumptions
    # Without the triangle they are taken for one, and the result says so.
    force.no_triangles()
    blind = Problem.from_batches(batches).solve(2)
    assert blind.objective > 10 * result.objective
    assert blind.assumptions
