"""Data without rows, and names that mean several features, end at every door with a way out."""

import numpy as np
import pandas as pd
import polars
import pytest
from helpers.command_line import run as command

import bestk
from bestk import Problem, SparseRidge, SparseRidgeCV, StabilitySelector
from bestk.base.validation import as_features, require_distinct, require_names

X = np.random.default_rng(0).standard_normal((12, 3))
Y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(12)
TWICE = pd.DataFrame(X, columns=["a", "b", "a"])
NO_ROWS = r"X has no rows \(shape \(0, 3\)\)"
SAME_NAME = r"same name.*'a' \(columns 0, 2\); rename"

DOORS = {
    "solve": lambda X, y: bestk.solve(X, y, 1),
    "beam_search": lambda X, y: bestk.beam_search(X, y, 1),
    "solve_path": lambda X, y: bestk.solve_path(X, y, [1]),
    "near_optimal": lambda X, y: bestk.near_optimal(X, y, 1),
    "from_data": Problem.from_data,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, polars.DataFrame])
def test_no_rows(door, make):
    with pytest.raises(ValueError, match=NO_ROWS):
        DOORS[door](make(X[:0]), Y[:0])


@pytest.mark.parametrize("k", [0, 1])
def test_no_rows_whatever_is_asked(k):
    with pytest.raises(ValueError, match=NO_ROWS):
        bestk.solve(X[:0], Y[:0], k, alpha=1.0, fit_intercept=True, sample_weight=np.ones(0))


def test_no_rows_of_wide_data():
    with pytest.raises(ValueError, match="X has no rows"):
        bestk.solve(np.zeros((0, 500)), np.zeros(0), 2)


@pytest.mark.parametrize("batches", [[], [(X[:0], Y[:0])], [(X[:0], Y[:0])] * 2])
def test_no_rows_in_batches(batches):
    with pytest.raises(ValueError, match=r"batches must yield .* no rows"):
        Problem.from_batches(batches)


def test_a_batch_without_rows_among_others_is_passed_over():
    whole = Problem.from_batches([(X, Y)]).solve(1)
    parts = Problem.from_batches([(X[:0], Y[:0]), (X, Y), (X[:0], Y[:0])]).solve(1)
    assert parts.objective == whole.objective


def test_no_rows_behind_a_gram_matrix():
    with pytest.raises(ValueError, match="the number of rows n must be at least 1, got 0"):
        Problem.from_gram(X.T @ X, X.T @ Y, Y @ Y, n=0)


def test_no_rows_to_draw():
    with pytest.raises(ValueError, match="no rows to draw from; pass"):
        bestk.stability(X[:0], Y[:0], 1, n_resamples=3)


@pytest.mark.parametrize("estimator", [SparseRidge(k=1), SparseRidgeCV(ks=[1])])
def test_estimators_without_rows(estimator):
    with pytest.raises(ValueError, match="0 sample"):
        estimator.fit(X[:0], Y[:0])


def test_a_file_without_rows(tmp_path):
    file = tmp_path / "empty.csv"
    file.write_text("a,b,y\n")
    outcome = command("fit", file, "-k", "1")
    assert outcome.exit_code == 1
    assert "has column names but no rows" in outcome.output


@pytest.mark.parametrize("door", DOORS)
def test_names_that_come_twice(door):
    with pytest.raises(ValueError, match=SAME_NAME):
        DOORS[door](TWICE, Y)


@pytest.mark.parametrize(
    "estimator", [SparseRidge(k=1), SparseRidgeCV(ks=[1]), StabilitySelector(k=1, n_resamples=3)]
)
def test_names_that_come_twice_in_estimators(estimator):
    with pytest.raises(ValueError, match=SAME_NAME):
        estimator.fit(TWICE, Y)


def test_names_that_come_twice_in_batches():
    with pytest.raises(ValueError, match="same name in X of batch 0: 'a'"):
        Problem.from_batches([(TWICE, Y)])


def test_names_that_come_twice_beside_a_gram_matrix():
    with pytest.raises(ValueError, match=SAME_NAME):
        Problem.from_gram(X.T @ X, X.T @ Y, Y @ Y, feature_names=["a", "b", "a"])


def test_feature_names_rename_the_columns_of_a_frame():
    problem = Problem.from_data(TWICE, Y, feature_names=["a", "b", "c"])
    assert problem.solve(1).names == ["a"]


def test_an_array_of_the_frame_needs_no_names():
    assert bestk.solve(TWICE.to_numpy(), Y, 1).names == ["x0"]


def test_an_option_that_names_several_features():
    with pytest.raises(ValueError, match="include: several features are named 'a'; rename"):
        as_features("include", ["b", "a"], 3, ("a", "b", "a"))
    assert as_features("include", ["b"], 3, ("a", "b", "a")).tolist() == [1]


def test_many_names_that_come_twice_are_counted():
    names = [f"f{j // 2}" for j in range(20)]
    with pytest.raises(ValueError, match=r"'f4' \(columns 8, 9\) and 5 more; rename"):
        require_names(names, 20)
    with pytest.raises(ValueError, match=r"columns 0, 1, 2, 3, 4, \.\.\."):
        require_distinct(["a"] * 30)
    require_distinct(None)


def test_a_size_that_a_path_does_not_have():
    path = bestk.solve_path(X, Y, [1, 2])
    with pytest.raises(KeyError, match="no model of size k = 7; sizes of this path are 1, 2"):
        path[7]
