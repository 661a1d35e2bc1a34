"""Units of measurement change nothing: not the support, not the gap, not the tree."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from helpers.instances import REGIMES, make
from helpers.seeds import seeds

from bestk import Advanced, Problem, Result, solve

SCALES = {2: 2.0 ** np.array([27.0, -27.0, 13.0, -20.0]), 10: 10.0 ** np.array([8, -8, 3, -5.0])}


@dataclass(kw_only=True)
class Task:
    X: np.ndarray
    y: np.ndarray
    k: int
    options: dict = field(default_factory=dict)

    def in_units(self, x_units, y_unit) -> "Task":
        """The same models, columns and target multiplied; a ridge asks for one unit for all."""
        options = dict(self.options)
        if "alpha" in options:
            options["alpha"] = options["alpha"] * x_units[0] ** 2
        if "bounds" in options:
            lower, upper = options["bounds"]
            options["bounds"] = lower * y_unit / x_units, upper * y_unit / x_units
        return Task(X=self.X * x_units, y=self.y * y_unit, k=self.k, options=options)

    def solve(self, **settings) -> Result:
        return solve(self.X, self.y, self.k, n_threads=1, **self.options, **settings)


def changes_of_units(task: Task, base: int, seed: int) -> list[tuple[np.ndarray, float]]:
    """Other units for X, for y, for both, and for each column."""
    rng = np.random.default_rng(seed)
    p = task.X.shape[1]
    x_unit, y_unit = rng.choice(SCALES[base], 2)
    same, new = np.ones(p), np.full(p, x_unit)
    changes = [(new, 1.0), (same, y_unit), (new, y_unit)]
    if not task.options.get("alpha"):
        changes.append((rng.choice(SCALES[base], p), y_unit))
    return changes


def medium(seed: int) -> Task:
    """Problems that branch: correlated, within boxes, with an intercept, features given."""
    rng = np.random.default_rng([seed, 5])
    n, p, k = int(rng.integers(60, 120)), int(rng.integers(30, 61)), int(rng.integers(4, 7))
    rho = (0.0, 0.5, 0.9)[seed % 3]
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    b = np.zeros(p)
    b[rng.permutation(p)[: k + 2]] = rng.standard_normal(k + 2)
    y = X @ b + 2.0 * rng.standard_normal(n)
    options: dict = {}
    if seed % 4 == 1:
        options["bounds"] = np.full(p, -0.4), np.full(p, 0.6)
    if seed % 5 in (1, 2):
        options["alpha"] = 0.5
    if seed % 4 == 2:
        X += 3.0 * rng.standard_normal(p)
        options["fit_intercept"] = True
    if seed % 7 == 3:
        options.update(include=[1], exclude=[0, 2])
    if seed % 6 == 5:
        options["sample_weight"] = rng.uniform(0.2, 2.0, n)
    return Task(X=X, y=y, k=k, options=options)


@pytest.mark.parametrize("base", [2, 10])
@pytest.mark.parametrize("seed", range(18))
def test_units_do_not_change_a_search(seed, base):
    task = medium(seed)
    # Half of them by branching alone, which looks at every kind of bound.
    settings = {"advanced": Advanced(enumeration=seed % 2 == 0), "node_limit": 1500}
    result = task.solve(**settings)
    for x_units, y_unit in changes_of_units(task, base, seed):
        other = task.in_units(x_units, y_unit).solve(**settings)
        assert other.support.tolist() == result.support.tolist()
        assert (other.n_nodes, other.status) == (result.n_nodes, result.status)
        coef = other.coef * x_units / y_unit
        if base == 2:  # no digit changes
            np.testing.assert_array_equal(coef, result.coef)
            assert other.gap == result.gap
            assert other.lower_bound == result.lower_bound * y_unit**2
        else:
            np.testing.assert_allclose(coef, result.coef, rtol=1e-9, atol=1e-12)
            assert other.gap == pytest.approx(result.gap, abs=1e-10)
            assert other.lower_bound / y_unit**2 == pytest.approx(result.lower_bound, rel=1e-10)


def test_medium_problems_branch():
    """All options are there, and trees of hundreds of nodes."""
    tasks = [medium(seed) for seed in range(18)]
    names = {name for task in tasks for name in task.options}
    assert names == {"bounds", "alpha", "fit_intercept", "include", "exclude", "sample_weight"}
    settings = {"advanced": Advanced(enumeration=False), "node_limit": 1500}
    assert sum(task.solve(**settings).n_nodes > 60 for task in tasks) >= 6


@seeds(8, chunk=8)
@pytest.mark.parametrize("base", [2, 10])
@pytest.mark.parametrize("regime", REGIMES)
def test_units_do_not_change_awkward_problems(seed, regime, base):
    instance = make(seed, regime)
    options = {
        name: tuple(np.broadcast_to(bound, instance.X.shape[1]) for bound in value)
        if name == "bounds"
        else value
        for name, value in instance.options.items()
    }
    X, y = instance.X.astype(float), instance.y.astype(float)
    task = Task(X=X, y=y, k=instance.k, options=options)
    result = task.solve()
    yy = max(result.yy, 1e-300)
    for x_units, y_unit in changes_of_units(task, base, seed):
        other = task.in_units(x_units, y_unit).solve()
        # Ties between dependent features may fall otherwise where digits change.
        if base == 2:
            assert other.support.tolist() == result.support.tolist()
            assert other.n_nodes == result.n_nodes
        for name in ("objective", "lower_bound"):
            ours, theirs = getattr(result, name), getattr(other, name) / y_unit**2
            assert theirs == pytest.approx(ours, rel=1e-9, abs=1e-12 * yy), name
        assert other.status == result.status


@pytest.mark.parametrize("exponent", [-100, -16, 16, 100])
def test_a_target_in_tiny_units_is_fitted_within_bounds(exponent):
    """The tolerance of the solver behind such fits is absolute."""
    rng = np.random.default_rng(0)
    unit = 10.0**exponent
    for _ in range(20):
        X = rng.standard_normal((30, 6)) + 1.5 * rng.standard_normal((30, 1))
        y = X @ rng.standard_normal(6) + rng.standard_normal(30)
        lower, upper = -rng.uniform(0.0, 0.5, 6), rng.uniform(0.0, 0.5, 6)
        coef, objective = Problem.from_data(X, y, bounds=(lower, upper)).fit(np.arange(6))
        scaled = Problem.from_data(X, y * unit, bounds=(lower * unit, upper * unit))
        other, other_objective = scaled.fit(np.arange(6))
        np.testing.assert_allclose(other / unit, coef, rtol=1e-9, atol=1e-12)
        assert other_objective / unit**2 == pytest.approx(objective, rel=1e-12)


@pytest.mark.parametrize("exponent", [-150, -120, 120, 150])
def test_products_of_extreme_columns_give_the_objective_of_the_rows(exponent):
    """Such columns are kept in other units, those of the coefficients are the user's."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.standard_normal(30)
    X[:, 1] *= 10.0**exponent
    problem = Problem.from_data(X, y)
    assert problem.units[1] != 1.0
    products = replace(problem, rows=None)
    coef, objective = problem.fit(np.arange(3))
    assert products._loss(np.arange(3), coef) == pytest.approx(objective, rel=1e-9)
    assert products.fit(np.arange(3))[1] == pytest.approx(objective, rel=1e-9)
