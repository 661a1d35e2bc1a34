"""Lower bounds: any dual vector proves something true, rounding included."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from helpers.forms import uniform_split
from helpers.instances import REGIMES, make_node, proven_split
from helpers.nodes import (
    cases,
    certified,
    certify_all,
    concluded,
    h,
    random_dual,
    well_posed,
)
from helpers.seeds import seeds

from bestk import Problem
from bestk.base.constants import FREE, IN, OUT, UNIT_ROUNDOFF
from bestk.form.standard_form import StandardForm


@seeds(1000, chunk=100)
def test_any_dual_gives_a_bound_below_the_optimum_of_its_node(seed):
    for rng, case in cases(seed, 1):
        t = proven_split(rng, case.form.A)
        for _ in range(3):
            g = random_dual(rng, case, t)
            bound, _ = certified(case.form, t, case.state, case.r, g, case.k)
            assert bound <= case.optimum + case.slack


@seeds(400, chunk=100)
def test_certified_bound_is_the_formula_less_a_small_allowance(seed):
    for rng, case in cases(seed, 1):
        t = proven_split(rng, case.form.A)
        g = random_dual(rng, case, t)
        plain = h(case.form, t, case.state, case.r, g)
        bound, _ = certified(case.form, t, case.state, case.r, g, case.k, eps=0.0)
        if not np.isfinite(plain):
            assert bound == -np.inf
            continue
        size = 1.0 + np.abs(g).sum()
        steep = size / t[t > 0].min(initial=1.0)  # how fast phi grows with an error in u
        boxes = np.where(np.isfinite(case.form.hi - case.form.lo), case.form.hi - case.form.lo, 0)
        steep += boxes.sum()
        assert bound <= plain + 1e-14 * size**2
        assert bound >= plain - 1e-13 * size * steep - 1e-12 * abs(plain)


def random_form(rng, exponent, n=4, p=3, limit=np.inf):
    """Few rows, so that exact arithmetic is cheap; the first two columns differ by 10^-exponent."""
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-6, 7, p)
    X[:, 1] = X[:, 0] * (1.0 + 10.0**-exponent * rng.standard_normal(n))
    y = rng.standard_normal(n)
    if rng.random() < 0.5:
        y += (X[:, 1] / X[:, 0] - 1.0) * 10.0**exponent
    problem = Problem.from_data(X, y, alpha=float(rng.choice([0.0, 1e-3])))
    form = StandardForm.of(problem, np.arange(p))
    if np.isfinite(limit):
        problem = Problem.from_data(X, y, bounds=(-limit * form.scale, limit * form.scale))
        form = StandardForm.of(problem, np.arange(p))
    return X, y, form


def exact_objective(X, y, alpha, coef):
    """f(b) / y'y in rational arithmetic: the floats X, y, b are taken as the exact numbers."""
    X = [[Fraction(float(x)) for x in row] for row in X]
    y = [Fraction(float(v)) for v in y]
    coef = [Fraction(float(b)) for b in coef]
    fitted = [sum(x * b for x, b in zip(row, coef, strict=True)) for row in X]
    residual = [v - fit for v, fit in zip(y, fitted, strict=True)]
    value = sum(e * e for e in residual) + Fraction(alpha) * sum(b * b for b in coef)
    return value / sum(v * v for v in y)


def exact_fit(X, y, alpha, support):
    """min f / y'y on a support by rational Gaussian elimination (columns must be independent)."""
    X = [[Fraction(float(row[j])) for j in support] for row in X]
    y = [Fraction(float(v)) for v in y]
    size = len(support)
    M = [[sum(row[i] * row[j] for row in X) for j in range(size)] for i in range(size)]
    for i in range(size):
        M[i][i] += Fraction(alpha)
        M[i].append(sum(row[i] * v for row, v in zip(X, y, strict=True)))
    moments = [row[-1] for row in M]
    for i in range(size):
        M[i] = [entry / M[i][i] for entry in M[i]]
        for k in range(size):
            if k != i:
                M[k] = [a - M[k][i] * b for a, b in zip(M[k], M[i], strict=True)]
    yy = sum(v * v for v in y)
    return 1 - sum(row[-1] * m for row, m in zip(M, moments, strict=True)) / yy


@pytest.mark.parametrize("exponent", [0, 2, 4, 6, 7])
@pytest.mark.parametrize("seed", range(8))
def test_bound_holds_in_exact_arithmetic(seed, exponent):
    """No tolerance at all: bound <= the optimum of the data as rational numbers."""
    rng = np.random.default_rng([seed, exponent])
    X, y, form = random_form(rng, exponent)
    k = 2
    optimum = min(exact_fit(X, y, form.problem.alpha, S) for S in combinations(range(3), k))
    t = uniform_split(form.A).t
    state = np.zeros(3, dtype=np.int8)
    for scale in (1.0, 0.99, 0.5):
        for S in combinations(range(3), k):
            g = np.zeros(3)
            inner = form.A[np.ix_(S, S)]
            g[list(S)] = scale * np.linalg.lstsq(inner, form.c[list(S)], rcond=1e-15)[0]
            bound, _ = certified(form, scale * t, state, k, g, k)
            assert not np.isfinite(bound) or Fraction(bound) <= optimum


