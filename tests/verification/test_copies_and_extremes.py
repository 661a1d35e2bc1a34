"""Copies that were left out, extreme units and weights, large means, no variation."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.instances import Instance, make
from helpers.prover import EMPTY, Form, as_batches, certify, checked, sealed

from bestk.base.fingerprint import rows_digest
from bestk.results.certificate import Certificate
from bestk.verification.verify import verify_batches


def with_copies(instance: Instance, pairs) -> Certificate:
    """A proof that leaves the copies out."""
    hidden = sorted({j for j, _ in pairs})
    shown = replace(instance, options={**instance.options, "exclude": hidden})
    certificate = certify(shown, blocks=False)
    copies = np.array(pairs)
    certificate = replace(certificate, exclude=EMPTY, copies=copies)
    return sealed(certificate, rows_digest(instance.X, instance.y))


def test_copies_may_be_left_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 6))
    y = X[:, 0] + rng.standard_normal(20)
    X[:, 4] = -2.0 * X[:, 1]  # exact
    instance = Instance(regime="plain", X=X, y=y, k=2)
    found = checked(instance, with_copies(instance, [(4, 1)]))
    assert found
    assert not found.assumptions
    assert checked(instance, with_copies(instance, [(4, 1)]), exact=True)
    X[:, 3] = 3.0 * X[:, 0]  # rounded
    found = checked(instance, with_copies(instance, [(3, 0), (4, 1)]))
    assert found, str(found)
    assert "agree to" in found.assumptions[0]
    assert not checked(instance, with_copies(instance, [(3, 0)]), exact=True)
    for pairs in ([(5, 1)], [(4, 5)], [(1, 4), (4, 1)], [(4, 4)]):
        for exact in (False, True):
            found = checked(instance, with_copies(instance, pairs), exact=exact)
            assert not found, pairs
            assert "cop" in found.failures[0] or "multiple" in found.failures[0]


def test_copies_may_not_be_left_out_with_a_penalty_or_bounds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    X[:, 3] = X[:, 0]
    y = X[:, 0] + rng.standard_normal(20)
    for options in ({"alpha": 1.0}, {"bounds": (-1.0, 1.0)}, {"include": [3]}):
        instance = Instance(regime="plain", X=X, y=y, k=2, options=options)
        certificate = with_copies(replace(instance, options={}), [(3, 0)])
        form = Form(instance)
        certificate = replace(certificate, alpha=form.alpha, lower=form.lower, upper=form.upper,
                              include=form.include)  # fmt: skip
        found = checked(instance, sealed(certificate, rows_digest(X, y)))
        assert not found
        assert "cop" in found.failures[0]


@pytest.mark.parametrize("factor", [1e-180, 1e-120, 1e120, 1e180])
def test_extreme_units_are_no_problem(factor):
    instance = make(0, "plain")
    instance.options = {}
    plain = certify(instance)
    scaled = replace(instance, X=instance.X * [factor, *[1.0] * (instance.X.shape[1] - 1)])
    coef = plain.coef.copy()
    coef[0] /= factor
    certificate = replace(plain, coef=coef)
    found = checked(scaled, sealed(certificate, rows_digest(scaled.X, scaled.y)))
    assert found, str(found)


@pytest.mark.parametrize("factor", [2.0**-900, 2.0**900])
def test_extreme_weights_are_no_problem(factor):
    instance = make(0, "plain")
    instance.options = {"sample_weight": np.random.default_rng(0).random(len(instance.y))}
    plain = certify(instance)
    scaled = replace(
        instance, options={"sample_weight": factor * instance.options["sample_weight"]}
    )
    objective = plain.objective * factor
    certificate = replace(plain, objective=objective, lower_bound=objective)
    digest = rows_digest(scaled.X, scaled.y, scaled.options["sample_weight"])
    found = checked(scaled, sealed(certificate, digest))
    assert found, str(found)


def test_large_means_beside_an_intercept():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) + 1e6 * rng.standard_normal(6)
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(40) + 1e5
    instance = Instance(regime="plain", X=X, y=y, k=2, options={"fit_intercept": True})
    certificate = certify(instance)
    assert checked(instance, certificate), str(checked(instance, certificate))
    assert checked(instance, certificate, exact=True)
    assert verify_batches(certificate, as_batches(instance, 7))


def test_a_target_without_variation_needs_no_proof():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    for y in (np.zeros(20), np.full(20, 0.1)):
        instance = Instance(regime="plain", X=X, y=y, k=2, options={"fit_intercept": True})
        certificate = certify(instance)
        certificate = replace(certificate, coef=np.zeros(4), intercept=float(y[0]))
        assert checked(instance, certificate)
        assert checked(instance, certificate, exact=True)
        assert verify_batches(certificate, as_batches(instance, 6))
        for wrong in ({"intercept": 1.0}, {"lower_bound": 0.1, "objective": 0.1}):
            assert not checked(instance, replace(certificate, **wrong))
