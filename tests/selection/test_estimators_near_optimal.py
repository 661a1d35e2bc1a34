"""near_optimal of a fitted estimator: the list for the data, and the question, of the fit."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_linnerud
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bestk
from bestk import SparseRidge, SparseRidgeCV


def same_list(found, other):
    assert found.complete
    assert other.complete
    assert found.names == other.names
    assert found.threshold == pytest.approx(other.threshold, rel=1e-9)
    assert [m.support.tolist() for m in found] == [m.support.tolist() for m in other]
    np.testing.assert_allclose(
        [m.objective for m in found], [m.objective for m in other], rtol=1e-9
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0.5},
        {"fit_intercept": False},
        {"include": ["age"], "exclude": ["s1", "s2"]},
        {"bounds": (0.0, np.inf)},
    ],
)
def test_it_is_the_list_of_the_data_of_the_fit(diabetes, options):
    X, y = diabetes
    model = SparseRidge(k=4, **options).fit(X, y)
    found = model.near_optimal(within=0.03)
    same_list(found, bestk.near_optimal(X, y, 4, within=0.03, **{"fit_intercept": True} | options))
    assert found.contains(model.support_)
    assert found.best.objective == pytest.approx(model.objective_, rel=1e-9)
    assert found.certificate.verify(X, y)
    assert model.near_optimal().within == 0.02


def test_weights_count(diabetes):
    X, y = diabetes
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    found = SparseRidge(k=3).fit(X, y, sample_weight=weight).near_optimal(0.05)
    alone = bestk.near_optimal(X, y, 3, within=0.05, sample_weight=weight, fit_intercept=True)
    same_list(found, alone)
    assert found.certificate.verify(X, y, weight)


def test_other_options_are_those_of_the_function(diabetes):
    X, y = diabetes
    model = SparseRidge(k=3, time_limit=60.0).fit(X, y)
    assert len(model.near_optimal(n_best=5)) == 5
    threshold = 1.1 * model.objective_
    assert model.near_optimal(below=threshold).threshold == threshold
    with pytest.raises(ValueError, match="within"):
        model.near_optimal(-0.1)
    with pytest.raises(TypeError, match="surprise"):
        model.near_optimal(surprise=1)


def test_the_question_is_that_of_the_fit(diabetes):
    """Parameters that are set afterwards wait for the next fit."""
    X, y = diabetes
    model = SparseRidge(k=3, exclude=["bmi"]).fit(X, y)
    before = model.near_optimal(0.05)
    model.set_params(k=5, alpha=10.0, exclude=None)
    same_list(model.near_optimal(0.05), before)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_several_targets_have_a_list_each(n_jobs):
    X, Y = load_linnerud(return_X_y=True, as_frame=True)
    lists = SparseRidge(k=2, n_jobs=n_jobs).fit(X, Y).near_optimal(within=0.3)
    assert len(lists) == Y.shape[1]
    for found, name in zip(lists, Y, strict=True):
        same_list(found, bestk.near_optimal(X, Y[name], 2, within=0.3, fit_intercept=True))
        assert found.certificate.verify(X, Y[name])
    one_column = SparseRidge(k=2).fit(X, Y.iloc[:, :1]).near_optimal(within=0.3)
    assert len(one_column) == 1
    same_list(one_column[0], lists[0])


def test_a_cross_validated_choice(diabetes):
    X, y = diabetes
    model = SparseRidgeCV(ks=[2, 3], alphas=[0.0, 0.1]).fit(X, y)
    found = model.near_optimal(within=0.03)
    options = {"alpha": model.alpha_, "within": 0.03, "fit_intercept": True}
    same_list(found, bestk.near_optimal(X, y, model.k_, **options))
    assert found.certificate.verify(X, y)


def test_a_chosen_box_is_that_of_the_fit(diabetes):
    model = SparseRidge(k=3, bounds="auto").fit(*diabetes)
    found = model.near_optimal()
    assert found.best.box == found.problem.box == model.result_.box
    assert found.best.is_conditional


def test_the_last_step_of_a_pipeline(diabetes):
    X, y = diabetes
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), SparseRidge(k=3))
    found = pipeline.fit(X, y)[-1].near_optimal()
    assert found.names == tuple(X.columns)


@pytest.mark.parametrize("make", [SparseRidge, SparseRidgeCV])
def test_rows_are_not_part_of_a_pickle(make):
    X, y, _ = bestk.datasets.make_synthetic(20_000, 12, k=3)
    model = make().fit(X, y)
    text = pickle.dumps(model)
    assert len(text) < X.nbytes / 4
    for other in (pickle.loads(text), copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        with pytest.raises(ValueError, match="needs the data of the fit"):
            other.near_optimal()
        assert other.fit(X, y).near_optimal().complete
    assert model.near_optimal().complete  # the model itself still has them


def test_before_a_fit_there_is_nothing_to_ask(diabetes):
    for model in (SparseRidge(), clone(SparseRidge().fit(*diabetes))):
        with pytest.raises(NotFittedError):
            model.near_optimal()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_collections(diabetes):
    import dask.dataframe as dd

    X, y = diabetes
    frame = dd.from_pandas(X.assign(y=y), npartitions=3)
    model = SparseRidge(k=3).fit(frame[list(X.columns)], frame["y"])
    alone = bestk.near_optimal(X, y, 3, within=0.03, fit_intercept=True)
    same_list(model.near_optimal(0.03), alone)
