"""The split A = Q + diag(t): what is accepted is proven, and the better diagonal is better."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.forms import uniform_split
from helpers.instances import make, standard_form
from helpers.nodes import root_batch
from helpers.seeds import seeds

from bestk import Problem, datasets
from bestk.base.constants import IN
from bestk.base.threads import Workers
from bestk.bounds.methods import bound_nodes
from bestk.bounds.methods.admm import Admm
from bestk.bounds.methods.descent import Descent
from bestk.bounds.split import Split
from bestk.bounds.split_ascent import SplitAscent
from bestk.form.definiteness import is_positive_semidefinite, smallest_eigenvalue
from bestk.form.standard_form import StandardForm


def is_exactly_semidefinite(A, t):
    """Rational elimination of A - diag(t): the floats are taken as the exact numbers they are."""
    p = len(A)
    M = [[Fraction(float(A[i, j])) for j in range(p)] for i in range(p)]
    for i in range(p):
        M[i][i] -= Fraction(float(t[i]))
    for i in range(p):
        if M[i][i] < 0 or (M[i][i] == 0 and any(M[i][j] != 0 for j in range(i, p))):
            return False
        if M[i][i] == 0:
            continue
        for a in range(i + 1, p):
            factor = M[a][i] / M[i][i]
            M[a] = [x - factor * y for x, y in zip(M[a], M[i], strict=True)]
    return True


def correlation(rng, p, rows):
    X = rng.standard_normal((rows, p))
    X /= np.linalg.norm(X, axis=0)
    A = X.T @ X
    A = 0.5 * (A + A.T)
    A[np.diag_indices(p)] = 1.0
    return A


@pytest.mark.parametrize("p", [2, 5, 20])
@pytest.mark.parametrize("t", [1e-300, 1e-20, 1e-17, 1e-16, 1e-15, 1e-12, 1e-6])
def test_singular_matrix_less_anything_is_refused(p, t):
    """B'B with integer B (p - 1 rows) is singular exactly, so B'B - t I is not semidefinite."""
    rng = np.random.default_rng(p)
    B = rng.integers(-9, 10, (p - 1, p)).astype(float)
    assert not is_positive_semidefinite(B.T @ B, np.full(p, t))


@pytest.mark.parametrize("seed", range(30))
def test_accepted_near_the_edge_means_exactly_semidefinite(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 6))
    A = correlation(rng, p, p + int(rng.integers(0, 3)))
    weights = 1.0 + rng.random(p)
    root = np.sqrt(weights)
    edge = np.linalg.eigvalsh(A / np.outer(root, root))[0]  # A - edge diag(weights) is singular
    for distance in 10.0 ** -np.arange(1.0, 18.0):
        for t in (edge * (1 - distance) * weights, edge * (1 + distance) * weights):
            if is_positive_semidefinite(A, t):
                assert is_exactly_semidefinite(A, t)
    assert is_positive_semidefinite(A, edge * weights - 1e-12)


@pytest.mark.parametrize("p", [1, 2, 20, 200])
def test_nan_proves_nothing(p):
    t = np.zeros(p)
    t[-1] = np.nan
    assert not is_positive_semidefinite(np.eye(p), t)


@pytest.mark.parametrize("seed", range(20))
def test_uniform_split_is_close_below_the_smallest_eigenvalue(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 60))
    A = correlation(rng, p, 2 * p + 2)
    least = np.linalg.eigvalsh(A)[0]
    t = uniform_split(A).t
    assert np.ptp(t) == 0.0
    assert 0.98 * least <= t[0] <= least
    assert is_positive_semidefinite(A, t)
    assert least * (1 - 1e-9) <= smallest_eigenvalue(A) <= 1.01 * least


@pytest.mark.parametrize("exponent", range(2, 9))
def test_uniform_split_is_semidefinite_however_collinear(exponent):
    rng = np.random.default_rng(exponent)
    X = rng.standard_normal((12, 4))
    X[:, 0] = X[:, 1] + 10.0**-exponent * X[:, 0]
    X /= np.linalg.norm(X, axis=0)
    A = X.T @ X
    t = uniform_split(A).t
    assert (t >= 0).all()
    assert not t.any() or is_exactly_semidefinite(A, t)


def test_singular_matrix_has_no_useful_split():
    A = np.ones((3, 3))
    split = uniform_split(A)
    assert not split.t.any()
    assert not split.is_positive


def relaxation_value(form, split, state, k):
    """The certified bound of a node: the better of long runs of two methods."""
    bounds = []
    with Workers(1) as workers:
        for method in (Admm(form, split, workers), Descent(form, split, workers)):
            batch = root_batch(state[None])
            bound_nodes(method, form, split, batch, k, 1.0, False, workers)
            bounds.append(batch.bounds[0])
    return max(bounds)


def optimise(form, split, state, k):
    """For one node, with the cutoff a tree would have: the loss of a good model."""
    cutoff = form.problem.solve(k, node_limit=0).objective / form.problem.yy
    with Workers(1) as workers:
        ascent = SplitAscent(form, split, workers)
        for _ in range(2):
            better = ascent.improve(state[None], np.zeros((1, form.p)), k, cutoff)
    return better


def synthetic_form(n, p, k, seed, **options):
    X, y, _ = datasets.make_synthetic(n, p, k, rho=0.7, seed=seed)
    return StandardForm.of(Problem.from_data(X, y, alpha=1e-3, **options), np.arange(p))


@pytest.mark.parametrize("options", [{}, {"bounds": (0.0, np.inf)}, {"bounds": (-0.6, 0.6)}])
@pytest.mark.parametrize(("n", "p", "k"), [(30, 20, 4), (60, 30, 5), (200, 12, 3)])
@pytest.mark.usefixtures("long_methods")
def test_optimised_split_is_proven_and_better(n, p, k, options):
    form = synthetic_form(n, p, k, 0, **options)
    state = np.zeros(p, dtype=np.int8)
    uniform = uniform_split(form.A)
    better = optimise(form, uniform, state, k)
    assert better.is_positive
    assert is_positive_semidefinite(form.A, better.t)
    before, after = (relaxation_value(form, split, state, k) for split in (uniform, better))
    assert after >= before - 1e-3 * abs(before)


@pytest.mark.usefixtures("long_methods")
def test_optimised_split_closes_much_of_the_root_gap():
    form = synthetic_form(60, 30, 5, 1)
    state = np.zeros(30, dtype=np.int8)
    uniform = uniform_split(form.A)
    better = optimise(form, uniform, state, 5)
    best = form.problem.solve(5).objective / form.problem.yy
    before, after = (best - relaxation_value(form, split, state, 5) for split in (uniform, better))
    assert after < 0.8 * before


@seeds(120, chunk=30)
def test_optimised_split_of_tiny_nodes_is_proven(seed):
    instance = make(seed)
    form = standard_form(instance)
    if form is None or instance.k == 0:
        return
    k = min(instance.k, form.p)
    state = np.zeros(form.p, dtype=np.int8)
    state[: seed % 2] = IN
    split = optimise(form, uniform_split(form.A), state, k)
    assert (split.t >= 0).all()
    assert not split.is_positive or is_positive_semidefinite(form.A, split.t)


def test_useless_split_cannot_be_optimised():
    form = standard_form(make(3, "duplicate"))
    useless = Split(t=np.zeros(form.p))
    state = np.zeros(form.p, dtype=np.int8)
    assert optimise(form, useless, state, 1) is useless
