"""Lists of models are verified on batches as on rows, whether these are kept or summed up."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import instances
from helpers.prover import as_batches
from helpers.seeds import seeds

import bestk
from bestk.results.completeness import ListedModel
from bestk.verification.allowance import Allowance
from bestk.verification.completeness import verify_list_batches
from bestk.verification.completeness.sources import Batches, Rows


def listed(seed):
    instance = instances.make(seed)
    found = bestk.near_optimal(
        instance.X, instance.y, instance.k, within=0.3, n_threads=1, **instance.options
    )
    return instance, found.certificate


def on_batches(certificate, instance, rows=5):
    return verify_list_batches(certificate, as_batches(instance, rows), n_threads=1)


def on_rows(certificate, instance):
    weight = instance.options.get("sample_weight")
    return certificate.verify(instance.X, instance.y, weight, n_threads=1)


@seeds(200, chunk=20)
def test_kept_rows_say_what_all_rows_say(seed):
    instance, certificate = listed(seed)
    if certificate is not None:
        whole, found = on_rows(certificate, instance), on_batches(certificate, instance)
        assert replace(found, seconds=0.0) == replace(whole, seconds=0.0)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_false_list_is_refused_on_sums_too(seed, is_weighted, fit_intercept, force):
    force.verifier_keeps(0)
    X, y, _ = bestk.datasets.make_synthetic(60, 8, k=3, rho=0.9, seed=seed)
    weight = 1.0 + np.arange(60) % 3 if is_weighted else None
    y, options = y + 5.0 * fit_intercept, {"fit_intercept": fit_intercept, "sample_weight": weight}
    certificate = bestk.near_optimal(X, y, 3, within=0.5, alpha=0.1, **options).certificate

    def verified(certificate, y=y):
        pieces = [slice(i, i + 7) for i in range(0, 60, 7)]
        rows = [(X[i], y[i]) if weight is None else (X[i], y[i], weight[i]) for i in pieces]
        return verify_list_batches(certificate, rows, n_threads=1)

    found = verified(certificate)
    assert found, str(found)
    assert found.n_models == len(certificate.models) > 1
    best = certificate.models[0]
    others = certificate.models[1:]
    worse = ListedModel(best.support, best.values * 1.5 + 1.0, best.intercept)
    for false, reason in (
        (replace(certificate, models=others), "size|below|above"),
        (replace(certificate, models=(worse, *others)), "above the threshold"),
        (replace(certificate, models=(best, best, *others)), "twice"),
        (replace(certificate, models=(ListedModel(best.support + 99, best.values, 0.0),)), "range"),
    ):
        refused = verified(false)
        assert not refused
        assert any(part in text for text in refused.failures for part in reason.split("|"))
    assert "fingerprint" in verified(certificate, y + 1e-9).failures[0]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_losses_and_sizes_are_those_of_the_formula(seed, fit_intercept):
    """What models are compared with: a tolerance that is too large would hide bad ones."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 4)), 1e3 + rng.standard_normal(30)
    weight = rng.uniform(0.0, 3.0, 30) if seed % 2 else None
    w = np.ones(30) if weight is None else weight
    model = ListedModel(np.array([0, 2]), rng.standard_normal(2), 1e3)
    loss = w @ (y - 1e3 - X[:, [0, 2]] @ model.values) ** 2
    size = w @ (y - (w @ y / w.sum() if fit_intercept else 0.0)) ** 2
    certificate = SimpleNamespace(models=(model,), alpha=0.0, fit_intercept=fit_intercept)
    parts = [slice(i, i + 7) for i in range(0, 30, 7)]
    rows = [(X[i], y[i]) if weight is None else (X[i], y[i], weight[i]) for i in parts]
    batches = Batches(certificate, rows, Allowance())
    batches.digest()
    for source in (batches, Rows(X, y, weight)):
        assert source.losses((model,)) == pytest.approx([loss], rel=1e-9)
        assert source.size(fit_intercept) == pytest.approx(size, rel=1e-9)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_batches_without_rows_change_nothing(fit_intercept, place):
    """Partitions of a filtered table may be empty, the first one too."""
    X, y, _ = bestk.datasets.make_synthetic(60, 8, k=3, rho=0.5)
    found = bestk.near_optimal(X, y, 3, within=0.2, fit_intercept=fit_intercept)
    rows = [(X[:20], y[:20]), (X[20:], y[20:])]
    rows.insert(place, (X[:0], y[:0]))
    verification = verify_list_batches(found.certificate, rows, n_threads=1)
    assert verification, str(verification)
    with_other_rows = [(X + 1.0, y) if len(y) else (X, y) for X, y in rows]
    assert not verify_list_batches(found.certificate, with_other_rows, n_threads=1)


def test_where_there_are_no_rows_or_other_columns():
    instance, certificate = listed(3)
    assert "fingerprint" in verify_list_batches(certificate, []).failures[0]
    fewer = replace(instance, X=instance.X[:, :-1])
    assert "fingerprint" in on_batches(certificate, fewer).failures[0]


def test_dask_collections_come_one_partition_at_a_time():
    da = pytest.importorskip("dask.array")
    X, y, _ = bestk.datasets.make_synthetic(60, 8, k=3, rho=0.5)
    certificate = bestk.near_optimal(X, y, 3, within=0.2).certificate
    rows, target = da.from_array(X, chunks=(13, -1)), da.from_array(y, chunks=13)
    assert certificate.verify(rows, target)
    assert not certificate.verify(rows, target + 1.0)
