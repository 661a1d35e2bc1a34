"""Fits on one support: optimal, within bounds and among copies too."""

from itertools import product

import numpy as np
import pytest
from helpers.instances import Instance, make
from helpers.regression import data
from helpers.seeds import seeds

from bestk import Problem


def test_objective_is_the_formula():
    X, y = data()
    rng = np.random.default_rng(3)
    weight = rng.random(40)
    coef = rng.standard_normal(8) * (rng.random(8) < 0.6)
    expected = np.sum(weight * (y - X @ coef) ** 2) + 0.3 * coef @ coef
    root = np.sqrt(weight)[:, None]
    of_data = Problem.from_data(X, y, alpha=0.3, sample_weight=weight)
    Xw, yw = root * X, root[:, 0] * y
    of_gram = Problem.from_gram(Xw.T @ Xw, Xw.T @ yw, yw @ yw, alpha=0.3)
    assert of_data.objective(coef) == pytest.approx(expected, rel=1e-13)
    assert of_gram.objective(coef) == pytest.approx(expected, rel=1e-12)
    assert of_data.objective(np.zeros(8)) == pytest.approx(yw @ yw)


@pytest.mark.parametrize("bounds", [None, (-0.6, 0.6), (0.0, np.inf)])
def test_fit_is_optimal_on_its_support(bounds):
    X, y = data()
    problem = Problem.from_data(X, y, alpha=0.1, bounds=bounds)
    support = np.array([1, 3, 6])
    coef, value = problem.fit(support)
    rng = np.random.default_rng(4)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(50):
            other = np.zeros(8)
            other[support] = np.clip(
                coef + size * rng.standard_normal(3), problem.lower[support], problem.upper[support]
            )
            assert problem.objective(other) >= value - 1e-10


@pytest.mark.parametrize("seed", [9, 28, 70])
def test_fit_is_optimal_among_opposite_columns_with_signs(seed):
    """x and -x with b >= 0: one of the two is enough, and a bounded solver may get lost."""
    rng = np.random.default_rng(seed)
    x, z, y = rng.standard_normal((3, 6))
    problem = Problem.from_data(np.column_stack([x, -x, z]), y, bounds=(0.0, np.inf))
    smaller = min(problem.fit(np.array(S))[1] for S in ([0, 2], [1, 2]))
    assert problem.fit(np.array([0, 1, 2]))[1] <= smaller * (1 + 1e-9)
    assert problem.solve(3).objective <= smaller * (1 + 1e-9)


@seeds(100, chunk=50)
@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-np.inf, 0.0), (-0.3, 0.3)])
def test_fit_among_copies_is_optimal_with_sane_coefficients(seed, bounds):
    """x, x, -x, -x: huge coefficients that cancel would leave nothing but rounding."""
    rng = np.random.default_rng(seed)
    x, z, w, y = rng.standard_normal((4, 12)) + 0.5 * rng.standard_normal(12)
    instance = Instance(
        regime="copies", X=np.column_stack([x, x, -x, -x, z, w]), y=y, k=4,
        options={"bounds": bounds},
    )  # fmt: skip
    support = np.sort(rng.permutation(6)[:4])
    coef, value = Problem.from_data(instance.X, y, bounds=bounds).fit(support)
    assert value == pytest.approx(instance.loss(support), rel=1e-9)
    assert np.abs(coef).max() < 1e3


@pytest.mark.parametrize("reach", [6e3, 6.1e4, 2e5])
def test_a_fit_at_its_bounds_is_the_best_with_huge_coefficients(reach):
    """Monomials whose best coefficients are 1e4 times as large as standardised ones should be."""
    instance = make(3068)
    X, y = instance.X, instance.y
    upper = reach * np.linalg.norm(y) / np.linalg.norm(X, axis=0)
    support = np.arange(X.shape[1])
    _, objective = Problem.from_data(X, y, bounds=(-upper, upper)).fit(support)
    assert objective == pytest.approx(best_within(X, y, -upper, upper), rel=1e-5)


def best_within(X, y, lower, upper):
    """The optimum over a box: every way to hold some coefficients at an end, the others fitted."""
    best = np.inf
    for sides in product((None, 0, 1), repeat=X.shape[1]):
        held = np.array([side is not None for side in sides])
        ends = [(lower[j], upper[j])[side] for j, side in enumerate(sides) if side is not None]
        coef = np.zeros(X.shape[1])
        coef[held] = ends
        if not held.all():
            coef[~held] = np.linalg.lstsq(X[:, ~held], y - X[:, held] @ coef[held], rcond=None)[0]
        if (coef >= lower * (1 + 1e-9)).all() and (coef <= upper * (1 + 1e-9)).all():
            best = min(best, float(np.sum((y - X @ coef) ** 2)))
    return best
