"""Splits with clusters: every bound and exclusion they give holds, at any dual vector."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from helpers.forms import uniform_split
from helpers.instances import make, standard_form
from helpers.nodes import root_batch
from helpers.seeds import seeds

import bestk
from bestk import Advanced, Problem, Status
from bestk.base.constants import FREE, IN, OUT
from bestk.base.threads import Workers
from bestk.bounds.cluster_bound import ClusterBound, cluster_bound
from bestk.bounds.clusters import cluster_split
from bestk.bounds.kernels.choice import choose
from bestk.form.presolve import Presolved


def correlated(seed, n=60, p=10, rho=0.9):
    """Standard form of neighbours that are alike, a few of which matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    y = X[:, ::3].sum(axis=1) + rng.standard_normal(n)
    return Presolved.of(Problem.from_data(X, y, alpha=0.01 * (seed % 2))).form


def split_of(form):
    return cluster_split(form, uniform_split(form.A).smallest)


def charge(split, p):
    T = np.zeros((p, p))
    T[split.single, split.single] = split.t
    for cluster, matrix in zip(split.clusters, split.matrices, strict=True):
        T[np.ix_(cluster, cluster)] = matrix
    return T


def free(form):
    return np.zeros(form.p, dtype=np.int8)


def supports(state, k):
    """Every support of at most k features that a node allows."""
    inside = np.flatnonzero(state == IN).tolist()
    others = np.flatnonzero(state == FREE).tolist()
    for size in range(k - len(inside) + 1):
        for more in combinations(others, size):
            yield sorted([*inside, *more])


def optimum(form, state, k, feature=None):
    """Smallest value of the form over the supports of a node (that contain a feature)."""
    best = np.inf
    for S in supports(state, k):
        if feature is None or feature in S:
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
    bound = ClusterBound(form, split_of(form))
    rng = np.random.default_rng(seed)
    node = rng.choice([FREE, FREE, FREE, IN, OUT], form.p).astype(np.int8)
    node[np.flatnonzero(node == IN)[k:]] = FREE
    for state in (free(form), node):
        best = optimum(form, state, k)
        good = bound.maximise(state, k, best, best)
        other = good + 0.1 * rng.standard_normal(form.p)
        for g in (good, np.zeros(form.p), other, np.eye(form.p)[seed % form.p]):
            value, with_feature = bound.certify(g, state, k)
            assert value <= best + 1e-12
            for j in np.flatnonzero(state == FREE):
                assert with_feature[j] <= optimum(form, state, k, j) + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_nodes_of_a_batch_are_bounded_and_fixed(seed):
    form = correlated(seed, n=500, p=9, rho=0.9)
    bound, k = ClusterBound(form, split_of(form)), 3
    states = np.zeros((4, form.p), dtype=np.int8)
    states[1, 0], states[2, 0], states[3, [0, 3]] = IN, OUT, IN
    before = states.copy()
    best = optimum(form, free(form), k)
    batch = root_batch(states)
    cutoff = best * (1 - 1e-4)
    bound.bound_and_fix(batch, k, best, cutoff, Workers(1))
    for state, fixed, value in zip(before, batch.states, batch.bounds, strict=True):
        assert value <= optimum(form, state, k) + 1e-12
        for j in np.flatnonzero(fixed != state):
            assert (state[j], fixed[j]) == (FREE, OUT)
            assert optimum(form, state, k, j) >= cutoff


@pytest.mark.parametrize("seed", range(10))
def test_optimised_dual_vector_is_better_than_the_diagonal(seed):
    form = correlated(seed, n=2000, p=12, rho=0.95)
    k, t = 2, uniform_split(form.A).t
    bound = ClusterBound(form, split_of(form))
    best = optimum(form, free(form), k)
    value = bound.certify(bound.maximise(free(form), k, best, best), free(form), k)[0]
    g = np.linalg.solve(form.A, form.c)
    phi = np.sort((form.c - (form.A - np.diag(t)) @ g) ** 2 / t)
    diagonal = 1 - g @ (form.A - np.diag(t)) @ g - phi[-k:].sum()
    assert diagonal < value <= best


def all_choices(bound, state, u, k):
    """(gain, features, vector) of every choice the kernel knows, in plain NumPy."""
    split, shift = bound.split, bound.shift
    lists = []
    for cluster, matrix in zip(split.clusters, split.matrices, strict=True):
        T = matrix - shift * np.eye(len(matrix))
        inside = set(np.flatnonzero(state[cluster] == IN).tolist())
        available = np.flatnonzero(state[cluster] != OUT).tolist()
        subsets = [()]
        subsets += [(i,) for i in available]
        subsets += list(combinations(available, 2))
        subsets = [(len(s), s) for s in subsets if inside <= set(s)]
        if len(available) > 2:
            subsets += [(max(3, len(inside)), tuple(range(len(T))))]
        options = []
        for price, subset in subsets:
            S = list(subset)
            b = np.linalg.solve(T[np.ix_(S, S)], u[cluster[S]]) if S else np.zeros(0)
            options.append((price, u[cluster[S]] @ b, cluster[S].tolist(), b))
        lists.append(options)
    for j in split.single.tolist():
        b = u[[j]] / (split.t - shift)
        options = [(0, 0.0, [], np.zeros(0))] if state[j] != IN else []
        lists.append(options + ([(1, u[j] * b[0], [j], b)] if state[j] != OUT else []))
    partial = [(0, 0.0, frozenset(), np.zeros(len(u)))]
    for options in lists:
        extended = []
        for price, gain, features, vector in partial:
            for more, extra, chosen, b in options:
                if price + more <= k:
                    new = vector.copy()
                    new[chosen] = b
                    extended.append((price + more, gain + extra, features | set(chosen), new))
        partial = extended
    return partial


