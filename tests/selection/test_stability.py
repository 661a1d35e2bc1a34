"""Stability: the models of resamples are those of brute force, whoever finds them, and counted."""

import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.checks import assert_same
from helpers.instances import Instance, make, tolerance
from helpers.seeds import seeds
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import bestk
from bestk import Status
from bestk.selection.stability import stability
from bestk.selection.stability.resampling import KINDS, resample_weights
from bestk.selection.stability.selector import StabilitySelector


@pytest.fixture(scope="module")
def hard():
    X, y, _ = bestk.datasets.make_synthetic(120, 60, k=8, rho=0.9)
    return X, y


def same(one, other):
    """The same models of the same resamples, to the last digit."""
    for name in ("numbers", "chosen", "coefs", "intercepts", "objectives", "lower_bounds", "gaps"):
        assert_same(getattr(one, name), getattr(other, name))
    assert one.statuses == other.statuses
    assert_same(one.model.coef, other.model.coef)


# Resamples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_resamples_have_their_rows(n, kind):
    weights = resample_weights(n, 30, resample=kind, fraction=0.3, random_state=0)
    size = max(1, round(0.3 * n)) if kind == "subsample" else n
    assert weights.shape == (30, n)
    assert (weights == np.round(weights)).all()
    assert (weights >= 0).all()
    assert (weights.sum(axis=1) == size).all()
    if kind == "subsample":
        assert weights.max() == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_equally_likely(kind):
    n, many = 20, 4000
    weights = resample_weights(n, many, resample=kind, fraction=0.3, random_state=1)
    expected = weights.sum() / weights.size
    error = weights.std() / np.sqrt(many)
    assert np.abs(weights.mean(axis=0) - expected).max() < 5 * error


