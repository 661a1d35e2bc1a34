"""What an optimizer of PySINDy is given: weights, guesses, and arrays that it cannot use."""

import numpy as np
import pysindy as ps
import pytest
from sklearn.base import clone

from bestk.sindy import OKRidge

P, D = 5, 2


def rows(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * 10.0 ** rng.integers(-2, 3, P)
    Y = X @ rng.standard_normal((P, D)) + rng.standard_normal((n, D))
    return X, Y, rng.uniform(0.0, 3.0, n) * rng.integers(0, 2, n)


# Weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbias", [False, True])
@pytest.mark.parametrize("normalize_columns", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_pysindy(seed, normalize_columns, unbias):
    """With all terms and the same penalty, STLSQ has the same coefficients."""
    X, Y, weight = rows(seed)
    options = {"alpha": 3.0, "unbias": unbias, "normalize_columns": normalize_columns}
    ours = OKRidge(k=P, **options).fit(X, Y, sample_weight=weight)
    theirs = ps.STLSQ(threshold=0.0, **options).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)


@pytest.mark.parametrize("unbias", [False, True])
@pytest.mark.parametrize("normalize_columns", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_of_weight_two_counts_twice(seed, normalize_columns, unbias):
    X, Y, _ = rows(seed)
    weight = np.arange(len(X)) % 3
    options = {"k": 2, "alpha": 3.0, "unbias": unbias, "normalize_columns": normalize_columns}
    weighted = OKRidge(**options).fit(X, Y, sample_weight=weight)
    repeated = OKRidge(**options).fit(X.repeat(weight, axis=0), Y.repeat(weight, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)


# Guesses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, P), (D, P + 1), (P,), (D, P, 1)])
def test_a_guess_of_another_shape_is_an_error(shape):
    X, Y, _ = rows(0)
    with pytest.raises(
        ValueError, match=r"initial_guess has shape .* pass an array of shape \(2, 5"
    ):
        OKRidge(k=2, initial_guess=np.ones(shape)).fit(X, Y)


@pytest.mark.parametrize("make", [list, np.asarray])
def test_a_guess_for_one_equation_stays_as_it_was_given(make):
    X, Y, _ = rows(0)
    guess = make([1.0, 0.0, 0.0, 0.0, 2.0])
    optimizer = OKRidge(k=2, initial_guess=guess)
    assert optimizer.get_params()["initial_guess"] is guess
    np.testing.assert_array_equal(clone(optimizer).initial_guess, guess)
    fitted = optimizer.fit(X, Y[:, 0])
    np.testing.assert_array_equal(fitted.coef_, OKRidge(k=2).fit(X, Y[:, 0]).coef_)


# Arrays that cannot be used --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x_", "y"])
def test_complex_numbers_are_refused(name):
    """NumPy would drop the imaginary parts with a warning."""
    X, Y, _ = rows(0)
    with pytest.raises(TypeError, match=f"^{name} is complex"):
        OKRidge(k=2).fit(*((X + 1j, Y) if name == "x_" else (X, Y + 1j)))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, object])
def test_numbers_of_other_types(dtype):
    X, Y, _ = rows(0)
    X, Y = (100 * X).astype(dtype), (100 * Y).astype(dtype)
    plain = OKRidge(k=2).fit(X.astype(np.float64), Y.astype(np.float64))
    np.testing.assert_array_equal(OKRidge(k=2).fit(X, Y).coef_, plain.coef_)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, Y: (X[:20], Y), "x_ has 20 rows, but y has 30"),
        (lambda X, Y: (X[:, 0], Y), "x_ must have two dimensions"),
        (lambda X, Y: (X, Y[:, :, None]), r"y has shape \(30, 2, 1\)"),
        (lambda X, Y: (X[:0], Y[:0]), "x_ has no rows"),
        (lambda X, Y: (X * np.nan, Y), "every row of x_ or y has a missing value"),
        (lambda X, Y: (X + np.inf, Y), "x_ contains NaN or infinite"),
        (lambda X, Y: (X, Y + np.inf), "y contains NaN or infinite"),
    ],
)
def test_rows_that_cannot_be_used_are_named(change, match):
    X, Y, _ = rows(0)
    with pytest.raises(ValueError, match=match):
        OKRidge(k=2).fit(*change(X, Y))


def test_masks_and_flags_that_are_none_are_refused():
    X, Y, _ = rows(0)
    hidden = np.ma.masked_array(X, mask=X > 1.0)
    with pytest.raises(ValueError, match="x_ has masked values"):
        OKRidge(k=2).fit(hidden, Y)
    for name in ("unbias", "normalize_columns"):
        with pytest.raises(TypeError, match=name):
            OKRidge(k=2, **{name: "no"}).fit(X, Y)
