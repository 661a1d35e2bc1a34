"""Linear constraints, as arrays and as text."""

import numpy as np
import pytest
from helpers.seeds import seeds
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csr_array

from bestk.structure.constraints import as_constraints

INF = np.inf
NAMES = ("a", "b", "a b", "x^2", "region=south", "mean radius", "2nd", "1", "a-b")


@pytest.mark.parametrize(
    ("text", "coefficients", "lower", "upper", "words"),
    [
        ("a + b = 1", {"a": 1, "b": 1}, 1, 1, "a + b = 1"),
        ("2*a - 0.5 b >= 0", {"a": 2, "b": -0.5}, 0, INF, "0 <= 2 a - 0.5 b"),
        ("a = b", {"a": 1, "b": -1}, 0, 0, "a - b = 0"),
        ("a == b", {"a": 1, "b": -1}, 0, 0, "a - b = 0"),
        ("0 <= a + b <= 1", {"a": 1, "b": 1}, 0, 1, "0 <= a + b <= 1"),
        ("1 >= a + b >= 0", {"a": 1, "b": 1}, 0, 1, "0 <= a + b <= 1"),
        ("1≥a≥-1e-2", {"a": 1}, -0.01, 1, "-0.01 <= a <= 1"),
        ("-a+2.<=.5", {"a": -1}, -INF, -1.5, "-a <= -1.5"),
        ("3 <= 2 + a", {"a": 1}, 1, INF, "1 <= a"),
        ("a + 1 <= b + 3", {"a": 1, "b": -1}, -INF, 2, "a - b <= 2"),
        ("a + a - 3 a b <= 0", {"a": 2, "a b": -3}, -INF, 0, "2 a - 3 a b <= 0"),
        ("2x^2 = mean radius", {"x^2": 2, "mean radius": -1}, 0, 0, "2 x^2 - mean radius = 0"),
        ("region=south=a", {"region=south": 1, "a": -1}, 0, 0, "-a + region=south = 0"),
        ("2nd - 2 2nd + 1 a<= 1", {"2nd": -1, "a": 1}, -INF, 1, "a - 2nd <= 1"),
        ("a-b <= 1", {"a-b": 1}, -INF, 1, "a-b <= 1"),
        ("a - b <= 1", {"a": 1, "b": -1}, -INF, 1, "a - b <= 1"),
    ],
)
def test_texts(text, coefficients, lower, upper, words):
    matrix, low, high, found = as_constraints(text, len(NAMES), NAMES)
    expected = np.zeros((1, len(NAMES)))
    for name, value in coefficients.items():
        expected[0, NAMES.index(name)] = value
    np.testing.assert_array_equal(matrix, expected)
    assert (low.tolist(), high.tolist(), found) == ([lower], [upper], (words,))
    assert matrix.flags.c_contiguous


def test_words_can_be_read_again():
    texts = ["0.25 a - 3 mean radius = 2", "a b <= 4", "-1 <= x^2 - a <= 2", "0 <= 2nd"]
    first = as_constraints(texts, len(NAMES), NAMES)
    second = as_constraints(list(first[3]), len(NAMES), NAMES)
    for one, other in zip(first[:3], second[:3], strict=True):
        np.testing.assert_array_equal(one, other)


def test_chains_of_several_sums():
    matrix, lower, upper, words = as_constraints("a <= b <= x^2 <= 3", len(NAMES), NAMES)
    assert words == ("a - b <= 0", "b - x^2 <= 0", "x^2 <= 3")
    assert matrix.shape == (3, len(NAMES))
    assert (lower.tolist(), upper.tolist()) == ([-INF] * 3, [0, 0, 3])


def test_features_without_names_are_numbered():
    assert as_constraints("x0 + x10 = 1", 11, None)[0].nonzero()[1].tolist() == [0, 10]


