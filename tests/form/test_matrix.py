"""Forms by rows: the products and systems of stored matrices, without any p x p matrix."""

import numpy as np
import pytest

from bestk import Problem
from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.split import first_split
from bestk.form.matrix import ByRows, Stored
from bestk.form.presolve import Presolved
from bestk.form.systems import systems_of


def forms(X, y, **options):
    """The same problem by rows and stored."""
    form = Presolved.of(Problem.from_data(X, y, **options)).form
    assert form.is_wide
    return form, form.restricted(np.arange(form.p), stored=True)


@pytest.mark.parametrize("seed", range(20))
def test_both_operators_say_the_same(seed, tiny_cores):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 8), rng.integers(2, 12)
    weight = rng.random(n) + 0.1 if seed % 2 else None
    X, y = rng.standard_normal((n, p)) + seed % 3, rng.standard_normal(n) + 1.0
    alpha = float(rng.choice([0.0, 0.3]))
    by, stored = (
        form.operator
        for form in forms(X, y, alpha=alpha, sample_weight=weight, fit_intercept=bool(n > 2))
    )
    assert isinstance(by, ByRows)
    assert isinstance(stored, Stored)
    some = rng.permutation(p)[: rng.integers(1, p + 1)]
    np.testing.assert_allclose(by.rows(some), stored.rows(some), atol=1e-13)
    np.testing.assert_allclose(by.block(some), stored.block(some), atol=1e-13)
    np.testing.assert_array_equal(by.block(some), by.block(some).T)
    supports = np.array([rng.permutation(p)[:2] for _ in range(5)])
    coefs = rng.standard_normal(supports.shape)
    np.testing.assert_allclose(by.sums(supports, coefs), stored.sums(supports, coefs), atol=1e-12)
    dense = np.zeros((5, p))
    np.put_along_axis(dense, supports, coefs, axis=1)
    np.testing.assert_allclose(stored.sums(supports, coefs), dense @ stored.A, atol=1e-12)
    np.testing.assert_allclose(
        by.restricted(some).block(np.arange(len(some))), stored.block(some), atol=1e-13
    )


@pytest.mark.parametrize("seed", range(20))
def test_woodbury_solves_the_same_systems(seed, tiny_cores):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(2, 6), rng.integers(3, 12)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    by, stored = forms(X, y, alpha=float(rng.choice([0.01, 1.0])))
    t = 0.9 * first_split(by).t
    a, b = systems_of(by, t), systems_of(stored, t)
    rows = rng.standard_normal((4, p))
    np.testing.assert_allclose(a.product(rows), b.product(rows), atol=1e-12)
    for system in (a, b):
        system.shift(0.37)
    np.testing.assert_allclose(a.solve(rows), b.solve(rows), atol=1e-10)
    state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), p)
    np.testing.assert_allclose(a.ridge(state), b.ridge(state), atol=1e-10)
    A, inside = stored.A, state != OUT
    expected = np.zeros(p)
    expected[inside] = np.linalg.solve(A[np.ix_(inside, inside)], by.c[inside])
    np.testing.assert_allclose(a.ridge(state), expected, atol=1e-10)
    largest = b.eigenvalues()[-1]
    assert a.eigenvalues()[-1] == pytest.approx(largest, abs=2 * by.operator.ridge.max())
