"""SparseRidgeCV and cross-validation of batches: every fit of every fold, and the choice."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_linnerud
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit

import bestk
from bestk import SparseRidge, SparseRidgeCV


def by_hand(X, y, ks, alphas, splits, weight=None, fit_intercept=True):
    """errors[alpha, k, fold] through SparseRidge on the training rows."""
    errors = np.empty((len(alphas), len(ks), len(splits)))
    for f, (train, test) in enumerate(splits):
        for a, alpha in enumerate(alphas):
            for i, k in enumerate(ks):
                model = SparseRidge(k=k, alpha=alpha, fit_intercept=fit_intercept)
                model.fit(X[train], y[train], None if weight is None else weight[train])
                residual = y[test] - model.predict(X[test])
                share = None if weight is None else weight[test]
                errors[a, i, f] = np.average(residual**2, weights=share)
    return errors


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "cv", [KFold(4, shuffle=True, random_state=0), "time series", "repeated rows"]
)
def test_errors_equal_those_of_fits_on_each_fold(diabetes, cv, weighted, fit_intercept):
    X, y = (np.asarray(a) for a in diabetes)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    if cv == "time series":
        cv = sklearn.model_selection.TimeSeriesSplit(3)
    elif cv == "repeated rows":
        cv = sklearn.model_selection.ShuffleSplit(3, test_size=0.3, random_state=0)
    ks, alphas = [1, 3, 6], [0.0, 0.1]
    model = SparseRidgeCV(ks=ks, alphas=alphas, cv=cv, fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weight)
    validation = model.cross_validation_
    expected = by_hand(X, y, ks, alphas, list(cv.split(X)), weight, fit_intercept)
    np.testing.assert_allclose(validation.errors, expected, rtol=1e-6)
    assert validation.is_proven
    assert validation.gaps.shape == expected.shape
    assert (validation.gaps <= 1e-4).all()
    a, i = np.unravel_index(np.argmin(expected.mean(axis=2)), (2, 3))
    assert (model.alpha_, model.k_) == (alphas[a], ks[i])
    final = SparseRidge(k=model.k_, alpha=model.alpha_, fit_intercept=fit_intercept)
    final.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, final.coef_, rtol=1e-7)
    assert model.result_.k == model.k_


def test_one_standard_error_rule(diabetes):
    X, y = diabetes
    model = SparseRidgeCV(ks=range(1, 9), alphas=[0.0, 0.1], rule="one-se").fit(X, y)
    validation = model.cross_validation_
    mean, error = validation.mean, validation.standard_error
    best = np.unravel_index(np.argmin(mean), mean.shape)
    near = mean <= mean[best] + error[best]
    k = int(validation.ks[near.any(axis=0)][0])
    assert model.k_ == k <= validation.best("min")[1]
    column = mean[:, validation.ks == k][:, 0]
    assert (
        model.alpha_
        == validation.alphas[
            np.argmin(np.where(column <= mean[best] + error[best], column, np.inf))
        ]
    )
    expected = validation.errors.std(axis=2, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(error, expected)
    with pytest.raises(ValueError, match="rule must be one of"):
        SparseRidgeCV(rule="two-se").fit(X, y)


def test_folds_in_parallel_give_the_same(diabetes):
    X, y = diabetes
    serial = SparseRidgeCV(ks=[1, 4], alphas=[0.0, 1.0]).fit(X, y)
    parallel = SparseRidgeCV(ks=[1, 4], alphas=[0.0, 1.0], n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        serial.cross_validation_.errors, parallel.cross_validation_.errors
    )
    np.testing.assert_array_equal(serial.coef_, parallel.coef_)


def test_scoring_by_name(diabetes):
    X, y = (np.asarray(a) for a in diabetes)
    model = SparseRidgeCV(ks=[1, 3], scoring="neg_mean_absolute_error", cv=3).fit(X, y)
    train, test = next(iter(KFold(3).split(X)))
    residual = y[test] - SparseRidge(k=3).fit(X[train], y[train]).predict(X[test])
    assert model.cross_validation_.errors[0, 1, 0] == pytest.approx(np.abs(residual).mean())
    assert model.cross_validation_.measure == "-neg_mean_absolute_error"


def test_several_targets_choose_for_themselves():
    X, Y = load_linnerud(return_X_y=True, as_frame=True)
    model = SparseRidgeCV(ks=[1, 2], alphas=[0.0, 10.0], cv=3).fit(X, Y)
    assert len(model.k_) == len(model.alpha_) == len(model.cross_validation_) == 3
    for j, name in enumerate(Y):
        alone = SparseRidgeCV(ks=[1, 2], alphas=[0.0, 10.0], cv=3).fit(X, Y[name])
        assert (model.k_[j], model.alpha_[j]) == (alone.k_, alone.alpha_)
        np.testing.assert_allclose(model.coef_[j], alone.coef_, rtol=1e-7, atol=1e-12)


def test_metadata_is_routed(diabetes):
    X, y = diabetes
    groups = np.arange(len(y)) % 7
    weight = np.linspace(0.5, 1.5, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparseRidgeCV(ks=[2, 4], cv=GroupKFold(3)).fit(X, y, groups=groups)
        assert model.cross_validation_.errors.shape == (1, 2, 3)
        weighted = SparseRidge(k=3).set_fit_request(sample_weight=True)
        weighted.set_score_request(sample_weight=True)
        search = GridSearchCV(weighted, {"k": [2]}, cv=3).fit(X, y, sample_weight=weight)
        expected = SparseRidge(k=2).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(search.best_estimator_.coef_, expected.coef_)
    splits = list(GroupKFold(3).split(X, y, groups))
    explicit = SparseRidgeCV(ks=[2, 4], cv=splits).fit(X, y)
    np.testing.assert_allclose(explicit.cross_validation_.errors, model.cross_validation_.errors)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"ks": []}, "ks must hold at least one size"),
        ({"alphas": []}, "alphas must hold at least one"),
        ({"alphas": [0.0, -1.0]}, "each of alphas must be"),
        ({"cv": 1}, "at least one train/test split|n_splits"),
    ],
)
def test_bad_grids_are_named(diabetes, options, match):
    with pytest.raises(ValueError, match=match):
        SparseRidgeCV(**options).fit(*diabetes)


def test_columns_of_very_different_size(diabetes):
    X, y = (np.asarray(a) for a in diabetes)
    scale = 10.0 ** np.arange(-5, 5)
    plain = SparseRidgeCV(ks=[2, 4], cv=3).fit(X, y)
    scaled = SparseRidgeCV(ks=[2, 4], cv=3).fit(X * scale + 3.0 * scale, y)
    np.testing.assert_allclose(
        scaled.cross_validation_.errors, plain.cross_validation_.errors, rtol=1e-7
    )
    tiny = X.copy()
    tiny[:, 0] *= 1e-180
    underflowing = SparseRidgeCV(ks=[2, 4], cv=3).fit(tiny, y)
    np.testing.assert_allclose(
        underflowing.cross_validation_.errors, plain.cross_validation_.errors, rtol=1e-7
    )


def test_batches_are_cross_validated_in_one_pass(diabetes):
    from bestk.selection.cross_validation import cross_validate_batches

    X, y = diabetes
    batches = ((X[i : i + 50], y[i : i + 50]) for i in range(0, len(y), 50))
    validation, problem = cross_validate_batches(batches, range(1, 7), [0.0, 0.1], n_folds=4)
    assert validation.errors.shape == (2, 6, 4)
    assert validation.is_proven
    assert problem.feature_names == tuple(X.columns)
    assert problem.n_samples == len(y)
    in_memory = SparseRidgeCV(ks=range(1, 7), alphas=[0.0, 0.1], cv=4).fit(X, y).cross_validation_
    np.testing.assert_allclose(validation.mean, in_memory.mean, rtol=0.1)
    alpha, k = validation.best()
    final = problem.with_alpha(alpha).solve(k)
    assert final.objective == pytest.approx(
        bestk.solve(X, y, k, alpha=alpha, fit_intercept=True).objective, rel=1e-9
    )


def test_table_of_errors_is_readable(diabetes):
    X, y = diabetes
    text = str(SparseRidgeCV(ks=[1, 2], alphas=[0.0, 1.0], cv=3).fit(X, y).cross_validation_)
    assert "min: k = 2" in text
    assert "100% of the fits are proven optimal" in text


def test_one_fold_has_no_standard_error(diabetes):
    X, y = diabetes
    model = SparseRidgeCV(ks=[1, 2, 3], cv=ShuffleSplit(1, random_state=0))
    found = {rule: clone(model).set_params(rule=rule).fit(X, y) for rule in ("min", "one-se")}
    validation = found["min"].cross_validation_
    assert np.isnan(validation.standard_error).all()
    assert found["min"].k_ == found["one-se"].k_ == validation.ks[validation.mean[0].argmin()]
    assert "over 1 fold (" in str(validation)
    assert "Cross-validation over 1 fold<" in validation.to_html()


def test_a_wrong_rule_is_said_before_the_work(diabetes, monkeypatch):
    monkeypatch.setattr("bestk.selection.estimators.cross_validate", None)
    with pytest.raises(ValueError, match="rule must be one of 'min', 'one-se', got '1se'"):
        SparseRidgeCV(ks=[1], rule="1se").fit(*diabetes)