@seeds(50, chunk=25)
@pytest.mark.parametrize("form", [np.asarray, csr_array, np.ndarray.tolist])
def test_arrays(seed, form):
    """Points satisfy what is read exactly if they satisfy what was given."""
    rng = np.random.default_rng(seed)
    q, p = rng.integers(1, 5, size=2)
    A = rng.integers(-1, 2, size=(q, p)).astype(float)
    lower = rng.choice([-INF, -1, 0], size=q)
    upper = rng.choice([INF, 1, 0], size=q)
    given = [LinearConstraint(form(A), lower, upper), LinearConstraint(form(A[:1]), ub=1)]
    matrix, low, high, words = as_constraints(given, int(p), None)
    assert len(matrix) == len(low) == len(high) == len(words) <= q
    assert matrix.any(axis=1).all()
    for b in rng.integers(-2, 3, size=(100, p)):
        holds = (lower <= A @ b).all() and (A @ b <= upper).all() and A[0] @ b <= 1
        assert holds == ((low <= matrix @ b).all() and (matrix @ b <= high).all())


def test_what_says_nothing_is_left_out():
    given = [LinearConstraint([[0, 0], [1, 0], [0, -0.0]], [-1, -INF, 0], [1, INF, 0]), "a-a = 0"]
    matrix, lower, upper, words = as_constraints(given, 2, ("a", "b"))
    assert (matrix.shape, len(lower), len(upper), words) == ((0, 2), 0, 0, ())


def test_equal_rows_are_one():
    given = ["a <= 2", LinearConstraint([[1, -0.0]], -1, 3), "0 <= a", "a + b <= 1"]
    assert as_constraints(given, 2, ("a", "b"))[3] == ("0 <= a <= 2", "a + b <= 1")


def test_long_sums_are_cut_in_words():
    (words,) = as_constraints(LinearConstraint(np.ones(12), 1, 1), 12, None)[3]
    assert words == "x0 + x1 + x2 + x3 + x4 + x5 + ... (12 terms) = 1"


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ("a + agee = 1", ValueError, r"constraints\[0\]: .* no feature 'agee'; did you mean 'age'"),
        (["a <= 1", "2 agee <= 1"], ValueError, r"constraints\[1\]: .* no feature 'agee'"),
        ("a + b", ValueError, "has no <=, >= or ="),
        ("a < 1", ValueError, "cannot read 'a < 1' from '< 1' on"),
        ("a age = 1", ValueError, "from 'age = 1' on"),
        ("a + = 1", ValueError, "from '= 1' on"),
        ("a * 2 = 1", ValueError, r"from '\* 2 = 1' on"),
        ("2 ** a = 1", ValueError, r"from '\*\* a = 1' on"),
        ("2 (a + b) = 1", ValueError, r"from '\(a \+ b\) = 1' on"),
        ("a =", ValueError, "a sum is missing"),
        ("", ValueError, "a sum is missing"),
        ("a^2 = 1", ValueError, r"no feature 'a\^2'"),
        ("1e999 a = 1", ValueError, "infinite coefficient"),
        ("a - a = 1", ValueError, "all its coefficients are zero"),
        ("1 <= a <= 0", ValueError, "cannot be at least 1 and at most 0"),
        (["a = 1", "a = 2"], ValueError, r"constraints\[0\], .* and constraints\[1\].* at least 2"),
        (
            LinearConstraint([[0, 0, 0]], 1, 2),
            ValueError,
            r"\[0\], row 0: all its coeff",
        ),
        (LinearConstraint([[1, 2]], 1, 2), ValueError, r"A has shape \(1, 2\), but there are 3"),
        (LinearConstraint([[1, np.nan, 0]], 1, 2), ValueError, "A contains NaN or infinite"),
        (LinearConstraint([[1, INF, 0]], 1, 2), ValueError, "A contains NaN or infinite"),
        (LinearConstraint(csr_array([[1j, 0, 0]]), 1, 2), TypeError, "A has dtype complex"),
        (LinearConstraint(np.eye(3), [0, 2, 0], 1), ValueError, r"row 1: no sum is in \[2, 1\]"),
        (LinearConstraint(np.eye(3), INF, INF), ValueError, "no sum is in"),
        (LinearConstraint(np.eye(3), np.nan, 1), ValueError, "a bound is NaN"),
        (Bounds([0, 0, 0]), TypeError, r"constraints\[0\] must be a scipy.optimize.LinearCons"),
        ((np.eye(3), 0, 1), TypeError, r"constraints\[0\] must be"),
    ],
)
def test_constraints_that_make_no_sense(given, error, match):
    with pytest.raises(error, match=match):
        as_constraints(given, 3, ("a", "b", "age"))


def test_names_that_occur_twice_need_arrays():
    with pytest.raises(ValueError, match="several features 'a'"):
        as_constraints("a = 1", 2, ("a", "a"))
