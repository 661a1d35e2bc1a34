"""Features that do not count in k: best models, proofs, and everything else that takes them."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from helpers import instances
from helpers.checks import configuration
from helpers.seeds import seeds

import bestk
from bestk import Status


def with_free(seed):
    """An instance and some of its features, which are neither included nor excluded."""
    instance = instances.make(seed)
    rng = np.random.default_rng([seed, 5])
    taken = {*instance.options.get("include", ()), *instance.options.get("exclude", ())}
    others = [j for j in range(instance.X.shape[1]) if j not in taken]
    free = sorted(rng.permutation(others)[: rng.integers(0, min(3, len(others)) + 1)].tolist())
    instance.k = max(min(instance.k, len(others)), len(instance.options.get("include", ())))
    return instance, free


def losses_of(instance, free):
    """Objectives of all supports with at most k features besides the free ones."""
    options = instance.options
    include, exclude = set(options.get("include", ())), set(options.get("exclude", ()))
    others = [j for j in range(instance.X.shape[1]) if j not in {*free, *exclude}]
    return {
        (chosen := tuple(sorted({*some, *free}))): instance.loss(chosen)
        for size in range(len(include), min(instance.k, len(others)) + 1)
        for some in combinations(others, size)
        if include <= set(some)
    }


def slack_of(instance, optimum):
    y, weight = instance.y.astype(float), instance.options.get("sample_weight", 1.0)
    yy = float((weight * y * y).sum())
    return instances.tolerance(instance, optimum, yy) + 1e-9 * optimum


@seeds(1000, chunk=50)
def test_models_are_those_of_brute_force(seed):
    instance, free = with_free(seed)
    settings = configuration(seed)
    optimum = min(losses_of(instance, free).values())
    slack = slack_of(instance, optimum)
    result = instance.solve(free=free, **settings)
    assert result.lower_bound <= optimum + slack
    assert result.objective >= optimum - slack
    assert len(np.setdiff1d(np.flatnonzero(result.coef), free)) <= instance.k == result.k
    if result.status is Status.OPTIMAL:
        reach = settings["gap_tol"] * max(result.objective, 1e-12 * result.yy)
        assert result.objective <= optimum + slack + reach
    weight = instance.options.get("sample_weight")
    assert result.certificate.verify(instance.X, instance.y, weight, n_threads=1)


@seeds(300, chunk=50)
def test_certificates_know_what_is_free(seed):
    instance, free = with_free(seed)
    result = instance.solve(free=free, gap_tol=0.0)
    weight = instance.options.get("sample_weight")
    certificate = result.certificate
    # In rational numbers nothing is dependent that is so up to rounding only.
    if instance.regime in ("plain", "square", "integers", "binary") and len(instance.y) <= 12:
        assert certificate.verify(instance.X, instance.y, weight, exact=True)
    if free:
        # Another question is seen by its fingerprint, and a model that is too large by itself.
        fewer = replace(certificate, free=certificate.free[1:])
        assert not fewer.verify(instance.X, instance.y, weight, n_threads=1)
    more = [j for j in range(instance.X.shape[1]) if j not in free]
    if more:
        other = replace(certificate, free=np.append(certificate.free, more[0]))
        assert not other.verify(instance.X, instance.y, weight, n_threads=1)


@seeds(300, start=400, chunk=50)
def test_lists_know_what_is_free(seed):
    instance, free = with_free(seed)
    rng = np.random.default_rng([seed, 6])
    within = float(rng.choice([0.0, 0.1, 1.0]))
    found = bestk.near_optimal(
        instance.X, instance.y, instance.k, within=within, free=free, n_threads=1,
        **instance.options,
    )  # fmt: skip
    slack = 3 * slack_of(instance, found.threshold) + 3e-12 * found.yy
    for support, loss in losses_of(instance, free).items():
        if loss < found.complete_below - slack:
            assert found.contains(list(support))
        if found.contains(list(support)):
            assert loss <= found.threshold + slack
    assert found.complete or found.status is Status.PERFECT_FIT
    if found.certificate is not None:
        weight = instance.options.get("sample_weight")
        assert found.certificate.verify(instance.X, instance.y, weight, n_threads=1)


@pytest.fixture(scope="module")
def trend():
    """A trend that explains most, and two features that matter beside it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 10))
    X[:, 9] = np.linspace(-2.0, 2.0, 80)
    y = 5.0 * X[:, 9] + X[:, 2] - X[:, 4] + 0.3 * rng.standard_normal(80)
    return X, y


