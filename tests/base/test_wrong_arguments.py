"""Every wrong argument ends in a message that says what is wrong, where, and what to do."""

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import bestk
import bestk.storage
from bestk import Problem, SparseRidge, SparseRidgeCV, SparseSelector, StabilitySelector, rules
from bestk.cross_validation import cross_validate_batches
from bestk.selection.jobs import as_jobs
from bestk.verification.verify import verify_batches

rng = np.random.default_rng(0)
X = rng.standard_normal((24, 5))
Y = X[:, 0] - 2.0 * X[:, 2] + 0.1 * rng.standard_normal(24)
NAMES = ["age", "sex", "bmi", "height", "weight"]
FRAME = pd.DataFrame(X, columns=NAMES)
BACKWARDS = FRAME[NAMES[::-1]]
G, C, YY = X.T @ X, X.T @ Y, float(Y @ Y)
HUGE = 10**400


def said(call):
    """The message of the error that a call ends with."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return str(caught.value)


def check(call, words):
    message = said(call)
    for word in words:
        assert word in message


# Wrong answers ----------------------------------------------------------------------------------

MASKED = np.ma.masked_greater(X, 1.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: bestk.solve(MASKED, Y, 2),
        lambda: bestk.solve_path(MASKED, Y, [2]),
        lambda: bestk.near_optimal(MASKED, Y, 2),
        lambda: bestk.stability(MASKED, Y, 2, n_resamples=2),
        lambda: SparseRidge(2).fit(MASKED, Y),
        lambda: SparseRidgeCV([2]).fit(MASKED, Y),
        lambda: SparseSelector(2).fit(MASKED, Y),
        lambda: StabilitySelector(2).fit(MASKED, Y),
        lambda: bestk.solve(X, Y, 2).certificate.verify(MASKED, Y),
        lambda: bestk.solve(X, Y, 2).predict(MASKED),
    ],
)
def test_masks_are_not_forgotten(call):
    check(call, ["X has masked values", "leave out the rows"])


def test_masks_of_targets_and_weights_are_not_forgotten():
    hidden = np.ma.masked_greater(np.abs(Y), 1.0)
    for fit in (lambda *a, **o: bestk.solve(*a, 2, **o), SparseRidge(2).fit):
        check(lambda fit=fit: fit(X, hidden), ["y has masked values"])
        check(lambda fit=fit: fit(X, Y, sample_weight=hidden), ["sample_weight has masked"])
    check(lambda: Problem.from_batches([(X, Y), (MASKED, Y)]), ["X of batch 1 has masked values"])


def test_missing_values_of_pandas_are_no_masks():
    y = pd.array([None, *Y[1:]], dtype="Float64")
    check(lambda: bestk.solve(X, y, 2), ["y ", "row 0 (counted from 0)", "drop or impute"])


def test_a_mask_that_hides_nothing_is_no_mask():
    plain = bestk.solve(X, Y, 2)
    assert bestk.solve(np.ma.array(X), np.ma.array(Y), 2).objective == plain.objective


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (BACKWARDS, ["X of batch 1", "another order"]),
        (FRAME.rename(columns={"age": "Age"}), ["X of batch 1", "no column 'age'", "but 'Age'"]),
    ],
)
def test_columns_of_batches_are_not_mixed_up(later, words):
    check(lambda: Problem.from_batches([(FRAME, Y), (later, Y)]), words)
    check(lambda: cross_validate_batches([(FRAME, Y), (later, Y)], [1], [0.0]), words)


def test_columns_of_new_rows_are_not_mixed_up():
    found = bestk.near_optimal(FRAME, Y, 2)
    for ask in (found.predictions, found.prediction_range, found.best.predict):
        check(lambda ask=ask: ask(BACKWARDS), ["X has its columns in another order", "pass"])
        check(lambda ask=ask: ask(FRAME[NAMES[1:]]), ["X has no column 'age'", "pass"])
        check(lambda ask=ask: ask(FRAME.assign(z=1)), ["X has a column 'z'", "pass"])


@pytest.mark.parametrize("value", ["no", "yes", None, 1, 0])
def test_an_intercept_is_there_or_not(value):
    words = [f"fit_intercept must be True or False, got {value!r}"]
    check(lambda: bestk.solve(X, Y, 2, fit_intercept=value), words)
    check(lambda: Problem.from_batches([(X, Y)], fit_intercept=value), words)
    check(lambda: SparseRidgeCV([2], fit_intercept=value).fit(X, Y), words)
    check(lambda: cross_validate_batches([(X, Y)], [1], [0.0], fit_intercept=value), words)


@pytest.mark.parametrize("name", ["include", "exclude", "free", "initial_support"])
def test_numbers_that_look_like_a_mask(name):
    words = [f"{name} has 5 values that are 0 or 1", f"numpy.array({name}, dtype=bool)"]
    check(lambda: bestk.solve(X, Y, 3, **{name: [1, 0, 1, 0, 0]}), words)
    assert bestk.solve(X[:, :2], Y, 2, **{name: [0, 1]}).k == 2  # the indices of both


def test_a_result_of_other_data_has_no_runner_up():
    result = bestk.solve(X, Y, 2)
    other = Problem.from_data(X[:, :3], Y)
    check(lambda: other.runner_up(result), ["result has 5 features", "the problem has 3"])
    check(lambda: other.runner_up(None), ["result must be a bestk.Result"])


# What is wrong, and where -----------------------------------------------------------------------


def with_value(array, place, value):
    array = np.asarray(array, dtype=float).copy()  # np.array is a view of a frame in pandas 2.2
    array[place] = value
    return array


MISSING = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2.0, 4.0]})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bestk.solve(None, Y, 2), ["X is None"]),
        (lambda: bestk.solve(X, None, 2), ["y is None"]),
        (lambda: bestk.solve(3.0, Y, 2), ["X must have two dimensions", "pass a row"]),
        (
            lambda: bestk.solve(with_value(FRAME, (3, 2), np.nan), Y, 2),
            ["X contains NaN", "the first is nan in row 3, column 2", "drop or impute"],
        ),
        (
            lambda: bestk.solve(FRAME.where(FRAME < 1.5, np.inf), Y, 2),
            ["X contains", "the first is inf", "column '"],
        ),
        (
            lambda: bestk.solve(X, with_value(Y, 7, -np.inf), 2),
            ["y contains NaN or infinite", "-inf in row 7 (counted from 0)"],
        ),
        (lambda: bestk.solve(MISSING, [1, 2, 3], 1), ["row 1, column 'a'", "a missing value"]),
        (lambda: bestk.solve([[HUGE, 1], [1, 2]], [1, 2], 1), ["row 0, column 0", "too large"]),
        (lambda: bestk.solve(X, [*Y[:-1], "many"], 2), ["y holds text"]),
        (lambda: bestk.solve(X, pd.Series(["u", "v"] * 12), 2), ["y has 'u' in"]),
        (lambda: bestk.solve(X, pd.date_range("2020", periods=24), 2), ["y holds dates"]),
        (lambda: bestk.solve(X, Y[None], 2), ["y must be a vector", "pass y.ravel()"]),
        (lambda: bestk.solve(X, Y[:5], 2), ["y has length 5", "24 rows of X", "one number for"]),
        (lambda: bestk.solve({"a": 1}, Y, 2), ["X is of type dict"]),
        (lambda: bestk.solve((row for row in X), Y, 2), ["X is of type generator"]),
        (lambda: bestk.solve(polars.DataFrame({"a": [1.0]}).lazy(), [1], 1), ["X.collect()"]),
        (lambda: bestk.solve(FRAME.assign(t=FRAME["age"].astype(object)), Y, 2),
         ["'t' (objects)", "X[column].astype(float)"]),
        (
            lambda: bestk.solve(pyarrow.table({"a": ["x", "y"], "b": [1.0, 2.0]}), [1, 2], 1),
            ["not numbers: 'a' (string)", "bestk.groups_of(X)"],
        ),
        (lambda: bestk.solve(X, Y, 2, sample_weight=with_value(np.ones(24), 4, -2)),
         ["must not be negative, got -2 in row 4"]),
        (lambda: bestk.solve(X, Y, 10**30), ["k must be at most"]),
        (lambda: bestk.solve(FRAME, Y, 2, bounds=(1, 2)), ["bounds must allow 0", "'age' has (1"]),
        (
            lambda: bestk.solve(X, Y, 2, bounds=[(-1, 1)] * 5),
            ["bounds must be a pair", "one pair per feature, pass tuple(numpy.array(bounds).T)"],
        ),
        (lambda: bestk.solve(X, Y, 2, bounds=[(-1, 1), (0,), (0,)]), ["bounds must be a pair"]),
        (lambda: bestk.solve(X, Y, 2, bounds=(-1, "a")), ["bounds: the upper bound holds text"]),
        (lambda: bestk.solve(FRAME, Y, 2, include=["age", 2]), ["include mixes names"]),
        (lambda: bestk.solve(FRAME, Y, 2, include=["AGE "]), ["did you mean 'age'?"]),
        (lambda: bestk.solve(FRAME, Y, 2, include=["q"]), ["no feature 'q'; there are 'age', "]),
        (lambda: bestk.solve(FRAME, Y, 2, include={"age"}), ["include must be a list", "{'age'}"]),
        (lambda: bestk.solve(FRAME, Y, 2, include=[["a"], ["b", "c"]]), ["include must be a list"]),
        (lambda: bestk.solve(FRAME, Y, 2, exclude=[None]), ["exclude must hold names", "[None]"]),
        (lambda: bestk.solve(X, Y, 2, include=["age"]), ["column names are all strings"]),
        (lambda: bestk.solve(X, Y, 2, n_threads=-1), ["n_threads", "got -1", "None uses all"]),
        (lambda: Problem.from_data(X, Y, n_threads=0), ["n_threads", "got 0", "None uses all"]),
        (lambda: Problem.from_batches([(X, Y)], n_threads="a"), ["n_threads must be a whole"]),
        (lambda: bestk.solve(X, Y, 2, search="best"), ["did you mean 'best-first'?"]),
        (lambda: bestk.solve(X, Y, 2, progress="bar"), ["progress must be", "got 'bar'"]),
        (lambda: bestk.solve(X, Y, 2, callback=3), ["callback must be a function", "got 3"]),
        (lambda: bestk.solve(X, Y, 2, advanced={}), ["advanced must be a bestk.Advanced"]),
        (lambda: bestk.beam_search(X, Y, 2, width=0), ["width must be at least 1"]),
        (lambda: bestk.solve_path(X, Y, None), ["ks must be several sizes", "got None"]),
        (lambda: bestk.solve_path(X, Y, "12"), ["ks must be several sizes", "got '12'"]),
        (lambda: bestk.solve_path(X, Y, [1], initial_support=[0]), ["several searches"]),
        (lambda: Problem.from_data(X, Y).solve(2, alpha=1.0), ["'alpha'", "part of the problem"]),
        (lambda: Problem.from_data(X, Y).solve(2, gaptol=1.0), ["did you mean 'gap_tol'?"]),
        (lambda: Problem.from_gram(G, C, YY, feature_names="abcde"), ["feature_names", "'abcde'"]),
        (lambda: Problem.from_gram(G, C, YY, feature_names=[1, 2, 3, 4, 5]), ["got 1 among them"]),
        (lambda: bestk.solve(X[:1], Y, 2), ["y has length 24, but there is 1 row of X"]),
        (lambda: bestk.solve(X, Y, 2, sample_weight=2.0), ["one number for each of the rows of X"]),
        (lambda: bestk.solve(X, Y, 2).predict(X[0]), ["X.reshape(1, -1) for a single row"]),
        (lambda: bestk.solve(X, Y, 2, bounds=(None, 1)), ["lower bound is None; use -inf and inf"]),
        (lambda: bestk.solve(X, Y, 2, include=[True]), ["length 1; give one value", "5 features"]),
        (lambda: Problem.from_data(X, Y).solve(2, gap=1), ["option 'gap'", "? Options are"]),
        (lambda: Problem.from_data(X, Y).runner_up(3), ["got one of type int"]),
        (lambda: bestk.stability(X, Y, 2, fraction=-1), ["fraction must be between 0 and 1"]),
        (lambda: bestk.stability(X, Y, 2, fraction=HUGE), ["such as 0.5; got inf"]),
        (lambda: Problem.from_batches([(X, Y), X]), ["batch 1 is of type ndarray", "[(X, y)]"]),
        (lambda: bestk.solve(X, Y, 2).equation(digits=-1), ["digits must be at least 1"]),
        (lambda: bestk.solve(X, Y, 2).to_latex(digits="a"), ["digits must be a whole number"]),
        (lambda: bestk.near_optimal(X, Y, 2).replacements("q"), ["feature holds names"]),
        (lambda: SparseRidgeCV([2], cv=[]).fit(X, Y), ["cv has no folds"]),
        (lambda: SparseRidgeCV([2], cv=[([], [1])]).fit(X, Y), ["cv: fold 0", "no rows to fit"]),
        (lambda: SparseRidgeCV([2], cv=[([1], [])]).fit(X, Y), ["no rows to judge the fit by"]),
        (lambda: SparseRidgeCV([2], cv=[([24], [1])]).fit(X, Y), ["row 24", "numbered 0 to 23"]),
        (lambda: SparseRidgeCV([2], scoring=lambda *_: np.nan).fit(X, Y), ["NaN", "of fold 0"]),
        (lambda: SparseRidge(2).fit(FRAME.where(FRAME < 1.5), Y),
         ["X contains NaN", "column 'sex' (counted from 0)", "impute"]),
        (lambda: SparseRidge(2).fit(X, np.where(Y > 2, np.inf, Y)), ["y contains NaN", "is inf"]),
        (lambda: SparseRidge(2).fit(X, Y).predict(np.where(X < 1, X, np.nan)), ["X contains NaN"]),
        (lambda: StabilitySelector(2).fit(np.where(X < 1, X, np.inf), Y), ["the first is inf"]),
        (lambda: SparseRidge(2).fit(X, Y, np.ones(3)), ["sample_weight has length 3", "24 rows"]),
        (lambda: SparseRidge(2).fit(X, Y, "balanced"), ["sample_weight holds text"]),
        (lambda: SparseRidge(2).fit(X, Y, -Y**2), ["sample_weight must not be negative", "row"]),
        (lambda: SparseRidgeCV([2]).fit(X, ["a"] * 24), ["y holds text"]),
        (lambda: SparseRidgeCV([2], n_jobs=0).fit(X, Y), ["n_jobs must be", "got 0"]),
        (lambda: SparseRidge(2).fit(FRAME.assign(t=pd.date_range("2020", periods=24)), Y),
         ["'t' (dates)"]),
        (lambda: StabilitySelector(2).fit(FRAME.assign(t="u"), Y), ["not numbers: 't' ("]),
        (lambda: SparseRidge(2).fit(FRAME, pd.Categorical(["u", "v"] * 12)), ["y has 'u' in"]),
        (lambda: bestk.solve(FRAME.assign(sex=pd.array([1, None] * 12, dtype="Int64")), Y, 2),
         ["X has <NA> in row 1, column 'sex'", "a missing value; drop or impute"]),
        (lambda: StabilitySelector(2, n_jobs="a").fit(X, Y), ["n_jobs must be", "'a'"]),
        (lambda: cross_validate_batches([(X, Y)], [1], [0.0], seed=-1), ["seed must be at least"]),
    ],
)  # fmt: skip
def test_what_where_and_what_to_do(call, words):
    check(call, words)


@pytest.mark.parametrize("names", [np.array(NAMES), FRAME.columns, NAMES])
def test_names_in_any_container(names):
    assert Problem.from_data(X, Y, feature_names=names).feature_names == tuple(NAMES)
    assert Problem.from_gram(G, C, YY, feature_names=names).feature_names == tuple(NAMES)
    found = bestk.stability(X, Y, 1, n_resamples=1, random_state=0, feature_names=names)
    assert found.names == tuple(NAMES)


def test_resume_takes_either_data_or_a_problem(tmp_path):
    path = tmp_path / "run.ckpt"
    bestk.solve(X, Y, 2, checkpoint=path, node_limit=0)
    problem = Problem.from_data(X, Y)
    check(lambda: bestk.resume(path, X, Y, problem=problem), ["either X and y, or problem="])
    check(lambda: bestk.resume(path), ["either X and y, or problem="])
    check(lambda: bestk.resume(path, problem=X), ["problem must be a bestk.Problem", "ndarray"])
    assert bestk.resume(path, problem=problem).k == 2


def test_large_whole_numbers_that_are_no_size_are_taken():
    bestk.stability(X, Y, 1, n_resamples=1, random_state=10**30)
    cross_validate_batches([(X, Y)], [1], [0.0], seed=10**30)


@pytest.mark.parametrize("n_jobs", [None, 1, -1, np.int64(2)])
def test_numbers_of_jobs(n_jobs):
    assert as_jobs(n_jobs) == n_jobs


def test_messages_stay_short_however_large_the_value():
    assert len(said(lambda: bestk.solve(X, Y, "k" * 10**5))) < 300
    assert len(said(lambda: bestk.solve(X, Y, 2, include=X))) < 900
    assert len(said(lambda: bestk.solve(X, Y, 10**3000))) < 300


STRUCTURED = [
    ({"rules": "at most 2"}, ["rules[0] must be a rule, got 'at most 2'", "bestk.rules.at_most"]),
    ({"rules": [rules.at_most(1, ["age", "q"])]}, ["rules[0] (at_most)", "there are 'age'"]),
    ({"rules": [rules.at_least(3, ["age", "sex"])]}, ["these are only 2", "ask for fewer"]),
    ({"constraints": "age + q = 1"}, ["constraints[0]", "no feature 'q'; there are 'age'"]),
    ({"constraints": "0 age = 1"}, ["constraints[0]", "coefficients are zero", "leave it out"]),
    ({"constraints": ["age = 1", "age = 2"]}, ["constraints[1]", "change or leave out one"]),
    ({"groups": {"size": ["height", "weight"]}, "include": "sizes"}, ["include: ", "'size'"]),
    (
        {"groups": {"size": ["height", "weight"]}, "include": "height", "exclude": "weight"},
        ["group 'size' is in both include and exclude", "leave it out of one"],
    ),
    ({"constraints": "age = 5", "bounds": (-1, 1)}, ["no model with k = 2", "or bounds"]),
]


@pytest.mark.parametrize(("options", "words"), STRUCTURED)
def test_structure_is_named_as_it_was_written(options, words):
    check(lambda: bestk.solve(FRAME, Y, 2, **options), words)


def test_a_count_in_a_rule_has_a_limit():
    check(lambda: rules.at_most(10**30, "age"), ["at_most: m must be at most"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bestk.groups_of(X), ["frame must be a data frame", "ndarray"]),
        (lambda: bestk.groups_of(pd.DataFrame(X)), ["not strings", "frame.columns.map(str)"]),
        (lambda: bestk.groups_of(FRAME, numeric=5), ["numeric must be a list"]),
        (lambda: bestk.groups_of(FRAME, numeric=["q"]), ["no column 'q'; there are 'age'"]),
        (lambda: bestk.groups_of(pd.DataFrame({"a": ["1", 1] * 3})), ["'a'", "read alike"]),
        (lambda: bestk.groups_by_source(5), ["columns must be a data frame", "got 5"]),
        (lambda: bestk.groups_by_source([]), ["columns is empty"]),
    ],
)
def test_columns_that_make_groups(call, words):
    check(call, words)


# Files, proofs and pictures ---------------------------------------------------------------------


def test_files_are_named(tmp_path):
    result = bestk.solve(X, Y, 2)
    result.certificate.save(tmp_path / "proof.npz")
    with open(tmp_path / "other.npz", "wb") as file:
        np.savez(file, a=1)
    for name, read in (
        ("proof.npz", bestk.storage.load),
        ("other.npz", bestk.Certificate.load),
        ("proof.npz", type(bestk.near_optimal(X, Y, 2).certificate).load),
        ("proof.npz", bestk.storage.from_json),
    ):
        check(lambda read=read, name=name: read(tmp_path / name), [str(tmp_path / name)])
    path, words = tmp_path / "proof.npz", ["max_bytes must be a number"]
    for value in (-1, "many", np.nan):
        check(lambda value=value: bestk.Certificate.load(path, max_bytes=value), words)
    check(lambda: bestk.storage.save(None, tmp_path / "run.npz"), ["result must be a bestk.Result"])
    check(lambda: bestk.storage.from_json("x" * 5000), ["source is neither the name of a file"])


PROOF = bestk.solve(X, Y, 2).certificate
LIST = bestk.near_optimal(X, Y, 2).certificate


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PROOF.verify(X, Y, exact="no"), ["exact must be True or False, got 'no'"]),
        (lambda: PROOF.verify(X, Y, allow_long=1), ["allow_long must be True or False, got 1"]),
        (lambda: PROOF.verify(X, Y, n_threads=0), ["n_threads must be at least 1", "None uses"]),
        (lambda: PROOF.verify_gram(G, C, "1"), ["yy must be a number"]),
        (lambda: PROOF.verify_gram(G[:3], C, YY), ["G must be square", "pass X.T @ X"]),
        (lambda: LIST.verify_gram(G, C, -1.0), ["yy must be a finite number >= 0"]),
        (lambda: verify_batches(PROOF, None), ["batches must be an iterable of pairs"]),
        (lambda: verify_batches(PROOF, (X, Y)), ["batch 0 is of type ndarray", "[(X, y)]"]),
        (lambda: verify_batches(PROOF, [(X, Y, -Y * Y)]), ["weight of batch 0 must not be neg"]),
        (lambda: bestk.plots.predicted(bestk.solve(X, Y, 2), X, Y[:3]), ["y has length 3"]),
        (
            lambda: bestk.plots.coefficients(bestk.solve_path(X, Y, [1]), scale=[1, 2]),
            ["scale has length 2, but there are 5 features"],
        ),
        (lambda: bestk.plots.gap(bestk.solve(X, Y, 2), ax=5), ["ax must be an Axes", "got 5"]),
        (lambda: bestk.datasets.make_synthetic(9.5, 5), ["n must be a whole number"]),
        (lambda: bestk.datasets.make_synthetic(9, 5, 2, rho="a"), ["rho must be a number"]),
        (lambda: bestk.datasets.make_synthetic(9, 5, 2, seed=-1), ["seed must be at least 0"]),
        (lambda: bestk.datasets.simulate("lorenz", 1.0, dt=0), ["dt must be above 0, got 0"]),
        (lambda: bestk.datasets.simulate("lorenz", np.nan), ["duration must be a finite"]),
        (lambda: bestk.datasets.simulate("lorenz", 1.0, noise=np.nan), ["noise must be a finite"]),
    ],
)
def test_proofs_pictures_and_data_sets(call, words):
    check(call, words)


def test_sums_with_names_in_another_order():
    gram = FRAME.T @ FRAME
    moment = FRAME.T @ Y
    assert Problem.from_gram(gram, moment, YY).feature_names == tuple(NAMES)
    check(lambda: Problem.from_gram(gram, moment[::-1], YY), ["c has its columns in another order"])
    check(lambda: Problem.from_gram(gram[::-1], moment, YY), ["G has its columns in another order"])