@pytest.mark.parametrize("node", ["root", "inside", "outside", "both"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("mu", [1e-1, 1e-2, 1e-9])
def test_kernel_sums_over_all_choices(k, mu, node):
    form = correlated(k, p=8)
    bound = ClusterBound(form, split_of(form))
    state = free(form)
    if node in ("inside", "both"):
        state[[1, 2, 6][: min(k, 3)]] = IN
    if node in ("outside", "both"):
        state[[0, 5]] = OUT
    u = form.c - bound.split.Q @ np.random.default_rng(k).standard_normal(form.p) * 0.1
    b, with_feature = np.zeros(form.p), np.empty(form.p)
    total = choose(bound.options, u, state, k, mu, b, with_feature)
    choices = all_choices(bound, state, u, k)
    gains = np.array([gain for _, gain, _, _ in choices])
    weights = np.exp((gains - gains.max()) / mu)
    assert total == pytest.approx(gains.max() + mu * np.log(weights.sum()), abs=1e-9)
    if mu > 1e-9:  # the exact maximum needs no mean
        vectors = np.array([vector for *_, vector in choices])
        np.testing.assert_allclose(b, weights @ vectors / weights.sum(), atol=1e-8)
    for j in np.flatnonzero(state == FREE):
        containing = [gain for _, gain, features, _ in choices if j in features]
        largest = max(containing, default=-np.inf)
        assert with_feature[j] >= largest - 1e-9
        if mu == 1e-9 and containing:
            assert with_feature[j] == pytest.approx(largest, abs=1e-7)


def test_kernel_knows_when_nothing_can_be_chosen():
    form = correlated(0, p=8)
    bound = ClusterBound(form, split_of(form))
    state = free(form)
    state[:3] = IN
    assert choose(bound.options, form.c, state, 2, 1e-2, np.zeros(8), np.empty(8)) == -np.inf


@seeds(150, chunk=25)
def test_awkward_problems_get_valid_bounds_or_none(seed):
    form = standard_form(make(seed))
    if form is None or form.p > 10:
        return
    split = split_of(form)
    if split is None:
        return
    for k in range(1, min(form.p, 4) + 1):
        bound = ClusterBound(form, split)
        state = free(form)
        best = optimum(form, state, k)
        g = bound.maximise(state, k, max(best, 1e-12), best)
        value, with_feature = bound.certify(g, state, k)
        assert value <= best + 1e-9
        assert with_feature.min() >= value - 1e-9


@pytest.mark.parametrize("seed", range(15))
def test_trees_on_cluster_bounds_agree_with_brute_force(seed, cluster_bounds):
    """However little they gain, cluster bounds take over: IN and OUT nodes are all theirs."""
    rng = np.random.default_rng(seed)
    form = correlated(seed, n=40, p=12, rho=(0.7, 0.95)[seed % 2])
    k, problem = int(rng.integers(2, 6)), form.problem
    advanced = Advanced(enumeration=False)
    result = problem.solve(k, advanced=advanced, gap_tol=(1e-4, 0.0, 0.05)[seed % 3])
    best = optimum(form, free(form), k) * problem.yy
    assert result.status is Status.OPTIMAL
    assert result.lower_bound <= best * (1 + 1e-9)
    assert best <= result.objective * (1 + 1e-9)
    clusters = [bool(s.clusters) for s in result.certificate.splits]
    assert any(clusters) == (result.n_nodes > 1)


@pytest.mark.parametrize("k", range(3, 8))
def test_fewer_features_than_the_truth_are_proven(k):
    """Diagonal splits leave these open for minutes; clusters close them within a few nodes."""
    X, y, coef = bestk.datasets.make_synthetic(4000, 120, k=8, rho=0.9)
    result = bestk.solve(X, y, k=k, node_limit=3000)
    assert result.status is Status.OPTIMAL
    assert np.isin(result.support, np.flatnonzero(coef)).all()
    assert any(split.clusters for split in result.certificate.splits) == (k > 3)
    without = bestk.solve(X, y, k=k, node_limit=3000, advanced=Advanced(split="uniform"))
    assert without.lower_bound <= result.objective
    assert result.lower_bound <= without.objective


def test_charges_below_the_errors_of_the_data_are_not_used():
    form = correlated(0)
    smallest = uniform_split(form.A).smallest
    assert cluster_bound(form, smallest) is not None
    assert cluster_bound(replace(form, eps=1e-2), smallest) is None
