"""SparseRidge: a good citizen of scikit-learn, with the solver's guarantees."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_linnerud
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
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


def test_frames_with_mixed_types_are_read():
    frame = pd.DataFrame({"a": [1, 2, 3, 4, 5], "b": [0.5, 1.5, 0.1, 0.0, 2.0]})
    frame["c"] = np.array([1, 0, 1, 1, 0], dtype=bool)
    model = SparseRidge(k=1).fit(frame, 2.0 * frame["a"] + 1.0)
    assert model.result_.names == ["a"]
    assert model.intercept_ == pytest.approx(1.0)
