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
from bestk.bounds.clusters import ClusterSplit, cluster_split
from bestk.bounds.kernels.choice import enter, largest_gain, largest_gains_with, room_for_choices
from bestk.bounds.kernels.cluster_ascent import begin, climb, sparse_times, work_for
from bestk.bounds.kernels.smoothing import smoothed_gain
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
    """(gain, features, vector) of every choice the kernels know, in plain NumPy."""
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


class Kernels:
    """What the kernels say about the choices of a node."""

    def __init__(self, bound, state, u, k, mu):
        options, p = bound.options, len(u)
        room = room_for_choices(options, k)
        room.top[:], room.before[:], room.n_before[:] = np.nan, np.nan, np.nan  # nobody's numbers
        enter(options, state, room)
        self.mean, self.with_feature = np.full(p, np.nan), np.full(p, np.nan)
        self.smoothed, self.also_largest = smoothed_gain(options, u, state, k, mu, room, self.mean)
        self.largest = largest_gain(options, u, state, k, room)
        largest_gains_with(options, state, k, room, self.with_feature)


def judge_kernels(bound, state, u, k, mu):
    """Compare with plain sums over all choices."""
    found, choices = Kernels(bound, state, u, k, mu), all_choices(bound, state, u, k)
    gains = np.array([gain for _, gain, _, _ in choices])
    if len(gains) == 0:
        assert found.smoothed == found.largest == found.also_largest == -np.inf
        assert not found.mean.any()
        return
    scale = 1.0 + gains.max()
    assert found.largest == pytest.approx(gains.max(), abs=1e-11 * scale)
    assert found.also_largest == pytest.approx(found.largest, abs=1e-11 * scale)
    weights = np.exp((gains - gains.max()) / mu)
    smoothed = gains.max() + mu * np.log(weights.sum())
    assert found.smoothed == pytest.approx(smoothed, abs=1e-11 * scale + 1e-8 * mu)
    if mu > 1e-6 * scale:  # below, rounding decides between gains
        vectors = np.array([vector for *_, vector in choices])
        mean = weights @ vectors / weights.sum()
        np.testing.assert_allclose(found.mean, mean, atol=1e-6 * (1.0 + np.abs(vectors).max()))
    for j in np.flatnonzero(state == FREE):
        containing = [gain for _, gain, features, _ in choices if j in features]
        largest = max(containing, default=-np.inf)
        assert found.with_feature[j] == pytest.approx(largest, abs=1e-11 * scale)


@pytest.mark.parametrize("node", ["root", "inside", "outside", "both"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("mu", [1e-1, 1e-2, 1e-9])
def test_kernels_know_all_choices(k, mu, node):
    form = correlated(k, p=8)
    bound = ClusterBound(form, split_of(form))
    state = free(form)
    if node in ("inside", "both"):
        state[[1, 2, 6][: min(k, 3)]] = IN
    if node in ("outside", "both"):
        state[[0, 5]] = OUT
    u = form.c - bound.split.Q @ np.random.default_rng(k).standard_normal(form.p) * 0.1
    judge_kernels(bound, state, u, k, mu)


def random_bound(rng):
    """Clusters of any size, the last one perhaps of one, and single features, in any order."""
    sizes = rng.choice([1, 2, 3, 4, 5], rng.integers(1, 4))[: rng.integers(1, 4)]
    sizes = sizes[np.cumsum(sizes) <= 8] if sizes[0] <= 8 else sizes[:1]
    p = int(sizes.sum() + rng.integers(0, 5))
    parts = np.split(rng.permutation(p), np.cumsum(sizes))
    matrices = []
    for size in sizes:
        X = rng.standard_normal((size + 2, size))
        T = X.T @ X / (size + 2) + 0.05 * np.eye(size)
        matrices.append(T / np.linalg.eigvalsh(T)[-1])
    split = ClusterSplit(
        Q=np.eye(p), clusters=parts[:-1], matrices=matrices, single=np.sort(parts[-1]), t=0.3,
        floor=0.01,
    )  # fmt: skip
    return ClusterBound(replace(correlated(0, p=3), eps=0.0), split), p


@seeds(400, chunk=50)
def test_kernels_know_all_choices_of_random_nodes(seed):
    rng = np.random.default_rng(seed)
    bound, p = random_bound(rng)
    u = rng.standard_normal(p)
    if seed % 3 == 1:
        u = rng.integers(-1, 2, p).astype(float)  # ties, and features that gain nothing
    shares = [1.0, 0.0, 0.0] if seed % 4 == 0 else [0.6, 0.2, 0.2]
    state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), p, p=shares)
    for k in {0, 1, 2, int(rng.integers(p + 1)), p, p + 2}:
        judge_kernels(bound, state, u, k, 10.0 ** rng.integers(-9, 7))


