"""Forms by rows: the products and systems of dense matrices, without any p x p matrix."""

import numpy as np
import pytest

from bestk import Problem
from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.split import first_split
from bestk.form.by_rows import MatrixByRows
from bestk.form.dense import DenseMatrix
from bestk.form.matrix import CAUTION
from bestk.form.presolve import Presolved


def forms(X, y, **options):
    """The same problem by rows and with a dense matrix."""
    form = Presolved.of(Problem.from_data(X, y, **options)).form
    assert isinstance(form.matrix, MatrixByRows)
    dense, places = form.around(np.arange(form.p))
    assert places.tolist() == list(range(form.p))
    return form, dense


@pytest.mark.parametrize("seed", range(20))
def test_both_matrices_say_the_same(seed, tiny_cores):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 8), rng.integers(2, 12)
    weight = rng.random(n) + 0.1 if seed % 2 else None
    X, y = rng.standard_normal((n, p)) + seed % 3, rng.standard_normal(n) + 1.0
    alpha = float(rng.choice([0.0, 0.3]))
    by, dense = (
        form.matrix
        for form in forms(X, y, alpha=alpha, sample_weight=weight, fit_intercept=bool(n > 2))
    )
    assert isinstance(by, MatrixByRows)
    assert isinstance(dense, DenseMatrix)
    some = rng.permutation(p)[: rng.integers(1, p + 1)]
    np.testing.assert_allclose(by.rows(some), dense.rows(some), atol=1e-13)
    np.testing.assert_allclose(by.submatrix(some), dense.submatrix(some), atol=1e-13)
    np.testing.assert_array_equal(by.submatrix(some), by.submatrix(some).T)
    supports = np.array([rng.permutation(p)[:2] for _ in range(5)])
    coefs = rng.standard_normal(supports.shape)
    np.testing.assert_allclose(by.sums(supports, coefs), dense.sums(supports, coefs), atol=1e-12)
    full = np.zeros((5, p))
    np.put_along_axis(full, supports, coefs, axis=1)
    np.testing.assert_allclose(dense.sums(supports, coefs), full @ dense.array, atol=1e-12)
    np.testing.assert_allclose(
        by.restricted(some).submatrix(np.arange(len(some))), dense.submatrix(some), atol=1e-13
    )


@pytest.mark.parametrize("seed", range(20))
def test_woodbury_solves_the_same_systems(seed, tiny_cores):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(2, 6), rng.integers(3, 12)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    by, dense = forms(X, y, alpha=float(rng.choice([0.01, 1.0])))
    t = 0.9 * first_split(by).t
    a, b = by.matrix.systems(by.c, t), dense.matrix.systems(by.c, t)
    rows = rng.standard_normal((4, p))
    np.testing.assert_allclose(a.product(rows), b.product(rows), atol=1e-12)
    for system in (a, b):
        system.shift(0.37)
    np.testing.assert_allclose(a.solve(rows), b.solve(rows), atol=1e-10)
    state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), p)
    np.testing.assert_allclose(a.ridge(state), b.ridge(state), atol=1e-10)
    A, inside = dense.A, state != OUT
    expected = np.zeros(p)
    expected[inside] = np.linalg.solve(A[np.ix_(inside, inside)], by.c[inside])
    np.testing.assert_allclose(a.ridge(state), expected, atol=1e-10)
    largest = b.eigenvalues()[-1]
    assert a.eigenvalues()[-1] == pytest.approx(largest, abs=2 * by.matrix.ridge.max())


@pytest.mark.parametrize("seed", range(20))
def test_slopes_of_both_are_within_their_errors(seed, tiny_cores):
    """Against extended precision; only some rows are set, the others stay."""
    rng = np.random.default_rng(seed)
    n, p = rng.integers(2, 8), rng.integers(3, 12)
    by, dense = forms(rng.standard_normal((n, p)), rng.standard_normal(n), alpha=0.3)
    t = 0.8 * first_split(by).t
    states = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), (5, p))
    duals = rng.standard_normal((5, p)) * (states != OUT) * (rng.random((5, p)) < 0.7)
    rows = np.array([3, 0, 4])
    Q = (dense.A - np.diag(t)).astype(np.longdouble)
    for form in (by, dense):
        slopes = form.matrix.slopes(form.c, t, form.eps, states)
        slopes.set(rows, duals[rows])
        for row in rows:
            g = duals[row].astype(np.longdouble)
            live = states[row] != OUT
            assert (np.abs(slopes.u[row] - (form.c - Q @ g))[live] <= slopes.error[row]).all()
            assert abs(slopes.quadratic[row] - g @ Q @ g) <= slopes.lost[row]
            assert slopes.error[row] >= CAUTION * form.eps


@pytest.mark.parametrize("seed", range(10))
def test_around_knows_where_the_features_are(seed, tiny_cores):
    rng = np.random.default_rng(seed)
    by, dense = forms(rng.standard_normal((4, 9)), rng.standard_normal(4), alpha=0.1)
    some = rng.permutation(9)[:4]
    supports = np.array([rng.permutation(9)[:3] for _ in range(6)])
    for wanted in (some, supports):
        for form in (by, dense):
            here, places = form.around(wanted)
            assert places.shape == wanted.shape
            np.testing.assert_array_equal(here.features[places], form.features[wanted])
            np.testing.assert_array_equal(here.scale[places], form.scale[wanted])
            A = here.A[np.ix_(places.ravel(), places.ravel())]
            expected = dense.A[np.ix_(wanted.ravel(), wanted.ravel())]
            np.testing.assert_allclose(A, expected, atol=1e-13)
    assert dense.around(some)[0] is dense


def test_a_core_has_what_is_asked_for_and_its_part_of_the_matrix(tiny_cores):
    rng = np.random.default_rng(0)
    by, dense = forms(rng.standard_normal((4, 12)), rng.standard_normal(4), alpha=0.1)
    whole = dense.matrix.core(np.array([2, 5]))
    assert whole.is_whole
    assert whole.features.tolist() == list(range(12))
    core = by.matrix.core(np.array([2, 5]))
    assert not core.is_whole
    for more, needed in (([7], [2]), ([0, 1], [7]), ([3], [])):
        core.add(np.array(more, dtype=np.intp), np.array(needed, dtype=np.intp))
        assert {*more, *needed} <= set(core.features.tolist())
        assert np.flatnonzero(core.listed).tolist() == sorted(core.features.tolist())
        size = len(core.features)
        expected = dense.A[np.ix_(core.features, core.features)]
        np.testing.assert_allclose(core.A[:size, :size], expected, atol=1e-13)


def test_near_copies_are_found_where_products_are_there(tiny_cores):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6, 5))
    X = np.column_stack([X, -3.0 * X[:, 1], X[:, 1], X[:, 4]])
    by, dense = forms(X, rng.standard_normal(6))
    assert sorted(dense.matrix.near_copies(1.0 - 1e-13)) == [(1, 5), (1, 6), (4, 7), (5, 6)]
    assert list(by.matrix.near_copies(1.0 - 1e-13)) == []


def test_the_array_of_a_wide_form_is_refused(tiny_cores):
    by, _ = forms(np.eye(3), np.ones(3), alpha=0.1)
    with pytest.raises(ValueError, match="not stored"):
        _ = by.A
