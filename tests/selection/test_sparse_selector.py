"""The selector keeps the features of the model that SparseRidge finds."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import bestk
from bestk import SparseRidge, SparseSelector


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


# Checks of array API libraries need an environment variable and are skipped without it.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SparseSelector(), SparseSelector(k=3, alpha=0.5)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_parameters_are_those_of_the_model():
    ours, theirs = (inspect.signature(each).parameters for each in (SparseSelector, SparseRidge))
    assert list(ours.values()) == list(theirs.values())


@pytest.mark.parametrize("options", [{"k": 3}, {"k": 4, "include": ["age"], "alpha": 0.1}])
def test_it_keeps_the_features_of_the_model(diabetes, options):
    X, y = diabetes
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    selector = SparseSelector(**options).fit(X, y, sample_weight=weight)
    result = SparseRidge(**options).fit(X, y, sample_weight=weight).result_
    assert selector.get_support(indices=True).tolist() == result.support.tolist()
    assert selector.get_feature_names_out().tolist() == result.names
    np.testing.assert_array_equal(selector.transform(X), X.to_numpy()[:, result.support])
    shown = selector.set_output(transform="pandas").transform(X)
    assert shown.columns.tolist() == result.names
    assert selector.result_.certificate.verify(X, y, weight)


def test_several_targets_keep_what_one_of_them_needs(diabetes):
    X, y = diabetes
    both = np.column_stack([y, X["age"]])
    selector = SparseSelector(k=2).fit(X, both)
    supports = [result.support for result in selector.result_]
    assert selector.get_support(indices=True).tolist() == np.unique(supports).tolist()


def test_names_of_an_earlier_fit_are_forgotten(diabetes):
    X, y = diabetes
    selector = SparseSelector(k=2).fit(X, y).fit(X.to_numpy()[:, :5], y)
    assert not hasattr(selector, "feature_names_in_")
    assert selector.transform(X.to_numpy()[:, :5]).shape == (len(y), 2)


def test_in_a_pipeline_and_a_grid(diabetes):
    X, y = diabetes
    model = make_pipeline(SparseSelector(), LinearRegression())
    grid = GridSearchCV(model, {"sparseselector__k": [1, 3]}, cv=3).fit(X, y)
    assert grid.best_estimator_[0].get_support().sum() == 3
    loaded = pickle.loads(pickle.dumps(grid.best_estimator_))
    np.testing.assert_array_equal(loaded.predict(X), grid.predict(X))


def test_copies_share_the_client():
    client = object()
    assert clone(SparseSelector(client=client)).client is client


def test_what_is_open_is_said():
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    slow = bestk.Advanced(enumeration=False, batch_size=1)
    with pytest.warns(ConvergenceWarning, match="gap of"):
        SparseSelector(k=6, node_limit=5, advanced=slow).fit(X, y)
    with pytest.raises(NotFittedError):
        SparseSelector().get_support()