def test_a_trend_does_not_count(trend):
    X, y = trend
    result = bestk.solve(X, y, 2, free=[9], fit_intercept=True)
    assert result.support.tolist() == [2, 4, 9]
    assert result.k == 2
    same = bestk.solve(X, y, 3, include=[9], fit_intercept=True)
    assert result.objective == same.objective
    assert bestk.solve(X, y, 0, free=[9]).support.tolist() == [9]
    both = bestk.solve(X, y, 1, free=[9], include=[9, 2])
    assert both.support.tolist() == [2, 9]


def test_everything_takes_free_features(trend):
    X, y = trend
    problem = bestk.Problem.from_data(X, y)
    path = problem.solve_path([0, 1, 2], free=[9])
    assert [len(path[k].support) for k in path] == [1, 2, 3]
    assert bestk.solve_path(X, y, [2], free=[9])[2].objective == path[2].objective
    grid = problem.solve_grid([1, 2], [0.0, 1.0], free=[9])
    assert all(9 in result.support for row in grid.values() for result in row.values())
    second = problem.runner_up(path[2], free=[9])
    assert 9 in second.support
    assert second.support.tolist() != [2, 4, 9]
    model = bestk.SparseRidge(k=2, free=[9]).fit(X, y)
    assert np.flatnonzero(model.coef_).tolist() == [2, 4, 9]
    assert 9 in model.near_optimal(0.1).necessary
    chosen = bestk.SparseRidgeCV(ks=[1, 2], alphas=[0.1], cv=3, free=[9]).fit(X, y)
    assert chosen.coef_[9] != 0.0
    stable = bestk.stability(X, y, 2, n_resamples=5, free=[9], random_state=0)
    assert stable.frequencies[9] == 1.0
    assert 9 in bestk.beam_search(X, y, 2, free=[9]).support


def test_a_run_with_free_features_is_resumed(trend, tmp_path):
    X, y = trend
    path = tmp_path / "run.ckpt"
    bestk.solve(X, y, 3, free=[9], checkpoint=path, node_limit=0, advanced=bestk.Advanced(
        enumeration=False))  # fmt: skip
    again = bestk.resume(path, X, y)
    assert again.objective == pytest.approx(bestk.solve(X, y, 3, free=[9]).objective)
    assert again.certificate.free.tolist() == [9]


def test_names_and_conflicts_are_told(trend):
    X, y = trend
    with pytest.raises(ValueError, match="both free and exclude"):
        bestk.solve(X, y, 2, free=[1], exclude=[1])
    with pytest.raises(ValueError, match="free"):
        bestk.solve(X, y, 2, free=["nobody"])
    with pytest.raises(ValueError, match="initial_support has 3"):
        bestk.solve(X, y, 2, free=[9], initial_support=[1, 2, 3, 9])
    kept = bestk.solve(X, y, 2, free=[9], initial_support=[1, 2, 9])
    assert kept.support.tolist() == [2, 4, 9]


def test_a_file_keeps_what_is_free(trend, tmp_path):
    X, y = trend
    result = bestk.solve(X, y, 2, free=[9])
    result.certificate.save(tmp_path / "proof.npz")
    again = bestk.Certificate.load(tmp_path / "proof.npz")
    assert again.free.tolist() == [9]
    assert again.verify(X, y)
    assert "Not counted" in result.to_html()
