"""Least squares under linear constraints: what a fit must satisfy exactly."""

import numpy as np
import pytest

from bestk.choices.fits import constrained_least_squares


@pytest.mark.parametrize("seed", range(300))
def test_no_rounding_leaves_coefficients_outside_their_bounds(seed):
    """A bound beside another constraint on the same coefficient, which is best at its bound."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 5))
    M = rng.standard_normal((10, p))
    M[:, 0] *= rng.choice([0.0, 1e-12, 1.0])
    M = np.vstack([M, 0.1 * np.eye(p)])
    M /= np.sqrt((M * M).sum(axis=0))
    z = np.append(rng.standard_normal(10), np.zeros(p))
    C = np.vstack([rng.standard_normal(p), np.eye(p)[:2]])
    at = rng.standard_normal(p)
    at[:2] = np.abs(at[:2])
    size = float(C[0] @ at)
    fit = constrained_least_squares(
        M, z, C, np.array([size, 0.0, 0.0]), np.array([np.inf, np.inf, 5.0])
    )
    assert fit is not None
    assert (fit.b[:2] >= 0.0).all()
    assert C[0] @ fit.b >= size - 1e-10 * (np.abs(C[0]) @ np.abs(fit.b))
    assert fit.kkt < 1e-7
