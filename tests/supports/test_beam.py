"""Upper bounds: beam search ranks by exact losses, swaps only improve."""

from itertools import combinations

import numpy as np
import pytest
from helpers.instances import bounded_fit, make, standard_form, tolerance
from helpers.seeds import seeds

import bestk
from bestk import Problem
from bestk.form.standard_form import StandardForm
from bestk.supports import beam
from bestk.supports.beam import beam_supports, fit_supports, improve_by_swaps
from bestk.supports.growth import best_children, extend, join_scores


def random_form(seed, p=8, bounds=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, p)) + 0.7 * rng.standard_normal((20, 1))
    y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.5)) + 0.5 * rng.standard_normal(20)
    return StandardForm.of(Problem.from_data(X, y, bounds=bounds), np.arange(p))


def loss(form, support):
    """The value of a support: 1 - c'b on it, boxes respected."""
    S = list(support)
    if not S:
        return 1.0
    L = np.linalg.cholesky(form.A[np.ix_(S, S)])
    b = bounded_fit(L.T, np.linalg.solve(L, form.c[S]), form.lo[S], form.hi[S])
    return 1.0 - 2 * form.c[S] @ b + b @ form.A[np.ix_(S, S)] @ b


def best_loss(form, k, include=(), allowed=None):
    allowed = range(form.p) if allowed is None else np.flatnonzero(allowed)
    supports = [S for S in combinations(allowed, k) if set(include) <= set(S)]
    return min(loss(form, S) for S in supports)


NOTHING = np.zeros(0, dtype=np.intp)
BOXES = [None, (-0.2, 0.2), (0.0, np.inf)]


@seeds(5)
@pytest.mark.parametrize("bounds", BOXES)
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_wide_beam_is_brute_force(seed, bounds, k):
    form = random_form(seed, bounds=bounds)
    supports = beam_supports(form, NOTHING, k, width=500)
    assert supports.shape[1] == k
    assert loss(form, supports[0]) == pytest.approx(best_loss(form, k), abs=1e-8)


@pytest.mark.parametrize("bounds", BOXES)
@pytest.mark.parametrize("width", [1, 3, 50])
def test_beam_returns_distinct_supports_best_first(bounds, width):
    form = random_form(7, p=12, bounds=bounds)
    supports = beam_supports(form, NOTHING, 4, width=width)
    assert len(supports) <= width
    assert len({tuple(sorted(S)) for S in supports.tolist()}) == len(supports)
    assert all(len(set(S)) == 4 for S in supports.tolist())
    losses = [loss(form, S) for S in supports]
    assert losses == pytest.approx(sorted(losses), abs=1e-9)


@seeds(10)
def test_each_step_takes_the_best_refitted_child(seed):
    """Width 1: the ranking by exact gains equals a refit of every child."""
    form = random_form(seed)
    support = []
    for k in range(1, 6):
        children = [j for j in range(form.p) if j not in support]
        support.append(min(children, key=lambda j: loss(form, [*support, j])))
        found = beam_supports(form, NOTHING, k, width=1)[0]
        assert sorted(found.tolist()) == sorted(support)


@seeds(5)
@pytest.mark.parametrize("bounds", BOXES)
def test_beam_keeps_included_and_avoids_forbidden_features(seed, bounds):
    form = random_form(seed, bounds=bounds)
    allowed = np.ones(8, dtype=bool)
    allowed[[0, 5]] = False
    include = np.array([2, 6])
    supports = beam_supports(form, include, 4, width=200, allowed=allowed)
    for S in supports.tolist():
        assert {2, 6} <= set(S)
        assert not {0, 5} & set(S)
    best = best_loss(form, 4, include, allowed)
    assert loss(form, supports[0]) == pytest.approx(best, abs=1e-8)


def test_beam_takes_everything_when_k_is_large():
    form = random_form(0)
    assert sorted(beam_supports(form, NOTHING, 20)[0].tolist()) == list(range(8))


@pytest.mark.parametrize("bounds", BOXES)
@pytest.mark.parametrize("seed", range(10))
def test_swaps_never_worsen_and_end_where_no_swap_helps(bounds, seed):
    form = random_form(seed, bounds=bounds)
    rng = np.random.default_rng(seed)
    start = rng.permutation(8)[:3]
    keep = start[:1]
    mask = np.ones(8, dtype=bool)
    mask[rng.integers(8)] = False
    end = improve_by_swaps(form, start, keep, mask)
    assert (np.diff(end) > 0).all()
    assert len(end) == 3
    assert set(keep) <= set(end)
    assert all(mask[j] or j in start for j in end)
    assert loss(form, end) <= loss(form, start) + 1e-10
    if bounds is None:
        for old in set(end) - set(keep):
            for new in set(np.flatnonzero(mask)) - set(end):
                assert loss(form, [*(set(end) - {old}), new]) >= loss(form, end) - 1e-10


