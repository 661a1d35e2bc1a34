"""Block splits: every bound and exclusion they give holds, at any dual vector."""

from itertools import combinations

import numpy as np
import pytest
from instances import make, standard_form

import bestk
from bestk import Advanced, Problem, Status
from bestk._blocks import choose
from bestk.blocks import BlockBound, block_split
from bestk.presolve import Presolved
from bestk.relaxation import uniform_split


def correlated(seed, n=60, p=10, rho=0.9):
    """Standard form of neighbours that are alike, a few of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    y = X[:, ::3].sum(axis=1) + rng.standard_normal(n)
    return Presolved.of(Problem.from_data(X, y, alpha=0.01 * (seed % 2))).form


def split_of(form):
    return block_split(form, uniform_split(form.A).smallest)


def charge(split, p):
    T = np.zeros((p, p))
    T[split.single, split.single] = split.t
    for cluster, matrix in zip(split.clusters, split.matrices, strict=True):
        T[np.ix_(cluster, cluster)] = matrix
    return T


def optimum(form, k, feature=None):
    """Smallest value of the form over supports of size k (that contain a feature)."""
    best = np.inf
    for support in combinations(range(form.p), k):
        if feature is None or feature in support:
            S = list(support)
            best = min(best, 1 - form.c[S] @ np.linalg.solve(form.A[np.ix_(S, S)], form.c[S]))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_split_is_proven_and_covers_every_feature_once(seed):
    form = correlated(seed, rho=(0.5, 0.9, 0.98)[seed % 3])
    split = split_of(form)
    T = charge(split, form.p)
    assert np.linalg.eigvalsh(form.A - T)[0] >= -1e-14
    assert np.linalg.eigvalsh(T)[0] >= split.floor > 0
    covered = np.concatenate([*split.clusters, split.single])
    assert sorted(covered.tolist()) == list(range(form.p))
    np.testing.assert_allclose(split.Q, form.A - T, atol=1e-15)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(25))
def test_bound_and_exclusions_hold_at_any_dual_vector(seed, k):
    form = correlated(seed, p=9, rho=(0.6, 0.9, 0.97)[seed % 3])
    bound = BlockBound(form, split_of(form), k)
    rng = np.random.default_rng(seed)
    best = optimum(form, k)
    good = bound.maximise(best, best, lambda: False)
    support = rng.choice(form.p, k, replace=False)
    for g in (
        good,
        np.zeros(form.p),
        good + 0.1 * rng.standard_normal(form.p),
        np.eye(form.p)[support[0]],
    ):
        value, with_feature = bound.certify(g)
        assert value <= best + 1e-12
        for j in range(form.p):
            assert value - 1e-9 <= with_feature[j] <= optimum(form, k, j) + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_optimised_dual_vector_is_better_than_the_diagonal(seed):
    form = correlated(seed, n=2000, p=12, rho=0.95)
    k, t = 2, uniform_split(form.A).t
    bound = BlockBound(form, split_of(form), k)
    best = optimum(form, k)
    value = bound.certify(bound.maximise(best, best, lambda: False))[0]
    g = np.linalg.solve(form.A, form.c)
    phi = np.sort((form.c - (form.A - np.diag(t)) @ g) ** 2 / t)
    diagonal = 1 - g @ (form.A - np.diag(t)) @ g - phi[-k:].sum()
    assert diagonal < value <= best


def all_choices(bound, u):
    """(gain, features, vector) of every choice the kernel knows, in plain NumPy."""
    split, shift = bound.split, bound.shift
    lists = []
    for cluster, matrix in zip(split.clusters, split.matrices, strict=True):
        T = matrix - shift * np.eye(len(matrix))
        subsets = [(0, ())]
        subsets += [(1, (i,)) for i in range(len(T))]
        subsets += [(2, pair) for pair in combinations(range(len(T)), 2)]
        if len(T) > 2:
            subsets += [(3, tuple(range(len(T))))]
        options = []
        for price, subset in subsets:
            S = list(subset)
            b = np.linalg.solve(T[np.ix_(S, S)], u[cluster[S]]) if S else np.zeros(0)
            options.append((price, u[cluster[S]] @ b, cluster[S], b))
        lists.append(options)
    for j in split.single:
        b = u[[j]] / (split.t - shift)
        lists.append([(0, 0.0, np.zeros(0, dtype=int), np.zeros(0)), (1, u[j] * b[0], [j], b)])
    partial = [(0, 0.0, frozenset(), np.zeros(len(u)))]
    for options in lists:
        extended = []
        for price, gain, features, vector in partial:
            for more, extra, chosen, b in options:
                if price + more <= bound.k:
                    new = vector.copy()
                    new[list(chosen)] = b
                    extended.append(
                        (price + more, gain + extra, features | set(map(int, chosen)), new)
                    )
        partial = extended
    return partial


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("mu", [1e-1, 1e-2, 1e-9])
def test_kernel_sums_over_all_choices(k, mu):
    form = correlated(k, p=8)
    bound = BlockBound(form, split_of(form), k)
    u = form.c - bound.split.Q @ np.random.default_rng(k).standard_normal(form.p) * 0.1
    b, with_feature = np.zeros(form.p), np.empty(form.p)
    total = choose(u, *bound.options, k, mu, b, with_feature)
    choices = all_choices(bound, u)
    gains = np.array([gain for _, gain, _, _ in choices])
    weights = np.exp((gains - gains.max()) / mu)
    assert total == pytest.approx(gains.max() + mu * np.log(weights.sum()), abs=1e-9)
    if mu > 1e-9:  # the exact maximum needs no mean
        vectors = np.array([vector for *_, vector in choices])
        np.testing.assert_allclose(b, weights @ vectors / weights.sum(), atol=1e-8)
    for j in range(form.p):
        largest = max(gain for _, gain, features, _ in choices if j in features)
        assert with_feature[j] >= largest - 1e-9
        if mu == 1e-9:
            assert with_feature[j] == pytest.approx(largest, abs=1e-7)


@pytest.mark.parametrize("first", range(0, 150, 25))
def test_awkward_problems_get_valid_bounds_or_none(first):
    for seed in range(first, first + 25):
        form = standard_form(make(seed))
        if form is None or form.p > 10:
            continue
        split = split_of(form)
        if split is None:
            continue
        for k in range(1, min(form.p, 4) + 1):
            bound = BlockBound(form, split, k)
            best = optimum(form, k)
            value, with_feature = bound.certify(
                bound.maximise(max(best, 1e-12), best, lambda: False)
            )
            assert value <= best + 1e-9
            assert with_feature.min() >= value - 1e-9


@pytest.mark.parametrize("k", range(3, 8))
def test_fewer_features_than_the_truth_are_proven(k):
    """Diagonal splits leave these open for minutes; blocks close them within a few nodes."""
    X, y, coef = bestk.datasets.make_synthetic(4000, 120, k=8, rho=0.9)
    result = bestk.solve(X, y, k=k, node_limit=3000)
    assert result.status is Status.OPTIMAL
    assert np.isin(result.support, np.flatnonzero(coef)).all()
    records = result.certificate.records
    assert any(len(result.certificate.splits[r.split].clusters) for r in records) or k == 3
    without = bestk.solve(X, y, k=k, node_limit=3000, advanced=Advanced(split="uniform"))
    assert without.lower_bound <= result.objective
    assert result.lower_bound <= without.objective