@pytest.mark.parametrize("length", [1, 3, 10, 24])
def test_blocks_are_consecutive_rows(length):
    weights = resample_weights(24, 50, resample="block", block_length=length, random_state=2)
    for row in weights:
        # A row that is drawn without the one before it begins a block, or several.
        begun = np.maximum(row - np.roll(row, 1), 0).sum()
        assert begun <= -(-24 // length)
    assert (weights == 1.0).all() == (length == 24)


def test_a_seed_decides_and_more_resamples_begin_with_the_same():
    few, many = (resample_weights(30, size, random_state=5) for size in (3, 8))
    assert_same(few, many[:3])
    by_generator = resample_weights(30, 3, random_state=np.random.default_rng(5))
    assert_same(few, by_generator)
    assert (resample_weights(30, 3, random_state=6) != few).any()
    rng = np.random.default_rng(5)
    assert (resample_weights(30, random_state=rng) != resample_weights(30, random_state=rng)).any()
    legacy = [resample_weights(30, random_state=np.random.RandomState(1)) for _ in range(2)]
    assert_same(*legacy)


# Models -------------------------------------------------------------------------------------


def of_resample(instance, counts, share, fit_intercept):
    """The instance that a resample is, without an intercept: means are subtracted."""
    options = dict(instance.options)
    weight = counts * options.get("sample_weight", np.ones(len(counts)))
    options["sample_weight"] = weight[counts > 0]
    options["alpha"] = options.get("alpha", 0.0) * share
    columns = np.column_stack([instance.X, instance.y]).astype(float)[counts > 0]
    if fit_intercept:
        largest = np.abs(columns).max(axis=0)
        columns = columns - options["sample_weight"] @ columns / weight.sum()
        columns[:, np.abs(columns).max(axis=0) <= 1e-14 * largest] = 0.0
    return Instance(
        regime=instance.regime, X=columns[:, :-1], y=columns[:, -1], k=instance.k, options=options
    )


@seeds(200, chunk=20)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_model_is_that_of_brute_force(seed, fit_intercept):
    instance, kind = make(seed), KINDS[seed % 3]
    drawing = {"resample": kind, "fraction": 0.6, "random_state": seed}
    found = stability(
        instance.X, instance.y, instance.k, n_resamples=3, fit_intercept=fit_intercept,
        n_threads=1, **drawing, **instance.options,
    )  # fmt: skip
    n = len(instance.y)
    weights = resample_weights(n, 3, **drawing)
    given = instance.options.get("sample_weight", 1.0)
    for i, counts in enumerate(weights):
        assert_same(found.weights(i), counts * given)
        plain = of_resample(instance, counts, counts.sum() / n, fit_intercept)
        weight, alpha = plain.options["sample_weight"], plain.options["alpha"]
        assert found.resampled_alpha == pytest.approx(alpha)
        best, yy = plain.brute_force(), float(weight @ plain.y**2)
        slack = tolerance(plain, best, yy) + 1e-7 * yy * fit_intercept
        assert found.lower_bounds[i] <= best + slack
        assert best - slack <= found.objectives[i] <= best * (1 + 2e-4) + slack
        assert set(np.flatnonzero(found.coefs[i])) <= set(np.flatnonzero(found.chosen[i]))
        assert found.chosen[i].sum() <= max(instance.k, 0)
    assert found.proven == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_resample_is_what_solve_finds_with_its_weights(kind, diabetes):
    X, y = diabetes
    options = {"alpha": 0.1, "fit_intercept": True, "include": ["age"]}
    found = stability(X, y, 4, n_resamples=5, resample=kind, random_state=3, **options)
    options["alpha"] = found.resampled_alpha
    for i in found.numbers:
        result = bestk.solve(X, y, 4, sample_weight=found.weights(int(i)), **options)
        assert np.flatnonzero(found.chosen[i]).tolist() == result.support.tolist()
        np.testing.assert_allclose(found.coefs[i], result.coef, rtol=1e-8)
        assert found.intercepts[i] == pytest.approx(result.intercept)
        assert found.objectives[i] == pytest.approx(result.objective)
    assert found.names == tuple(X.columns)
    assert found.frequencies[0] == 1.0


@pytest.mark.parametrize("bounds", [None, "auto"])
def test_threads_do_not_change_the_answer(hard, bounds):
    one, two, again = (
        stability(*hard, 5, n_resamples=6, bounds=bounds, random_state=0, n_threads=n)
        for n in (1, 2, 2)
    )
    same(one, two)
    same(one, again)
    other = stability(*hard, 5, n_resamples=6, bounds=bounds, random_state=1, n_threads=2)
    assert (other.coefs != one.coefs).any()
    conditional = 0 if bounds is None else 6
    assert (one.proven, one.conditional) == (6 - conditional, conditional)
    assert one.status is (Status.OPTIMAL if bounds is None else Status.CONDITIONAL)
    assert one.is_closed
    assert one.is_proven == (bounds is None)


def test_a_cluster_gives_the_same_answer(easy_data, client):
    here = stability(*easy_data, 3, n_resamples=4, random_state=0)
    there = stability(*easy_data, 3, n_resamples=4, random_state=0, client=client)
    same(here, there)


# What is counted ----------------------------------------------------------------------------


def test_frequencies_supports_and_quantiles_count_the_models(diabetes):
    X, y = diabetes
    found = stability(X, y, 4, n_resamples=40, fit_intercept=True, random_state=0)
    np.testing.assert_allclose(found.frequencies, (found.coefs != 0).mean(axis=0))
    assert sum(each.count for each in found.supports) == 40
    assert sum(each.share for each in found.supports) == pytest.approx(1.0)
    counts = [each.count for each in found.supports]
    assert counts == sorted(counts, reverse=True)
    first = found.supports[0]
    assert first.names == tuple(X.columns[list(first.support)])
    own = [np.flatnonzero(row).tolist() == list(first.support) for row in found.chosen]
    assert sum(own) == first.count
    np.testing.assert_allclose(first.coef, found.coefs[own][:, first.support].mean(axis=0))
    for threshold in (0.3, 0.6, 1.0):
        expected = np.flatnonzero(found.frequencies >= threshold)
        assert found.selected(threshold).tolist() == expected.tolist()
    assert found.coefficient_quantiles(0.5).shape == (10,)
    quantiles = found.coefficient_quantiles([0.1, 0.9])
    np.testing.assert_allclose(quantiles, np.quantile(found.coefs, [0.1, 0.9], axis=0))
    assert found.model.support.tolist() == bestk.solve(X, y, 4, fit_intercept=True).support.tolist()
    assert found.model.certificate is not None


def test_it_can_be_read_and_kept(diabetes):
    X, y = diabetes
    found = stability(X, y, 3, n_resamples=10, fit_intercept=True, random_state=0)
    text = str(found)
    assert "10 of 10 resamples searched, 10 proven optimal" in text
    assert "bmi" in text
    assert "different support" in text
    frame = found.to_frame()
    assert frame.index[0] == "bmi"
    assert frame["frequency"].is_monotonic_decreasing
    np.testing.assert_array_equal(frame.loc[list(X.columns), "frequency"], found.frequencies)
    never = frame["frequency"] == 0
    assert frame.loc[never, "coef"].isna().all()
    same(found, pickle.loads(pickle.dumps(found)))


def test_names_of_features_without_names(easy_data):
    found = stability(*easy_data, 2, n_resamples=2, random_state=0)
    assert found.names[:2] == ("x0", "x1")
    named = stability(
        *easy_data, 2, n_resamples=2, random_state=0, feature_names=list("abcdefghijkl")
    )
    assert named.names == tuple("abcdefghijkl")


# Awkward data -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_features_to_choose(easy_data, kind):
    X, y = easy_data
    none = stability(X, y, 0, n_resamples=3, resample=kind, random_state=0)
    assert none.proven == 3
    assert not none.chosen.any()
    assert none.supports[0].support == ()
    assert "no feature is ever chosen" in str(none)
    zero = stability(X, 0.0 * y, 3, n_resamples=3, resample=kind, random_state=0)
    assert zero.proven == 3
    assert not zero.coefs.any()


def test_all_features_are_chosen(easy_data):
    X, y = easy_data
    for k in (12, 100):
        found = stability(X, y, k, alpha=0.1, n_resamples=3, random_state=0)
        assert (found.frequencies == 1.0).all()
        assert found.is_proven


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_one_row(kind, fit_intercept):
    X, y = np.array([[1.0, 2.0]]), np.array([3.0])
    found = stability(
        X, y, 1, resample=kind, n_resamples=2, fit_intercept=fit_intercept, random_state=0
    )
    assert found.proven == 2
    np.testing.assert_allclose(found.intercepts + found.coefs @ X[0], 3.0)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 40))
    y = X[:, 3] - X[:, 7] + 0.01 * rng.standard_normal(12)
    found = stability(X, y, 2, n_resamples=5, random_state=0)
    assert found.is_proven
    assert found.selected().tolist() == [3, 7]