def test_fit_supports_agrees_with_direct_fits():
    for bounds in BOXES:
        form = random_form(3, bounds=bounds)
        supports = np.array(list(combinations(range(8), 3)))
        coefs, values = fit_supports(form, supports)
        assert coefs.shape == supports.shape
        np.testing.assert_allclose(values, [loss(form, S) for S in supports], atol=1e-9)


@seeds(200, chunk=50)
def test_beam_search_returns_an_admissible_model(seed):
    instance = make(seed)
    result = bestk.beam_search(instance.X, instance.y, instance.k, **instance.options, width=5)
    form = standard_form(instance)
    optimum = instance.brute_force()
    yy = form.problem.yy if form is not None else 0.0
    assert result.objective >= optimum - tolerance(instance, optimum, yy)
    assert result.lower_bound <= optimum + tolerance(instance, optimum, yy)
    assert len(result.support) <= instance.k
    lower, upper = instance.options.get("bounds", (-np.inf, np.inf))
    assert (lower <= result.coef).all()
    assert (result.coef <= upper).all()


def test_beam_search_finds_a_clear_signal():
    X, y, coef = bestk.datasets.make_synthetic(200, 40, 5, rho=0.3)
    result = bestk.beam_search(X, y, 5)
    assert result.support.tolist() == np.flatnonzero(coef).tolist()
    assert result.n_nodes == 0


@pytest.mark.parametrize("bounds", [None, (-0.3, 0.3)])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_beam_that_is_stopped_completes_one_support(bounds, steps):
    form = random_form(5, p=15, bounds=bounds)
    include, allowed = np.array([3]), np.ones(15, dtype=bool)
    allowed[:2] = False
    calls = iter(range(100))
    found = beam_supports(
        form, include, 6, width=20, allowed=allowed, stop=lambda: next(calls) >= steps
    )
    assert found.shape == (1, 6)
    assert len(set(found[0])) == 6
    assert 3 in found[0]
    assert not set(found[0]) & {0, 1}
    same = improve_by_swaps(form, found[0], include, allowed, lambda: True)
    assert same.tolist() == found[0].tolist()


def test_with_every_feature_there_is_nothing_to_grow_or_to_swap():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((10, 400)), rng.standard_normal(10)
    result = bestk.solve(X, y, k=500, alpha=1.0)
    assert result.status is bestk.Status.OPTIMAL
    assert result.n_nodes == 1
    np.testing.assert_allclose(
        result.coef, np.linalg.solve(X.T @ X + np.eye(400), X.T @ y), atol=1e-10
    )


class Plain:
    """A matrix that is not known to be an array: its steps are those of NumPy."""

    def __init__(self, matrix):
        self.sums, self.submatrix, self.rows = matrix.sums, matrix.submatrix, matrix.rows


@seeds(20)
def test_compiled_steps_are_those_of_numpy(seed):
    """Level by level: the same children, and the same is known about them."""
    form = random_form(seed, p=4 + seed % 9)
    rng, p = np.random.default_rng(seed), form.p
    mask, width = rng.random(p) < 0.9, int(rng.choice([1, 3, 20]))
    known = (np.zeros((1, 0), dtype=np.intp), np.zeros((1, 0, 0)),
             np.ones((1, p)), form.c[None].copy(), np.zeros(1))  # fmt: skip
    for _ in range(int(mask.sum())):
        supports, _, variance, moment, gain = known
        found = best_children(supports, gain, variance, moment, mask, beam._tags(p), width)
        total = np.where(mask, gain[:, None] + beam._exact_gains(variance, moment), -np.inf)
        np.put_along_axis(total, supports, -np.inf, axis=1)
        for mine, twin in zip(found, beam._distinct_best(supports, total, width), strict=True):
            np.testing.assert_array_equal(mine, twin)
        plain = beam._extended(Plain(form.matrix), *known, *found)
        known = extend(form.A, *known, *found)
        for mine, twin in zip(known, plain, strict=True):
            np.testing.assert_allclose(mine, twin, atol=1e-9)


@seeds(10)
def test_scores_of_swaps_are_losses_after_a_refit(seed):
    form = random_form(seed, p=7)
    rest = np.array(list(combinations(range(7), 3)))
    scores = np.empty((len(rest), 7))
    join_scores(form.A, form.c, rest, scores)
    for support, row in zip(rest.tolist(), scores, strict=True):
        for j in set(range(7)) - set(support):
            assert -row[j] == pytest.approx(loss(form, [*support, j]), abs=1e-8)
