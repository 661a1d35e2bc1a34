"""Bad input ends at the door, with a message that names the argument."""

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse

import bestk
from bestk import Advanced, Problem
from bestk.base.validation import require_number

X = np.random.default_rng(0).standard_normal((12, 4))
Y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(12)


def with_value(array, value):
    array = np.array(array, dtype=float)
    array.flat[3] = value
    return array


def check(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_that_are_not_finite(bad, dtype):
    broken = with_value(X, bad).astype(dtype)
    check(lambda: bestk.solve(broken, Y, 2), ValueError, r"X contains NaN or infinite")
    broken = with_value(Y, bad).astype(dtype)
    check(lambda: bestk.solve(X, broken, 2), ValueError, r"y contains NaN or infinite")
    weight = with_value(np.ones(12), bad)
    check(lambda: bestk.solve(X, Y, 2, sample_weight=weight), ValueError, "sample_weight")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_in_rows_of_weight_zero(bad):
    weight = np.ones(12)
    weight[0] = 0.0
    broken = X.copy()
    broken[0, 3] = bad
    check(lambda: bestk.solve(broken, Y, 2, sample_weight=weight), ValueError, "X contains NaN")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_in_excluded_columns(bad):
    broken = X.copy()
    broken[5, 3] = bad
    check(lambda: bestk.solve(broken, Y, 2, exclude=[3]), ValueError, "X contains NaN")


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        (X + 1j, "X is complex"),
        (np.full((12, 4), "a"), "X holds text, such as 'a', instead of numbers"),
        (np.full((12, 4), object()), "X has <object .* in row 0, column 0 .counted from 0."),
        (np.full((12, 4), np.datetime64("2020-01-01")), "X holds dates, such as '2020-01-01'"),
        ([[1.0, 2.0], [3.0]], "X .*rows have different lengths$"),
        (sparse.csr_matrix(X), "X is a sparse matrix"),
        (sparse.csr_array(X), "X is a sparse matrix"),
        ("text", "X holds text"),
        ({"a": 1}, "X is of type dict"),
    ],
    ids=[
        "complex",
        "strings",
        "objects",
        "dates",
        "ragged",
        "sparse",
        "sparse array",
        "text",
        "dict",
    ],
)
def test_types_of_x_that_are_not_numbers(broken, match):
    check(lambda: bestk.solve(broken, Y, 2), (TypeError, ValueError), match)


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        (Y + 1j, "y is complex"),
        (np.full(12, "a"), "y holds text"),
        (np.full(12, object()), "y has"),
    ],
)
def test_types_of_y_that_are_not_numbers(broken, match):
    check(lambda: bestk.solve(X, broken, 2), TypeError, match)


def test_objects_that_are_numbers_are_accepted():
    result = bestk.solve(X.astype(object), Y.astype(object), 2)
    np.testing.assert_array_equal(result.coef, bestk.solve(X, Y, 2).coef)


@pytest.mark.parametrize("shape", [(12,), (), (2, 3, 4)])
def test_x_must_have_two_dimensions(shape):
    check(lambda: bestk.solve(np.ones(shape), Y, 2), ValueError, "X must have two dimensions")


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (Y[:5], "y has length 5, but there are 12 rows of X"),
        (np.column_stack([Y, Y]), "y must be a vector"),
        (np.ones((12, 1, 1)), "y must be a vector"),
        (3.0, "y must be a vector"),
    ],
)
def test_shapes_of_y(y, match):
    check(lambda: bestk.solve(X, y, 2), ValueError, match)


@pytest.mark.parametrize(
    ("k", "error"),
    [(2.0, TypeError), (True, TypeError), ("2", TypeError), (None, TypeError), ([2], TypeError),
     (np.float64(2), TypeError), (-1, ValueError)],
)  # fmt: skip
def test_k_must_be_a_count(k, error):
    check(lambda: bestk.solve(X, Y, k), error, r"\bk must")
    check(lambda: Problem.from_data(X, Y).solve(k), error, r"\bk must")
    check(lambda: bestk.beam_search(X, Y, k), error, r"\bk must")


