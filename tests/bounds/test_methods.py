"""The methods that look for dual vectors find good ones."""

import numpy as np
import pytest
from helpers.forms import uniform_split
from helpers.nodes import cases, certify_all, well_posed
from helpers.seeds import seeds
from scipy.optimize import minimize

from bestk.base.constants import FREE, OUT

METHODS = ("descent", "admm", "fast", "subgradient")


@seeds(300, chunk=100)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_stays_below_the_optimum_of_the_node(seed, name):
    for rng, case in cases(seed, 1):
        cutoff = rng.choice([case.optimum + 1.0, case.optimum + 0.1, 0.9 * case.optimum])
        batch = certify_all(case, name, uniform_split(case.form.A), cutoff)
        assert batch.bounds[0] <= case.optimum + case.slack
        assert (batch.states[0] == case.state).all()


def relaxation_value(case, t):
    """min 1 - 2 c'b + b'Q b + sum t b^2 / z,  lo z <= b <= hi z,  sum z <= r over FREE.

    This is (relaxation). By a general solver, so only good to about 1e-6, and only from above.
    """
    form, kept = case.form, np.flatnonzero(case.state != OUT)
    m, free = len(kept), case.state[kept] == FREE
    Q, c, t = (form.A - np.diag(t))[np.ix_(kept, kept)], form.c[kept], t[kept]
    lo, hi = np.maximum(form.lo[kept], -1e3), np.minimum(form.hi[kept], 1e3)
    z0 = np.where(free, 0.99 * min(1.0, case.r / free.sum()), 1.0)

    def value(x):
        b, z = x[:m], x[m:]
        return 1.0 - 2 * c @ b + b @ Q @ b + np.sum(t * b**2 / z)

    def slope(x):
        b, z = x[:m], x[m:]
        return np.concatenate([-2 * c + 2 * Q @ b + 2 * t * b / z, -t * b**2 / z**2])

    eye = np.eye(m)
    rows = np.vstack([
        np.hstack([eye, -np.diag(lo)]),
        np.hstack([-eye, np.diag(hi)]),
        -np.concatenate([np.zeros(m), free])[None],
    ])  # fmt: skip
    least = np.append(np.zeros(2 * m), -case.r)
    solution = minimize(
        value, np.concatenate([np.zeros(m), z0]), jac=slope, method="SLSQP",
        bounds=[(None, None)] * m + [(1e-9 if f else 1.0, 1.0) for f in free],
        constraints={"type": "ineq", "fun": lambda x: rows @ x - least, "jac": lambda x: rows},
        options={"maxiter": 2000, "ftol": 1e-13},
    )  # fmt: skip
    return solution.fun


@pytest.mark.parametrize("boxed", [False, True])
def test_long_admm_reaches_the_value_of_the_relaxation(boxed, long_methods):
    for case in well_posed(15, boxed):
        split = uniform_split(case.form.A)
        bound = certify_all(case, "admm", split, case.optimum + 1.0).bounds[0]
        assert bound == pytest.approx(relaxation_value(case, split.t), abs=1e-4), case.name


@pytest.mark.parametrize("boxed", [False, True])
def test_long_descent_agrees_with_long_admm(boxed, long_methods):
    for case in well_posed(25, boxed):
        split = uniform_split(case.form.A)
        descent, admm = (
            certify_all(case, name, split, case.optimum + 1.0).bounds[0]
            for name in ("descent", "admm")
        )
        assert descent == pytest.approx(admm, rel=1e-3, abs=1e-5), case.name


@pytest.mark.parametrize("boxed", [False, True])
def test_subgradient_improves_the_fast_bound_towards_admm(boxed, long_methods):
    for case in well_posed(8, boxed):
        split = uniform_split(case.form.A)
        admm, fast, subgradient = (
            certify_all(case, name, split, case.optimum).bounds[0]
            for name in ("admm", "fast", "subgradient")
        )
        assert fast - 1e-12 <= subgradient <= admm + 1e-6, case.name
        assert admm - subgradient <= 0.7 * (admm - fast) + 1e-3, case.name


def test_fast_bound_is_the_papers_formula():
    """Ridge loss plus t times the sum of the p - k smallest squared ridge coefficients."""
    for case in well_posed(30, boxed=False):
        case.state[:] = FREE
        form, split = case.form, uniform_split(case.form.A)
        g = np.linalg.solve(form.A, form.c)
        smallest = np.sort(g**2)[: form.p - case.k]
        formula = 1.0 - form.c @ g + split.t[0] * smallest.sum()
        bound = certify_all(case, "fast", split).bounds[0]
        assert bound == pytest.approx(formula, abs=1e-7), case.name  # duals are rounded


def test_fast_bound_of_a_node_restricts_the_formula_to_its_features():
    """OUT features leave the ridge problem; IN features leave the sum (the paper's appendix)."""
    for case in well_posed(30, boxed=False):
        form, split = case.form, uniform_split(case.form.A)
        kept = np.flatnonzero(case.state != OUT)
        g = np.linalg.solve(form.A[np.ix_(kept, kept)], form.c[kept])
        free = np.sort(g[case.state[kept] == FREE] ** 2)
        formula = 1.0 - form.c[kept] @ g + split.t[0] * free[: len(free) - case.r].sum()
        bound = certify_all(case, "fast", split).bounds[0]
        assert bound == pytest.approx(formula, abs=1e-7), case.name  # duals are rounded
