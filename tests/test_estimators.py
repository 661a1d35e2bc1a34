"""SparseRidge and SparseRidgeCV: good citizens of scikit-learn, with the solver's guarantees."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import bestk
from bestk import SparseRidge, SparseRidgeCV, Status


# Checks of array API libraries need an environment variable and are skipped without it.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SparseRidge(), SparseRidge(k=3, alpha=0.5), SparseRidgeCV()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def hard():
    return bestk.datasets.make_synthetic(120, 60, k=8, rho=0.9)


def test_fit_is_solve_with_an_intercept(diabetes):
    X, y = diabetes
    model = SparseRidge(k=4, alpha=0.01).fit(X, y)
    result = bestk.solve(X, y, k=4, alpha=0.01, fit_intercept=True)
    np.testing.assert_allclose(model.coef_, result.coef)
    assert model.intercept_ == pytest.approx(result.intercept)
    assert model.support_.tolist() == result.support.tolist()
    assert model.objective_ == pytest.approx(result.objective)
    assert model.lower_bound_ <= model.objective_
    assert model.gap_ <= 1e-4
    assert model.status_ is Status.OPTIMAL
    assert model.n_iter_ >= 1
    assert model.n_features_in_ == 10
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert model.result_.names == ["bmi", "bp", "s3", "s5"]
    assert model.score(X, y) == pytest.approx(model.result_.r2)
    np.testing.assert_allclose(model.predict(X), model.result_.predict(X))


def test_all_features_are_ridge_regression(diabetes):
    X, y = diabetes
    ours = SparseRidge(k=10, alpha=0.3).fit(X, y)
    theirs = Ridge(alpha=0.3, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)
    without = SparseRidge(k=10, fit_intercept=False).fit(X, y)
    expected = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(without.coef_, expected.coef_, rtol=1e-6)
    assert without.intercept_ == 0.0


def test_names_include_exclude_and_bounds(diabetes):
    X, y = diabetes
    model = SparseRidge(k=3, include=["age"], exclude=["bmi"], bounds=(0, np.inf)).fit(X, y)
    assert "age" in model.result_.names
    assert "bmi" not in model.result_.names
    assert (model.coef_ >= 0).all()
    with pytest.raises(ValueError, match="no feature 'bmj'; did you mean 'bmi'"):
        SparseRidge(exclude=["bmj"]).fit(X, y)
    with pytest.raises(ValueError, match="holds names, but the features have none"):
        SparseRidge(include=["age"]).fit(X.to_numpy(), y)


def test_polars_frames_keep_their_names(diabetes):
    polars = pytest.importorskip("polars")
    X, y = diabetes
    frame = polars.DataFrame({name: X[name].to_numpy() for name in X.columns})
    model = SparseRidge(k=3, include=["sex"]).fit(frame, y.to_numpy())
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    assert "sex" in model.result_.names
    np.testing.assert_allclose(model.predict(frame), model.predict(X))


def test_pipeline_grid_search_and_cross_validation(diabetes):
    X, y = diabetes
    pipeline = make_pipeline(StandardScaler(), SparseRidge(k=2))
    search = GridSearchCV(pipeline, {"sparseridge__k": [1, 3], "sparseridge__alpha": [0.0, 1.0]})
    search.fit(X, y)
    assert search.best_params_["sparseridge__k"] == 3
    assert len(cross_val_score(SparseRidge(k=3), X, y, cv=3)) == 3


def test_names_flow_through_transformers(diabetes):
    X, y = diabetes
    expand = PolynomialFeatures(2, include_bias=False).set_output(transform="pandas")
    model = make_pipeline(expand, SparseRidge(k=2)).fit(X, y)
    assert model[-1].result_.names == ["bmi", "s5"]


def test_selects_features_for_another_model(diabetes):
    X, y = diabetes
    selector = SelectFromModel(SparseRidge(k=3), threshold=1e-10).fit(X, y)
    assert selector.get_feature_names_out().tolist() == ["bmi", "bp", "s5"]
    assert selector.transform(X).shape == (len(X), 3)


@pytest.mark.parametrize("make", [SparseRidge, SparseRidgeCV])
def test_clone_pickle_joblib(make, diabetes, tmp_path):
    X, y = diabetes
    model = make().set_params(bounds=(-1e4, 1e4)).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.status_ is model.status_
        assert copy.result_.gap == model.result_.gap


def test_whole_numbers_as_weights_are_repetitions(diabetes):
    X, y = diabetes
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = SparseRidge(k=4).fit(X, y, sample_weight=weight)
    repeated = SparseRidge(k=4).fit(X.loc[X.index.repeat(weight)], y.repeat(weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
    assert weighted.objective_ == pytest.approx(repeated.objective_)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_targets_are_solved_one_by_one(n_jobs):
    X, Y = load_linnerud(return_X_y=True, as_frame=True)
    model = SparseRidge(k=2, n_jobs=n_jobs).fit(X, Y)
    assert model.coef_.shape == (3, 3)
    assert model.intercept_.shape == (3,)
    assert model.predict(X).shape == Y.shape
    assert model.gap_.shape == model.objective_.shape == model.lower_bound_.shape == (3,)
    for j, name in enumerate(Y):
        alone = SparseRidge(k=2).fit(X, Y[name])
        np.testing.assert_allclose(model.coef_[j], alone.coef_, rtol=1e-9, atol=1e-12)
        assert model.support_[j].tolist() == alone.support_.tolist()
        assert model.result_[j].objective == pytest.approx(alone.objective_)
        assert model.status_[j] is Status.OPTIMAL


def test_many_targets_in_parallel_leave_threads_as_they_were(diabetes):
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    X, y = diabetes
    Y = np.column_stack([y, y**0.5, np.sin(y), y[::-1]])
    parallel = SparseRidge(k=3, n_jobs=2).fit(X, Y)
    np.testing.assert_allclose(parallel.coef_, SparseRidge(k=3).fit(X, Y).coef_, rtol=1e-12)
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("many", [False, True])
def test_open_gap_is_a_warning_that_says_how_large(hard, many):
    X, y, _ = hard
    model = SparseRidge(k=8, node_limit=0)
    target = np.column_stack([y, y]) if many else y
    with pytest.warns(ConvergenceWarning, match=r"gap of \d+\.\d\d% left") as caught:
        model.fit(X, target)
    assert f"{np.max(model.gap_):.2%}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert np.all(model.gap_ > 1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseRidge(k=2, gap_tol=0.9).fit(X, y)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"k": -1}, ValueError, "k must be at least 0"),
        ({"k": 2.5}, TypeError, "k must be a whole number"),
        ({"alpha": -1.0}, ValueError, "alpha must be"),
        ({"bounds": (1, 2)}, ValueError, "bounds must allow 0"),
        ({"gap_tol": "small"}, TypeError, "gap_tol must be a number"),
        ({"search": "random"}, ValueError, "search must be one of"),
    ],
)
def test_bad_parameters_are_named(diabetes, options, error, match):
    X, y = diabetes
    with pytest.raises(error, match=match):
        SparseRidge(**options).fit(X, y)


def test_unfitted_models_say_so(diabetes):
    with pytest.raises(NotFittedError):
        SparseRidge().predict(diabetes[0])


# Cross-validation -------------------------------------------------------------------------------


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


def test_frames_with_mixed_types_are_read():
    frame = pd.DataFrame({"a": [1, 2, 3, 4, 5], "b": [0.5, 1.5, 0.1, 0.0, 2.0]})
    frame["c"] = np.array([1, 0, 1, 1, 0], dtype=bool)
    model = SparseRidge(k=1).fit(frame, 2.0 * frame["a"] + 1.0)
    assert model.result_.names == ["a"]
    assert model.intercept_ == pytest.approx(1.0)