@pytest.mark.parametrize("k", [np.int64(2), np.int8(2), np.uint16(2)])
def test_k_may_be_a_numpy_integer(k):
    assert len(bestk.solve(X, Y, k).support) == 2


def test_k_may_exceed_the_number_of_features():
    assert len(bestk.solve(X, Y, 99).support) == 4


@pytest.mark.parametrize(
    ("alpha", "error"),
    [(-1e-9, ValueError), (np.nan, ValueError), (np.inf, ValueError), ("1", TypeError),
     (None, TypeError), (True, TypeError), (1j, TypeError), ([1.0], TypeError)],
)  # fmt: skip
def test_alpha_must_be_a_nonnegative_number(alpha, error):
    check(lambda: bestk.solve(X, Y, 2, alpha=alpha), error, "alpha")
    check(lambda: Problem.from_gram(X.T @ X, X.T @ Y, Y @ Y, alpha=alpha), error, "alpha")
    check(lambda: Problem.from_batches([(X, Y)], alpha=alpha), error, "alpha")


@pytest.mark.parametrize(
    ("bounds", "match"),
    [
        ((0.1, 1.0), "bounds must allow 0"),
        ((-1.0, -0.1), "bounds must allow 0"),
        ((np.array([0, 0, 0.5, 0]), 1.0), "feature 2"),
        (([-1.0] * 3, 1.0), "the lower bound must be a number or have length 4"),
        ((-1.0, np.ones((4, 1))), "the upper bound must be a number or have length 4"),
        ((np.nan, 1.0), "bounds contain NaN"),
        ((-1.0, [1.0, np.nan, 1.0, 1.0]), "bounds contain NaN"),
        (1.0, "bounds must be a pair"),
        ((-1.0, 0.0, 1.0), "bounds must be a pair"),
        (("a", "b"), "bound"),
        ((None, 1.0), "bound"),
        ((-1j, 1.0), "bound"),
    ],
)
def test_bounds_must_be_a_pair_around_zero(bounds, match):
    check(lambda: bestk.solve(X, Y, 2, bounds=bounds), (TypeError, ValueError), match)
    gram = X.T @ X, X.T @ Y, Y @ Y
    check(lambda: Problem.from_gram(*gram, bounds=bounds), (TypeError, ValueError), match)


@pytest.mark.parametrize(
    ("weight", "error", "match"),
    [
        (-np.ones(12), ValueError, "sample_weight must not be negative"),
        (np.ones(5), ValueError, "sample_weight has length 5"),
        (np.ones((12, 2)), ValueError, "sample_weight must be a vector"),
        (np.full(12, "a"), TypeError, "sample_weight holds text"),
        (2.0, ValueError, "sample_weight must be a vector"),
    ],
)
def test_weights_must_be_nonnegative_numbers(weight, error, match):
    check(lambda: bestk.solve(X, Y, 2, sample_weight=weight), error, match)