def test_copies_share_what_is_chosen(easy_data):
    X, y = easy_data
    twice = np.column_stack([X, X])
    once, both = (stability(data, y, 3, n_resamples=5, random_state=0) for data in (X, twice))
    np.testing.assert_allclose(both.objectives, once.objectives)
    np.testing.assert_allclose(both.frequencies[:12] + both.frequencies[12:], once.frequencies)


def test_rows_that_are_not_drawn_have_no_say():
    """y is zero but in one row: resamples without it are still problems."""
    X = np.random.default_rng(0).standard_normal((6, 3))
    y = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for fit_intercept in (False, True):
        found = stability(X, y, 1, n_resamples=30, fit_intercept=fit_intercept, random_state=0)
        drawn = resample_weights(6, 30, random_state=0)[:, 0] > 0
        assert not drawn.all()
        assert found.is_proven
        assert (found.chosen.any(axis=1) == drawn).all()


def test_rows_without_weight_may_be_all_that_is_drawn():
    X = np.random.default_rng(0).standard_normal((4, 2))
    weight = np.array([1.0, 1.0, 0.0, 0.0])
    for fit_intercept in (False, True):
        found = stability(
            X, X[:, 0], 1, sample_weight=weight, fit_intercept=fit_intercept, random_state=0
        )
        assert found.is_proven
        assert np.isfinite(found.coefs).all()
        assert np.isfinite(found.intercepts).all()


# Limits -------------------------------------------------------------------------------------


def test_no_time_leaves_one_model_and_says_so(hard):
    found = stability(*hard, 8, time_limit=0.0, random_state=0)
    assert (found.n_done, found.n_resamples, found.proven) == (1, 100, 0)
    assert found.status is found.ended is Status.TIME_LIMIT
    assert not found.is_closed
    assert "1 of 100 resamples searched, 0 proven optimal" in found.claim
    assert "time limit" in found.claim
    assert found.chosen.sum() <= 8


