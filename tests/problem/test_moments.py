"""Sums of rows about an origin: adding, subtracting and centring them keeps what they stand for."""

from fractions import Fraction

import numpy as np
import pytest

import bestk
from bestk import Problem
from bestk.problem.moments import Moments
from bestk.problem.rows import checked_batches, moments_of, moments_of_batches
from bestk.selection.cross_validation import cross_validate_batches, folds_of_data


def data(seed, n=50, p=5, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + offset
    return X, rng.standard_normal(n) + X[:, 0], rng.uniform(0.0, 2.0, n)


def centred_exactly(X, y, weight):
    """Weighted centred products in rational numbers, rounded in the end."""
    weight = [Fraction(float(w)) for w in weight]
    centred = []
    for column in [*X.T, y]:
        column = [Fraction(float(value)) for value in column]
        mean = sum(w * v for w, v in zip(weight, column, strict=True)) / sum(weight)
        centred.append([v - mean for v in column])
    G = np.array([[float(sum(w * u * v for w, u, v in zip(weight, a, b, strict=True)))
                   for b in centred] for a in centred])  # fmt: skip
    return G[:-1, :-1], G[:-1, -1], G[-1, -1]


def assert_within_error(moments, gram, moment, yy):
    """Entries are right up to `error` times the root of the squares they belong to."""
    root = np.sqrt(np.diag(gram).astype(float))
    y_root = np.sqrt(float(yy))
    slack = moments.error
    assert (np.abs(moments.gram - gram) <= slack * np.outer(root, root) + 1e-300).all()
    assert (np.abs(moments.moment - moment) <= slack * root * y_root + 1e-300).all()
    assert abs(moments.yy - yy) <= slack * y_root**2 + 1e-300


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("seed", range(8))
def test_centring_is_right_up_to_the_stated_error(seed, offset):
    """However far away the rows are: their mean is subtracted before they are squared."""
    X, y, weight = data(seed, offset=offset)
    moments = moments_of(X, y, weight, True)
    assert 0.0 < moments.error < 1e-13
    assert_within_error(moments, *centred_exactly(X, y, weight))
    np.testing.assert_allclose(moments.shift, np.average(X, axis=0, weights=weight), rtol=1e-12)


# Squares of the mean beside those of the variation are digits that are lost.
@pytest.mark.parametrize(("offset", "error"), [(1.0, 1e-8), (1e3, 1e-2), (1e6, np.inf)])
@pytest.mark.parametrize("seed", range(8))
def test_an_origin_far_from_the_mean_costs_digits_and_says_so(seed, offset, error):
    X, y, weight = data(seed, offset=offset)
    origin = Moments.empty(5, means=(np.zeros(5), 0.0))
    assert origin.error == 0.0
    moments = origin.of_rows(X, y, weight).centred()
    assert moments.error <= error
    if np.isfinite(moments.error):
        assert_within_error(moments, *centred_exactly(X, y, weight))
    spread = X.std(axis=0).min()
    assert moments.error >= np.finfo(float).eps * (offset / spread) ** 2


@pytest.mark.parametrize("offset", [1e3, 1e6])
@pytest.mark.parametrize("seed", range(8))
def test_batches_far_away_are_summed_up_to_the_stated_error(seed, offset):
    """The origin is the mean of the first batch, which is not quite that of all."""
    X, y, weight = data(seed, offset=offset)
    rows = [slice(0, 7), slice(7, 30), slice(30, None)]
    batches = checked_batches([(X[part], y[part], weight[part]) for part in rows])
    (whole,), _ = moments_of_batches(batches, True)
    whole = whole.centred()
    assert whole.error < 1e-11
    assert_within_error(whole, *centred_exactly(X, y, weight))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_whole_minus_part_is_the_rest(seed, fit_intercept):
    X, y, weight = data(seed)
    weight = weight if seed % 2 else None
    rows = np.random.default_rng(seed).permutation(50)
    part, rest = rows[:13], rows[13:]
    pick = (lambda r: None) if weight is None else (lambda r: weight[r])
    means = (X.mean(axis=0), float(y.mean())) if fit_intercept else None
    origin = Moments.empty(5, means=means)
    whole = origin.of_rows(X, y, weight)
    difference = whole - origin.of_rows(X[part], y[part], pick(part))
    if fit_intercept:
        difference = difference.centred()
    fresh = moments_of(X[rest], y[rest], pick(rest), fit_intercept)
    assert difference.n_rows == fresh.n_rows == 37
    assert_within_error(difference, fresh.gram, fresh.moment, fresh.yy)
    np.testing.assert_allclose(difference.shift, fresh.shift, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("outlier", [1e3, 1e6, 1e9])
def test_error_grows_with_what_cancels(outlier):
    X, y, _ = data(0)
    X[:, 2] /= np.linalg.norm(X[:, 2])
    X[0, 2] = outlier  # one row holds nearly all of the column
    origin = Moments.empty(5)
    whole = origin.of_rows(X, y)
    rest = whole - origin.of_rows(X[:1], y[:1])
    fresh = origin.of_rows(X[1:], y[1:])
    assert rest.error >= 0.1 * outlier**2 * fresh.error
    assert np.isinf(rest.error) == (outlier == 1e9)
    if np.isfinite(rest.error):
        assert_within_error(rest, fresh.gram, fresh.moment, fresh.yy)


def test_folds_that_cancel_are_summed_afresh():
    X, y, _ = data(1)
    X[0, 2] = 1e9
    X[:, 3] = 0.0
    X[:10, 3] = 0.1  # constant outside the first fold
    splits = [(np.arange(10, 50), np.arange(10)), (np.arange(10), np.arange(10, 50))]
    for fit_intercept in (False, True):
        folds, _ = folds_of_data(X, y, None, splits, fit_intercept, lambda rows, result: 0.0)
        for fold, (train, _) in zip(folds, splits, strict=True):
            fresh = moments_of(X[train], y[train], None, fit_intercept)
            assert_within_error(fold.train(), fresh.gram, fresh.moment, fresh.yy)
            assert fold.train().error < 1e-10
        assert (folds[0].train().gram[3] == 0.0).all()


def test_batches_that_cannot_be_centred_say_so():
    X, y, _ = data(2)
    X[:, 0] = 1e-9 * np.arange(50)
    X[0, 0] = 1e9
    batches = [(X[:1], y[:1]), (X[1:], y[1:])]
    origin_far = Problem.from_batches(batches, fit_intercept=True)  # the far row is still there
    assert np.isfinite(origin_far.error)
    with pytest.raises(ValueError, match="shuffle the rows"):
        cross_validate_batches(batches, [1], [0.0], n_folds=25)


@pytest.mark.parametrize("constant", [0.1, 1.0, 1e8, -3e-7])
def test_constant_columns_vanish_and_are_never_chosen(constant):
    X, y, _ = data(2)
    X[:, 1] = constant
    problem = Problem.from_data(X, y, fit_intercept=True)
    assert problem.gram[1, 1] == 0.0
    result = problem.solve(5)
    assert 1 not in result.support
    assert result.coef[1] == 0.0


def test_constant_y_has_nothing_to_explain():
    X, _, _ = data(3)
    result = bestk.solve(X, np.full(50, 0.1), k=2, fit_intercept=True)
    assert result.coef.any() == 0
    assert result.intercept == pytest.approx(0.1, rel=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_intercept_is_the_fit_with_a_column_of_ones(seed, weighted):
    X, y, weight = data(seed, offset=5.0)
    weight = weight if weighted else None
    result = bestk.solve(X, y, k=3, fit_intercept=True, sample_weight=weight)
    ones = np.column_stack([X[:, result.support], np.ones(50)])
    root = np.ones(50) if weight is None else np.sqrt(weight)
    coef = np.linalg.lstsq(ones * root[:, None], y * root, rcond=None)[0]
    np.testing.assert_allclose(result.coef[result.support], coef[:-1], rtol=1e-8)
    assert result.intercept == pytest.approx(coef[-1], rel=1e-7)
    residual = (y - result.predict(X)) * root
    assert result.objective == pytest.approx(residual @ residual, rel=1e-10)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_batches_with_weights_and_intercept_equal_the_data(fit_intercept):
    X, y, weight = data(4, offset=3.0)
    batches = [(X[i : i + 7], y[i : i + 7], weight[i : i + 7]) for i in range(0, 50, 7)]
    by_batches = Problem.from_batches(iter(batches), fit_intercept=fit_intercept, alpha=0.1)
    whole = Problem.from_data(X, y, sample_weight=weight, fit_intercept=fit_intercept, alpha=0.1)
    np.testing.assert_allclose(by_batches.gram, whole.gram, rtol=1e-10, atol=1e-10)
    first, second = by_batches.solve(3), whole.solve(3)
    assert first.support.tolist() == second.support.tolist()
    assert first.objective == pytest.approx(second.objective, rel=1e-9)
    assert first.intercept == pytest.approx(second.intercept, rel=1e-9, abs=1e-12)


def test_parts_of_batches_add_up_and_are_of_equal_size():
    X, y, _ = data(5)
    batches = checked_batches([(X[:20], y[:20]), (X[20:], y[20:])])
    parts, _ = moments_of_batches(batches, True, 4, seed=1)
    assert sorted(part.n_rows for part in parts) == [12, 12, 13, 13]
    total = sum(parts[1:], start=parts[0]).centred()
    fresh = moments_of(X, y, None, True)
    assert_within_error(total, fresh.gram, fresh.moment, fresh.yy)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_other_target_shares_the_gram_matrix(fit_intercept):
    X, y, weight = data(6)
    other = np.sin(np.arange(50.0))
    problem = Problem.from_data(X, y, sample_weight=weight, fit_intercept=fit_intercept)
    shared = problem.with_target(other)
    fresh = Problem.from_data(X, other, sample_weight=weight, fit_intercept=fit_intercept)
    assert np.shares_memory(shared.gram, problem.gram)
    np.testing.assert_allclose(shared.moment, fresh.moment, rtol=1e-10, atol=1e-12)
    assert shared.yy == pytest.approx(fresh.yy)
    assert shared.solve(2).objective == pytest.approx(fresh.solve(2).objective, rel=1e-12)
    with pytest.raises(ValueError, match="keeps no rows"):
        Problem.from_gram(problem.gram, problem.moment, problem.yy).with_target(other)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_mean_squared_error_from_moments(seed, fit_intercept):
    X, y, weight = data(seed, offset=2.0)
    origin = Moments.empty(5, means=(np.ones(5), 0.5) if fit_intercept else None)
    rng = np.random.default_rng(seed)
    coef, intercept = rng.standard_normal(5), float(rng.standard_normal()) * fit_intercept
    expected = np.average((y - intercept - X @ coef) ** 2, weights=weight)
    found = origin.of_rows(X, y, weight).mean_squared_error(coef, intercept)
    assert found == pytest.approx(expected, rel=1e-10)


def test_large_integers_and_single_precision_are_centred_in_double():
    rng = np.random.default_rng(0)
    X = rng.integers(-120, 120, (300, 4)).astype(np.int8)
    y = X[:, 1] * 2.0 + 7.0 + rng.standard_normal(300)
    result = bestk.solve(X, y, k=1, fit_intercept=True)
    assert result.support.tolist() == [1]
    assert result.intercept == pytest.approx(7.0, abs=0.3)
    single = bestk.solve((X + 1000.0).astype(np.float32), y, k=1, fit_intercept=True)
    assert single.objective == pytest.approx(result.objective, rel=1e-9)