@pytest.mark.parametrize("name", ["include", "exclude", "initial_support"])
@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        ([4], ValueError, "holds 4, but features are numbered 0 to 3"),
        ([-1], ValueError, "holds -1"),
        ([0.0], TypeError, "whole numbers"),
        (["a"], ValueError, "holds names, but the features have none"),
        ([True, False], ValueError, "mask of length 2"),
        ([[0], [1]], ValueError, "list of feature names or indices"),
        (1, ValueError, "list of feature names or indices"),
    ],
)
def test_features_must_be_indices_or_a_mask(name, value, error, match):
    with pytest.raises(error, match=match) as caught:
        bestk.solve(X, Y, 2, **{name: value})
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"include": [1], "exclude": [0, 1]}, "feature 1 is in both include and exclude"),
        ({"include": [0, 1, 2]}, "include names 3 features, but k = 2"),
        ({"initial_support": [0, 1, 2]}, "initial_support has 3 features, but k = 2"),
        ({"initial_support": [1], "exclude": [1]}, "initial_support contains excluded"),
        ({"initial_support": [1, 2], "include": [0]}, "initial_support and include together"),
    ],
)
def test_features_must_fit_together(options, match):
    check(lambda: bestk.solve(X, Y, 2, **options), ValueError, match)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"gap_tol": -1e-3}, ValueError),
        ({"gap_tol": np.nan}, ValueError),
        ({"gap_tol": 1.0}, ValueError),
        ({"gap_tol": "small"}, TypeError),
        ({"time_limit": -1.0}, ValueError),
        ({"time_limit": np.nan}, ValueError),
        ({"time_limit": "60"}, TypeError),
        ({"node_limit": -1}, ValueError),
        ({"node_limit": 10.0}, TypeError),
        ({"memory_limit": -1}, ValueError),
        ({"memory_limit": "1GB"}, TypeError),
        ({"n_threads": 0}, ValueError),
        ({"n_threads": 1.5}, TypeError),
        ({"search": "random"}, ValueError),
        ({"bound": "magic"}, ValueError),
        ({"search": ["best-first"]}, (TypeError, ValueError)),
        ({"bound": None}, (TypeError, ValueError)),
        ({"callback": 3}, TypeError),
        ({"progress": 3}, TypeError),
        ({"advanced": {"fixing": False}}, TypeError),
        ({"advanced": "paper"}, TypeError),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_settings_are_checked(options, error):
    (name,) = options
    check(lambda: bestk.solve(X, Y, 2, **options), error, name)
    check(lambda: Problem.from_data(X, Y).solve(2, **options), error, name)


def test_settings_are_checked_before_the_data():
    """A typing error must not cost a pass over a large X."""
    check(lambda: bestk.solve(None, None, 2, search="random"), ValueError, "search")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"split": "best"}, ValueError, "split"),
        ({"branching": "random"}, ValueError, "branching"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"beam_width": 0}, ValueError, "beam_width"),
        ({"beam_width": 2.5}, TypeError, "beam_width"),
    ],
)
def test_switches_are_checked(options, error, match):
    check(lambda: Advanced(**options), error, match)


def test_unknown_options_are_named():
    problem = Problem.from_data(X, Y)
    check(lambda: problem.solve(2, gaptol=1e-3), TypeError, "unknown option 'gaptol'.*gap_tol")
    check(lambda: bestk.solve(X, Y, 2, gaptol=1e-3), TypeError, "gaptol")
    check(lambda: problem.solve(2, alpha=1.0), TypeError, "alpha")


G, C, YY = X.T @ X, X.T @ Y, float(Y @ Y)


@pytest.mark.parametrize(
    ("gram", "error", "match"),
    [
        ((G[:3], C, YY), ValueError, "G must be square"),
        ((G + np.triu(np.ones((4, 4)), 1), C, YY), ValueError, "G is not symmetric"),
        ((G - 20.0 * np.eye(4), C, YY), ValueError, "G is not positive semidefinite"),
        ((G + 9 * (np.ones((4, 4)) - np.eye(4)), C, YY), ValueError, "not positive semidefinite"),
        ((G * (1 - np.eye(4)[0] * np.eye(4)[:, :1]), C, YY), ValueError, "not positive semidef"),
        ((G, 10 * C, YY), ValueError, "c and yy do not fit G"),
        ((G, C, 0.1 * YY), ValueError, "c and yy do not fit G"),
        ((G, C, 0.0), ValueError, "yy|G"),
        ((G, C, -1.0), ValueError, "yy must"),
        ((G, C, np.nan), ValueError, "yy must"),
        ((G, C, "1"), TypeError, "yy must"),
        ((G, C[:3], YY), ValueError, "c has length 3"),
        ((with_value(G, np.nan), C, YY), ValueError, "G contains NaN"),
        ((G, with_value(C, np.inf), YY), ValueError, "c contains NaN or inf"),
        ((G + 1j, C, YY), TypeError, "G is complex"),
        ((G[0], C, YY), ValueError, "G must have two dimensions"),
    ],
)
def test_gram_matrices_must_come_from_data(gram, error, match):
    check(lambda: Problem.from_gram(*gram), error, match)


