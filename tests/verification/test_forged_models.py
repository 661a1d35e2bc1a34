"""Certificates whose model is not what they say, with coefficients that nobody would report."""

from dataclasses import replace

import numpy as np
import pytest

import bestk
from bestk.verification import verify_batches, verify_gram

HUGE = [1e150, 1e153, 1e160, -1e300, 1e308]


def data(seed=0):
    """Five columns, of which two are equal."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5))
    X[:, 1] = X[:, 0]
    return X, X[:, 0] + 0.3 * rng.standard_normal(20)


def refused(certificate, X, y, *, exact=True):
    """The failures of all ways to verify, one after the other; each has some."""
    found = [
        certificate.verify(X, y),
        verify_batches(certificate, [(X[:9], y[:9]), (X[9:], y[9:])]),
    ]
    found += [certificate.verify(X, y, exact=True)] if exact else []
    assert not any(found)
    return [" ".join(one.failures) for one in found]


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_model_beyond_all_numbers_is_refused(value, fit_intercept):
    """An infinite objective is within any share of itself, of whatever is claimed."""
    X, y = data()
    certificate = bestk.solve(X, y, 2, fit_intercept=fit_intercept).certificate
    coef = certificate.coef.copy()
    coef[np.flatnonzero(coef)[0]] = value
    for failures in refused(replace(certificate, coef=coef), X, y):
        assert "objective" in failures
    if fit_intercept:
        refused(replace(certificate, intercept=value), X, y)


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("is_flat", [False, True])
def test_a_model_beyond_all_numbers_is_refused_within_constraints(value, is_flat):
    X, y = data()
    y = np.zeros(20) if is_flat else y
    certificate = bestk.solve(X, y, 2, constraints="x0 + x1 <= 5").certificate
    coef = certificate.coef.copy()
    coef[0] = -value
    refused(replace(certificate, coef=coef), X, y, exact=False)


@pytest.mark.parametrize("value", HUGE)
def test_a_model_beyond_all_numbers_is_refused_on_products(value):
    X, y = data()
    products = X.T @ X, X.T @ y, float(y @ y)
    certificate = bestk.Problem.from_gram(*products).solve(2).certificate
    coef = certificate.coef.copy()
    coef[0] = value
    assert not verify_gram(replace(certificate, coef=coef), *products)


@pytest.mark.parametrize("size", [1e4, 1e8, 1e12, 1e14, 1e15, 1e16, 1e100])
def test_terms_that_cancel_hide_no_bad_model(size):
    """A model that predicts nothing is not the best one, however its terms are rounded."""
    X, y = data()
    certificate = bestk.solve(X, y, 3).certificate
    forged = replace(certificate, coef=np.array([size, -size, 0.0, 0.0, 0.0]))
    for failures in refused(forged, X, y):
        assert "the objective of the model is" in failures
    products = X.T @ X, X.T @ y, float(y @ y)
    certificate = bestk.Problem.from_gram(*products).solve(3).certificate
    assert not verify_gram(replace(certificate, coef=forged.coef), *products)