def test_limits_of_each_search_are_reported(hard):
    found = stability(*hard, 8, n_resamples=4, node_limit=1, random_state=0)
    assert found.n_done == 4
    assert found.ended is None
    assert found.status is Status.NODE_LIMIT
    assert found.proven == sum(status is Status.OPTIMAL for status in found.statuses) < 4
    assert (found.lower_bounds <= found.objectives).all()
    assert "with a gap of at most" in found.claim


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("watch", ["callback", "progress"])
def test_what_is_done_is_kept_when_a_run_is_ended(hard, n_threads, watch):
    seen = 0

    def end(snapshot):
        nonlocal seen
        seen += 1
        if seen >= 40 and watch == "progress":
            raise KeyboardInterrupt
        return seen >= 40

    options = {"callback": end}
    if watch == "progress":
        options = {"progress": SimpleNamespace(update=end, close=lambda: None)}
    found = stability(*hard, 6, random_state=0, n_threads=n_threads, **options)
    assert 1 <= found.n_done < 100
    assert found.status is (Status.STOPPED if watch == "callback" else Status.INTERRUPTED)
    whole = stability(*hard, 6, n_resamples=found.n_done, random_state=0)
    for i, status in enumerate(found.statuses):
        if status is Status.OPTIMAL:
            assert_same(found.coefs[i], whole.coefs[found.numbers[i]])
        assert found.lower_bounds[i] <= whole.objectives[found.numbers[i]] * (1 + 1e-9)


def test_an_interrupt_of_the_thread_that_waits(hard, monkeypatch, nothing_is_left):
    from bestk.selection.stability import search as module

    def interrupted(jobs, **options):
        next(iter(jobs)).result()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", interrupted)
    found = stability(*hard, 6, random_state=0, n_threads=2)
    assert 1 <= found.n_done < 100
    assert found.status is Status.INTERRUPTED
    assert Status.STOPPED not in found.statuses


def test_an_interrupt_before_anything_is_done(hard, monkeypatch):
    from bestk.selection.stability import search as module

    def interrupted(*args, **options):
        return replace(solve(*args, **options), status=Status.INTERRUPTED)

    solve = module.solve_problem
    monkeypatch.setattr(module, "solve_problem", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stability(*hard, 6, random_state=0)


def test_an_error_in_one_search_ends_all(easy_data, monkeypatch):
    from bestk.selection.stability.resampling import Resampling

    def failing(self, number):
        raise MemoryError("no room")

    monkeypatch.setattr(Resampling, "counts", failing)
    with pytest.raises(MemoryError, match="no room"):
        stability(*easy_data, 2, random_state=0)


def test_a_display_for_all_searches(easy_data):
    closed = []
    watching = SimpleNamespace(update=lambda snapshot: None, close=lambda: closed.append(1))
    stability(*easy_data, 2, n_resamples=3, random_state=0, progress=watching)
    assert len(closed) == 4
    shown = stability(*easy_data, 2, n_resamples=3, random_state=0, progress=True)
    assert shown.is_proven


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"k": -1}, ValueError, "k must be at least 0"),
        ({"k": 2.5}, TypeError, "k must be a whole number"),
        ({"n_resamples": 0}, ValueError, "n_resamples must be at least 1"),
        ({"resample": "jackknife"}, ValueError, "resample must be one of 'bootstrap'"),
        ({"fraction": 0.0}, ValueError, "fraction must be between 0 and 1"),
        ({"fraction": 1.0}, ValueError, "fraction must be between 0 and 1"),
        ({"fraction": "half"}, TypeError, "fraction must be a number"),
        ({"block_length": 3}, ValueError, 'block_length is for resample="block"'),
        ({"resample": "block", "block_length": 0}, ValueError, "block_length must be at least 1"),
        ({"resample": "block", "block_length": 61}, ValueError, "block_length must be at most"),
        ({"random_state": "seed"}, TypeError, "random_state must be a whole number >= 0, a numpy"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
        ({"alpha": -1.0}, ValueError, "alpha must be a finite number >= 0"),
        ({"sample_weight": np.full(60, -1.0)}, ValueError, "sample_weight must not be negative"),
        ({"include": ["a"]}, ValueError, "include holds names"),
        ({"include": [0, 1, 2]}, ValueError, "include names 3 features, but k = 2"),
        ({"bounds": (1, 2)}, ValueError, "bounds must allow 0"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1"),
        ({"checkpoint": "file"}, ValueError, "checkpoint is for one search"),
        ({"folds": 5}, TypeError, "unknown option 'folds'"),
        ({"initial_support": [0, 1, 2]}, ValueError, "initial_support has 3 features"),
        ({"feature_names": ["a"]}, ValueError, "feature_names must be 12 strings"),
    ],
)
def test_errors_name_the_argument(easy_data, options, error, text):
    k = options.pop("k", 2)
    with pytest.raises(error, match=text):
        stability(*easy_data, k, **options)