@seeds(60, chunk=20)
def test_mean_choice_is_the_gradient(seed):
    rng = np.random.default_rng(seed)
    bound, p = random_bound(rng)
    u, state, k = rng.standard_normal(p), np.zeros(p, dtype=np.int8), int(rng.integers(1, p + 1))
    mu, h = 10.0 ** rng.uniform(-2, 1), 1e-6
    mean = Kernels(bound, state, u, k, mu).mean
    for j in range(p):
        step = h * np.eye(p)[j]
        up, down = (Kernels(bound, state, u + sign * step, k, mu).smoothed for sign in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(2 * mean[j], abs=1e-5 * (1 + 1 / mu))


def test_kernels_know_when_nothing_can_be_chosen():
    form = correlated(0, p=8)
    bound = ClusterBound(form, split_of(form))
    state = free(form)
    state[:3] = IN
    assert Kernels(bound, state, form.c, 2, 1e-2).largest == -np.inf


def plain_times(Q, x):
    return np.array([sum(Q[i, j] * x[j] for j in range(len(x))) for i in range(len(x))])


@pytest.mark.parametrize("seed", range(10))
def test_product_with_many_zeros(seed):
    rng = np.random.default_rng(seed)
    Q, x, out = rng.standard_normal((9, 9)), rng.standard_normal(9), np.full(9, np.nan)
    Q, x = Q + Q.T, x * (rng.random(9) < 0.1 * seed)
    sparse_times(Q, x, out)
    np.testing.assert_allclose(out, plain_times(Q, x), atol=1e-14)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("seed", range(10))
def test_ascent_rises_to_the_top_however_often_it_is_called(seed, k):
    """One step at a time or all at once; what it says of its point is so; the top is stationary."""
    form = correlated(seed, n=200, p=9)
    bound, state = ClusterBound(form, split_of(form)), free(form)
    clusters, Q, mu, ends = bound.clusters, bound.split.Q, 1e-2, []
    for steps in (1, 7, 400):
        work = work_for(clusters, k, 5)
        begin(clusters, work, np.zeros(form.p), state, k, mu)
        values = [work.here.values[0]]
        for _ in range(400 // steps):
            if climb(clusters, work, state, k, mu, 2.0, 0.0, steps):
                break
            values.append(work.here.values[0])
        assert values == sorted(values)
        point = work.here
        np.testing.assert_allclose(point.Qg, Q @ point.g, atol=1e-10)
        np.testing.assert_allclose(point.Qgradient, Q @ point.gradient, atol=1e-10)
        known = Kernels(bound, state, form.c - Q @ point.g, k, mu)
        rest = 1 - point.g @ Q @ point.g
        assert point.values == pytest.approx([rest - known.smoothed, rest - known.largest])
        np.testing.assert_allclose(point.gradient, known.mean - point.g, atol=1e-8)
        ends.append(point.values[0])
    assert max(ends) - min(ends) < 1e-9
    slope = np.sqrt(work.here.gradient @ Q @ work.here.gradient)
    assert slope < 1e-3


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
    if k != 7:  # which now and then closes before clusters are due
        assert any(split.clusters for split in result.certificate.splits) == (k > 3)
    without = bestk.solve(X, y, k=k, node_limit=3000, advanced=Advanced(split="uniform"))
    assert without.lower_bound <= result.objective
    assert result.lower_bound <= without.objective


def test_charges_below_the_errors_of_the_data_are_not_used():
    form = correlated(0)
    smallest = uniform_split(form.A).smallest
    assert cluster_bound(form, smallest) is not None
    assert cluster_bound(replace(form, eps=1e-2), smallest) is None
