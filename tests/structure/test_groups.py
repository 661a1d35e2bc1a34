"""Groups of features, as labels, as names of columns, or from categories."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

from bestk.structure.compose import structure_of
from bestk.structure.groups import as_groups, groups_of

NAMES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("groups", "labels", "group_names"),
    [
        (None, [0, 1, 2, 3], NAMES),
        (["u", "v", "u", "v"], [0, 1, 0, 1], ("u", "v")),
        ([7, 3, 7, None], [0, 1, 0, 2], ("group 7", "b", "d")),
        (np.array([1.0, np.nan, np.nan, 1.0]), [0, 1, 2, 0], ("group 1", "b", "c")),
        (pd.Series(["u", pd.NA, "u", None], dtype="string"), [0, 1, 0, 2], ("u", "b", "d")),
        ([10**17, 10**17 + 1, 10**17, 10**17 + 1], [0, 1, 0, 1], None),
        ({"u": ["d", "b"]}, [0, 1, 2, 1], ("a", "u", "c")),
        ({"u": [2], "v": "a"}, [0, 1, 2, 3], ("v", "b", "u", "d")),
        ({"u": 3, 5: [0, 1]}, [0, 0, 1, 2], ("group 5", "c", "u")),
        ({"u": [True, False, True, False]}, [0, 1, 0, 2], ("u", "b", "d")),
        ({"a": ["a", "b"]}, [0, 0, 1, 2], ("a", "c", "d")),
        ({}, [0, 1, 2, 3], NAMES),
        (lambda names: ["u" if name in "bc" else None for name in names], [0, 1, 1, 2], None),
        (lambda names: {"u": names[2:]}, [0, 1, 2, 2], ("a", "b", "u")),
    ],
)
def test_groups_are_numbered_by_their_first_feature(groups, labels, group_names):
    found, called = as_groups(groups, 4, NAMES)
    assert found.tolist() == labels
    assert group_names is None or called == group_names


def test_features_without_names_are_numbered():
    assert as_groups({"u": [1, 2]}, 4, None)[1] == ("x0", "u", "x3")


def test_a_function_needs_names():
    with pytest.raises(ValueError, match=r"set_output\(transform=\"pandas\"\)"):
        as_groups(lambda names: names, 4, None)


@pytest.mark.parametrize(
    ("groups", "error", "match"),
    [
        (["u", "v"], ValueError, "groups has 2 labels for 4 features"),
        ("uuvv", TypeError, "groups must be 4 labels"),
        (3, TypeError, "groups must be 4 labels"),
        ([["a", "b"], ["c"], "d", "e"], TypeError, "groups holds .*pass {name: columns}"),
        ([True, False, True, True], TypeError, "groups holds True"),
        ([1.5, 1, 1, 1], TypeError, "groups holds 1.5"),
        ({"u": ["a", "b"], "v": ["b", "c"]}, ValueError, "feature 'b' is in two groups, 'u' and"),
        ({"u": ["a", "dd"]}, ValueError, r"groups\['u'\]: there is no feature 'dd'; did you mean"),
        ({"u": [4]}, ValueError, r"groups\['u'\] holds 4"),
        ({"u": []}, ValueError, r"groups\['u'\] has no columns"),
        ({None: ["a"]}, TypeError, "a group without a name"),
        ({"c": ["a", "b"]}, ValueError, "there is a column 'c' outside it"),
        (["d", "d", 1, 1], ValueError, "there is a column 'd' outside it"),
        ({"group 1": [0, 1], 1: [2, 3]}, ValueError, "two groups named 'group 1'"),
        (lambda names: names[:2], ValueError, "groups has 2 labels for 4 features"),
        (lambda names: len, TypeError, "groups must be 4 labels"),
    ],
)
def test_groups_that_make_no_sense(groups, error, match):
    with pytest.raises(error, match=match):
        as_groups(groups, 4, NAMES)


FRAME = pd.DataFrame(
    {
        "size": [1, 2, 3, 4],
        "region": ["west", "north", "south", "north"],
        "sex": pd.Categorical(["m", "f", "m", "m"], categories=["m", "f"]),
        "is_new": [True, False, True, True],
        "level": pd.Categorical([3, 1, 3, 2], ordered=True),
    },
    index=[5, 6, 7, 8],
)


def check_frame(encoded):
    X, groups, baseline = encoded
    assert list(X.columns) == [
        *("size", "region=south", "region=west", "sex=f", "is_new", "level=2", "level=3")
    ]
    assert (X.dtypes == np.float64).all()
    assert X["region=south"].tolist() == [0, 0, 1, 0]
    assert X["region=west"].tolist() == [1, 0, 0, 0]
    assert X["sex=f"].tolist() == [0, 1, 0, 0]
    assert X["is_new"].tolist() == [1, 0, 1, 1]
    assert X["level=3"].tolist() == [1, 0, 1, 0]
    assert groups == {
        "region": ["region=south", "region=west"],
        "sex": ["sex=f"],
        "level": ["level=2", "level=3"],
    }
    assert baseline == {"region": "north", "sex": "m", "level": 1}


def test_categories_become_groups():
    encoded = groups_of(FRAME)
    check_frame(encoded)
    assert encoded.X.index.tolist() == [5, 6, 7, 8]
    structure = structure_of(7, tuple(encoded.X.columns), groups=encoded.groups)
    assert structure.group_names == ("size", "region", "sex", "is_new", "level")


def test_frames_of_others():
    check_frame(groups_of(pyarrow.Table.from_pandas(FRAME, preserve_index=False)))
    table = polars.DataFrame(
        {
            "size": [1, 2, 3, 4],
            "region": ["west", "north", "south", "north"],
            "sex": polars.Series(["m", "f", "m", "m"], dtype=polars.Enum(["m", "f"])),
            "is_new": [True, False, True, True],
            "level": polars.Series(["3", "1", "3", "2"]).cast(polars.Enum(["1", "2", "3"])),
        }
    )
    X, groups, baseline = groups_of(table)
    check_frame((X, groups, baseline | {"level": int(baseline["level"])}))


def test_objects_that_are_numbers_or_truth_values():
    frame = pd.DataFrame(
        {
            "n": pd.Series([1, 2.5, None], dtype=object),
            "d": [Decimal("0.5"), Decimal(1), Decimal(2)],
            "t": pd.Series([True, False, True], dtype=object),
            "i": pd.Series([1, None, 3], dtype="Int64"),
        }
    )
    X, groups, baseline = groups_of(frame)
    expected = [[1, 0.5, 1, 1], [2.5, 1, 0, np.nan], [np.nan, 2, 1, 3]]
    np.testing.assert_array_equal(X.to_numpy(), expected)
    assert groups == baseline == {}


def test_columns_that_are_to_be_numbers():
    frame = pd.DataFrame({"a": ["1", "2.5", "3"], "b": pd.Categorical([3, 4, 3])})
    X, groups, _ = groups_of(frame, numeric=["a", "b"])
    assert X.to_numpy().tolist() == [[1, 3], [2.5, 4], [3, 3]]
    assert groups == {}
    with pytest.raises(ValueError, match="numeric: there is no column 'aa'; did you mean 'a'"):
        groups_of(frame, numeric="aa")
    with pytest.raises(ValueError, match="numeric: column 'a' does not hold numbers"):
        groups_of(pd.DataFrame({"a": ["1", "one"]}), numeric="a")


def test_a_single_level_is_a_baseline_and_nothing_more():
    X, groups, baseline = groups_of(pd.DataFrame({"a": ["u", "u"], "b": [1, 2]}))
    assert list(X.columns) == ["b"]
    assert groups == {}
    assert baseline == {"a": "u"}


def test_categories_without_rows_keep_their_indicators():
    """So that parts of a frame have the same columns as the whole."""
    X, groups, _ = groups_of(FRAME.iloc[1:2])
    assert groups["sex"] == ["sex=f"]
    assert groups["level"] == ["level=2", "level=3"]
    assert X[["level=2", "level=3"]].to_numpy().tolist() == [[0, 0]]


def test_levels_of_different_types_have_an_order():
    frame = pd.DataFrame({"a": pd.Series(["u", 3, "u", 2], dtype=object)})
    assert groups_of(frame).baseline == {"a": 2}


DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)]


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ({"a": ["u", None, "u"]}, ValueError, "column 'a' has 1 missing values; drop .*fillna"),
        ({"a": pd.Categorical(["u", None, "v"])}, ValueError, "column 'a' has 1 missing"),
        ({"a": pd.Series([True, None, False], dtype="boolean")}, ValueError, "has 1 missing"),
        ({"a": [None, None, None]}, ValueError, "column 'a' has 3 missing"),
        ({"a": DAYS}, TypeError, "column 'a' holds dates"),
        ({"a": pd.to_datetime(DAYS)}, TypeError, "column 'a' holds dates"),
        ({"a": pd.to_timedelta([1, 2, 3], unit="D")}, TypeError, "column 'a' holds dates"),
        ({"a": pd.period_range("2024", periods=3)}, TypeError, "column 'a' holds dates"),
        ({"a": [1j, 2, 3]}, TypeError, "column 'a' is complex"),
        ({"a": ["u", "v", "w"]}, ValueError, "column 'a' has a level of its own in each of 3 rows"),
        ({"a": [[1], [2], [1]]}, TypeError, "column 'a' holds objects that cannot be levels"),
        ({"a": ["u", "v", "u"], "a=v": [1, 2, 3]}, ValueError, "two columns .* named 'a=v'"),
        ({"a": pd.Series([1, "1", 0, "u", 0], dtype=object)}, ValueError, "that read alike"),
        ({3: [1, 2, 3]}, ValueError, "column names that are not strings"),
        ({"a": []}, ValueError, "no rows"),
    ],
)
def test_frames_that_cannot_be_encoded(columns, error, match):
    with pytest.raises(error, match=match):
        groups_of(pd.DataFrame(columns))


def test_things_that_are_no_frames():
    with pytest.raises(TypeError, match="must be a data frame"):
        groups_of(np.ones((2, 2)))
    with pytest.raises(ValueError, match="several columns named 'a'"):
        groups_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))