def test_errors_about_data(easy_data):
    X, y = easy_data
    with pytest.raises(ValueError, match="no rows to draw from"):
        stability(X[:0], y[:0], 2)
    with pytest.raises(ValueError, match="X contains NaN"):
        stability(np.where(np.eye(60, 12), np.nan, X), y, 2)
    collection = pytest.importorskip("dask.array").from_array(X)
    with pytest.raises(TypeError, match="X must be in memory"):
        stability(collection, y, 2)
    found = stability(X, y, 2, n_resamples=2, random_state=0)
    for threshold in (0.0, 1.1):
        with pytest.raises(ValueError, match="threshold must be above 0 and at most 1"):
            found.selected(threshold)
    with pytest.raises(ValueError, match="q must be a number between 0 and 1"):
        found.coefficient_quantiles([0.5, 2])
    with pytest.raises(ValueError, match="number must be below n_resamples = 2"):
        found.weights(2)


# The selector -------------------------------------------------------------------------------


def what_resamples_cannot(estimator):
    """Rows are drawn equally often, whatever their weight: two of a kind are not one of weight two.

    Where all features are chosen anyway, nobody can tell.
    """
    reason = "a row that is there twice is drawn twice as often"
    return {"check_sample_weight_equivalence_on_dense_data": reason} if estimator.k == 3 else {}


# Checks of array API libraries need an environment variable and are skipped without it.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        StabilitySelector(n_resamples=5, random_state=0),
        StabilitySelector(k=3, n_resamples=4, alpha=0.5, random_state=0),
    ],
    expected_failed_checks=what_resamples_cannot,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_selector_is_stability(diabetes):
    X, y = diabetes
    selector = StabilitySelector(k=4, n_resamples=30, alpha=0.1, random_state=2).fit(X, y)
    options = {"n_resamples": 30, "alpha": 0.1, "fit_intercept": True, "random_state": 2}
    found = stability(X, y, 4, **options)
    same(selector.stability_, found)
    assert selector.get_support(indices=True).tolist() == found.selected(0.6).tolist()
    assert selector.feature_names_in_.tolist() == list(X.columns) == list(found.names)
    assert_same(selector.frequencies_, found.frequencies)
    chosen = selector.get_feature_names_out().tolist()
    assert chosen == [found.names[j] for j in found.selected()]
    assert selector.set_output(transform="pandas").transform(X).columns.tolist() == chosen
    selector.set_params(threshold=1.0)
    assert selector.get_support(indices=True).tolist() == found.selected(1.0).tolist()


def test_the_selector_in_a_pipeline(diabetes):
    X, y = diabetes
    selector = StabilitySelector(k=3, n_resamples=10, random_state=0, n_jobs=2)
    model = make_pipeline(selector, LinearRegression()).fit(X, y)
    assert model[-1].n_features_in_ == model[0].get_support().sum()
    assert clone(selector).get_params() == selector.get_params()
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_the_selector_takes_weights_and_names(diabetes):
    X, y = diabetes
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    selector = StabilitySelector(k=3, n_resamples=5, include=["age"], random_state=0)
    selector.fit(X, y, sample_weight=weight)
    assert selector.frequencies_[0] == 1.0
    assert_same(selector.stability_.sample_weight, weight)


def test_the_selector_warns_of_what_is_not_proven(hard):
    with pytest.warns(ConvergenceWarning, match="1 of 100 resamples searched, 0 proven optimal"):
        StabilitySelector(k=8, time_limit=0.0, random_state=0).fit(*hard)


def test_errors_of_the_selector(diabetes):
    with pytest.raises(ValueError, match="threshold must be above 0"):
        StabilitySelector(threshold=0.0).fit(*diabetes)
    with pytest.raises(NotFittedError):
        StabilitySelector().get_support()
