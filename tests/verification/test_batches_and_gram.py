"""Proofs are verified on batches and Gram matrices as on rows."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.forcing import forced
from helpers.instances import Instance
from helpers.prover import (
    Form,
    as_batches,
    assert_refused,
    certify,
    checked,
    is_tiny,
    make_problem,
    sealed,
)
from helpers.seeds import seeds

from bestk.base.fingerprint import gram_digest
from bestk.verification.evidence import sources
from bestk.verification.verify import verify_batches, verify_gram


@pytest.mark.parametrize("seed", range(20))
def test_batches_are_verified_in_one_pass(seed):
    instance = make_problem(seed, ("plain", "integers", "tiny_units", "binary")[seed % 4])
    certificate = certify(instance, seed)
    found = verify_batches(certificate, as_batches(instance, 5), n_threads=1)
    assert found, str(found)
    greedy = replace(certificate, lower_bound=certificate.lower_bound * (1 + 1e-6),
                     objective=certificate.objective * (1 + 1e-6))  # fmt: skip
    if not is_tiny(instance, certificate.objective):
        assert_refused(verify_batches(greedy, as_batches(instance, 5), n_threads=1))
    fewer = as_batches(replace(instance, X=instance.X[:-1], y=instance.y[:-1]), 5)
    if "sample_weight" not in instance.options:
        assert "fingerprint" in verify_batches(certificate, fewer).failures[0]


def test_few_batches_are_as_good_as_rows_and_more_are_summed_up():
    """Features 1e-9 apart: products cannot tell them from copies, rows can."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 1] = X[:, 0] + 1e-9 * rng.standard_normal(40)
    y = X[:, 2] + 1e9 * (X[:, 1] - X[:, 0]) + 0.5 * rng.standard_normal(40)
    for options in ({}, {"sample_weight": 1.0 + rng.random(40)}, {"fit_intercept": True}):
        instance = Instance(regime="plain", X=X, y=y, k=3, options=options)
        certificate = certify(instance)
        whole = checked(instance, certificate)
        assert whole
        found = verify_batches(certificate, as_batches(instance, 7), n_threads=1)
        assert replace(found, seconds=0.0) == replace(whole, seconds=0.0)
        with forced() as force:
            force.verifier_keeps(8 * 7 * 20)  # 20 rows
            found = verify_batches(certificate, as_batches(instance, 7), n_threads=1)
        assert any("products" in text for text in found.assumptions)


def test_rows_are_dropped_when_they_are_too_many(force):
    force.verifier_keeps(8 * 4 * 10)
    kept = sources._Kept(2)
    assert kept.add(np.ones((6, 2)), np.ones(6), None)
    assert kept.add(np.ones((4, 2)), np.ones(4), np.full(4, 2.0))
    assert not kept.add(np.ones((1, 2)), np.ones(1), None)
    X, _, weight = kept.release()
    assert X.shape == (10, 2)
    assert weight.tolist() == [1.0] * 6 + [2.0] * 4
    assert kept.table.nbytes == 0
    assert kept.table.base is None


@seeds(30)
@pytest.mark.parametrize("lower", [0.0, -np.inf])
def test_dependent_features_with_signs_are_judged_by_products(seed, force, lower):
    """Three rows, four features, one sign: bounded where no mix of these features is zero."""
    force.verifier_keeps(0)
    bounds = (0.0, np.inf) if lower == 0.0 else (-np.inf, 0.0)
    rng = np.random.default_rng(seed)
    X, y = np.abs(rng.standard_normal((3, 4))) + 0.1, rng.standard_normal(3)
    instance = Instance(regime="plain", X=X, y=y, k=4, options={"bounds": bounds})
    certificate = certify(instance, leaf_size=4)
    found = verify_batches(certificate, as_batches(instance, 3), n_threads=1)
    if is_tiny(instance, certificate.objective):
        return
    assert found, str(found)
    assert found.assumptions == certificate.assumptions
    form, G, c = Form(instance), X.T @ X, X.T @ y
    by_gram = verify_gram(sealed(certificate, gram_digest(G, c, form.yy)), G, c, form.yy)
    assert by_gram, str(by_gram)
    more = certificate.objective * (1 + 1e-7)
    greedy = replace(certificate, lower_bound=more, objective=more)
    assert_refused(verify_batches(greedy, as_batches(instance, 3), n_threads=1))


@pytest.mark.parametrize("seed", range(20))
def test_gram_matrices_are_verified(seed):
    instance = make_problem(3 * seed, ("plain", "integers", "huge_units")[seed % 3])
    instance.options.pop("sample_weight", None)
    X, y = instance.X.astype(float), instance.y.astype(float)
    G, c, yy = X.T @ X, X.T @ y, float(y @ y)
    certificate = sealed(certify(instance, seed), gram_digest(G, c, yy))
    found = verify_gram(certificate, G, c, yy, n_threads=1)
    assert found, str(found)
    greedy = replace(certificate, lower_bound=certificate.lower_bound * (1 + 1e-6),
                     objective=certificate.objective * (1 + 1e-6))  # fmt: skip
    if not is_tiny(instance, certificate.objective):
        assert_refused(verify_gram(greedy, G, c, yy, n_threads=1))
    # Rows and products are different data.
    assert "fingerprint" in checked(instance, certificate).failures[0]
    assert "fingerprint" in verify_gram(certificate, G, c, yy * (1 + 1e-15)).failures[0]


def test_many_rows_in_batches_keep_their_digits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 6)) + 2.0
    y = 10 * X[:, 0] - 8 * X[:, 1] + 0.1 * rng.standard_normal(30_000)
    instance = Instance(regime="plain", X=X, y=y, k=2, options={"fit_intercept": True})
    certificate = certify(instance)
    assert verify_batches(certificate, as_batches(instance, 4000))
    assert checked(instance, certificate)