@pytest.mark.parametrize("exponent", [6, 7, 8])
@pytest.mark.parametrize("seed", range(8))
def test_bound_with_wide_boxes_holds_in_exact_arithmetic(seed, exponent):
    """Coefficients of size 1e7 inside finite boxes: errors of the Gram matrix are magnified."""
    rng = np.random.default_rng([seed, exponent])
    limit = 3.0 * 10.0**exponent
    X, y, form = random_form(rng, exponent, limit=limit)
    state = np.zeros(3, dtype=np.int8)
    best, coef = np.inf, np.zeros(3)
    for S in combinations(range(3), 2):
        b, _ = form.problem.fit(np.array(S))
        full = np.zeros(3)
        full[list(S)] = b
        value = exact_objective(X, y, form.problem.alpha, full)
        if value < best:
            best, coef = value, full
    g = coef / form.scale
    for t in (uniform_split(form.A).t, np.zeros(3)):
        bound, _ = certified(form, t, state, 2, g, 2)
        assert not np.isfinite(bound) or Fraction(bound) <= best


def bound_of_pair(delta, eps, t, limit):
    """(certified bound, possible value) of c = (s, -s), A_12 = 1 - delta, known only up to eps."""
    s = np.sqrt(0.2 * delta)
    c = np.array([s, -s])
    A = np.array([[1.0, 1.0 - delta], [1.0 - delta, 1.0]])
    A_true = np.array([[1.0, 1.0 - delta + eps], [1.0 - delta + eps, 1.0]])
    b = c / (delta - eps)
    assert (np.abs(b) < limit).all()
    limits = np.full(2, limit)
    (bound,), _ = concluded(
        A, c, np.full(2, t), -limits, limits, np.zeros((1, 2), dtype=np.int8), np.array([2]),
        (c / delta)[None], 1.1 * eps, 2, np.inf, False,
    )  # fmt: skip
    return bound, 1.0 - 2 * c @ b + b @ A_true @ b


@pytest.mark.parametrize("share", [3, 8, 20, 100])
def test_error_of_the_data_is_paid_for(share):
    """The bound must hold for every matrix within eps of A."""
    eps = 1e-12
    bound, possible = bound_of_pair(share * eps, eps, 0.9 * share * eps, np.inf)
    assert bound <= possible
    assert np.isfinite(bound) == (share > 5)


def test_error_of_the_data_is_paid_for_inside_boxes():
    """The same where nothing is left of t, and only boxes make the bound finite."""
    bound, possible = bound_of_pair(2e-12, 1e-12, 0.0, 1e6)
    assert bound <= possible


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_fixing_keeps_every_support_below_the_cutoff(first):
    fixed = 0
    for rng, case in cases(first, 100):
        form = case.form
        t = uniform_split(form.A).t if rng.random() < 0.7 else proven_split(rng, form.A)
        spread = np.ptp(list(case.values.values()))
        cutoff = case.optimum + rng.choice([1e-9, 1e-3, 0.3]) * spread + case.slack
        g = random_dual(rng, case, t)
        _, state = certified(form, t, case.state, case.r, g, case.k, cutoff=cutoff, fix=True)
        fixed += np.count_nonzero(state != case.state)
        inside, outside = set(np.flatnonzero(state == IN)), set(np.flatnonzero(state == OUT))
        for support, value in case.values.items():
            if value < cutoff - case.slack:
                assert inside <= set(support), case.name
                assert not outside & set(support), case.name
    assert fixed > 0


@seeds(40, chunk=40)
def test_nothing_is_fixed_unless_asked(seed):
    for rng, case in cases(seed, 1):
        t = uniform_split(case.form.A).t
        g = random_dual(rng, case, t)
        _, state = certified(case.form, t, case.state, case.r, g, case.k, cutoff=case.optimum)
        assert (state == case.state).all()


@seeds(20, chunk=20)
@pytest.mark.parametrize("regime", [name for name in REGIMES if name != "zero_y"])
def test_useless_split_gives_no_more_than_it_can(seed, regime):
    """t = 0 is all that singular matrices allow: only boxes can then give a finite bound."""
    case = make_node(seed, regime)
    if case is None:
        return
    t, g = np.zeros(case.form.p), np.zeros(case.form.p)
    bound, _ = certified(case.form, t, case.state, case.r, g, case.k)
    assert bound <= case.optimum + case.slack
    if not case.form.is_boxed and case.r > 0 and (case.state == FREE).any():
        assert bound == -np.inf


def test_allowance_is_small_on_ordinary_data():
    """The proof costs little: within 1e-12 of the formula on well-scaled problems."""
    for case in well_posed(30, boxed=False):
        split = uniform_split(case.form.A)
        if split.t[0] < 1e-2:
            continue
        batch = certify_all(case, "descent", split)
        plain = h(case.form, split.t, case.state, case.r, batch.duals[0])
        assert plain - 1e-11 <= batch.bounds[0] <= plain, case.name
        assert plain - batch.bounds[0] >= UNIT_ROUNDOFF, case.name