@pytest.mark.parametrize("n", [-1, 2.5, "many", True])
def test_number_of_rows_of_a_gram_matrix_must_be_a_count(n):
    check(lambda: Problem.from_gram(G, C, YY, n), (TypeError, ValueError), r"\bn must")


@pytest.mark.parametrize(
    ("batches", "error", "match"),
    [
        ([], ValueError, "batches must yield"),
        ([(X[:5], Y[:5]), (X[5:, :3], Y[5:])], ValueError, "batch 1 has 3 columns"),
        ([(X[:5], Y[:4])], ValueError, "y of batch 0 has length 4"),
        ([(X, Y), (with_value(X, np.nan), Y)], ValueError, "X of batch 1 contains NaN"),
        ([(X, with_value(Y, np.inf))], ValueError, "y of batch 0 contains NaN"),
        ([(X + 1j, Y)], TypeError, "X of batch 0 is complex"),
    ],
)
def test_batches_must_fit_together(batches, error, match):
    check(lambda: Problem.from_batches(batches), error, match)


@pytest.mark.parametrize("batches", [3, [X], [(X, Y, Y, Y)], [X[:, 0]]])
def test_batches_must_be_pairs(batches):
    check(lambda: Problem.from_batches(batches), (TypeError, ValueError), "batch")


@pytest.mark.parametrize("coef", [np.ones(3), np.ones((4, 2)), np.full(4, "a")])
def test_objective_checks_its_coefficients(coef):
    check(lambda: Problem.from_data(X, Y).objective(coef), (TypeError, ValueError), "coef")


MIXED = {
    "age": [1.0, 2.0, 3.0, 4.0],
    "city": ["x", "y", "x", "z"],
    "seen": pd.date_range("2020", periods=4),
    "kind": pd.Categorical(["u", "v", "u", "v"]),
    "member": [True, False, True, True],
}


@pytest.mark.parametrize(
    "ask",
    [
        lambda X, y: bestk.solve(X, y, 1),
        lambda X, y: bestk.near_optimal(X, y, 1),
        lambda X, y: bestk.SparseRidge(k=1).fit(X, y),
        lambda X, y: bestk.stability(X, y, 1, n_resamples=2),
    ],
)
def test_columns_that_are_no_numbers_are_named(ask):
    y = [1.0, 2.0, 3.0, 5.0]
    with pytest.raises((TypeError, ValueError), match="not numbers") as caught:
        ask(pd.DataFrame(MIXED), y)
    text = str(caught.value)
    assert all(f"'{name}'" in text for name in ("city", "seen", "kind"))
    assert "get_dummies" in text
    assert "'age'" not in text
    assert "'member'" not in text
    ask(pd.DataFrame(MIXED)[["age", "member"]], y)


def test_numbers_of_any_kind_of_frame_are_taken():
    y = [1.0, 2.0, 4.0]
    whole = pd.array([1, 2, 4], dtype="Int64")
    frames = [
        pd.DataFrame({"a": whole, "b": pd.array([3.0, 1.0, 2.0], dtype="Float32")}),
        polars.DataFrame({"a": [1, 2, 4], "b": [True, False, True]}),
    ]
    for frame in frames:
        assert list(bestk.solve(frame, y, 1).names) == ["a"]
    with pytest.raises(TypeError, match="'b' \\(String\\)"):
        bestk.solve(polars.DataFrame({"a": [1, 2, 4], "b": ["x", "y", "z"]}), y, 1)


def test_whole_numbers_beyond_all_floats_are_infinite():
    assert require_number("time_limit", 10**400, least=0.0, finite=False) == np.inf
    with pytest.raises(ValueError, match="gap_tol must be a finite number >= 0, got inf"):
        require_number("gap_tol", 10**400, least=0.0)
    with pytest.raises(ValueError, match="time_limit must be a number >= 0, got -inf"):
        require_number("time_limit", -(10**400), least=0.0, finite=False)


@pytest.mark.parametrize("name", ["fixing", "enumeration", "rebuild", "record"])
def test_switches_are_true_or_false(name):
    check(lambda: Advanced(**{name: "no"}), TypeError, f"{name} must be True or False, got 'no'")
