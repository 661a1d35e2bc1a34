"""Lists of models with groups and rules: they count groups where k does."""

import numpy as np
import pandas as pd
import pytest

import bestk
from bestk import rules

GROUPS = {"size": [0, 1, 2], "<b>": [5, 6]}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(80, 9)), columns=["c", "d", "e", *"abfghi"])
    X["b"] = X["a"] + 0.7 * X["b"]
    X["f"] = X["a"] - 0.8 * X["f"]
    return X, X["a"] + X["c"] + 0.5 * X["d"] + 0.8 * rng.normal(size=80)


@pytest.fixture(scope="module")
def found(data):
    options = {"groups": GROUPS, "rules": [rules.exclusive("a", "<b>")], "free": ["i"]}
    return bestk.near_optimal(*data, 2, within=0.9, fit_intercept=True, **options)


def test_the_text_counts_groups(found):
    lines = str(found).splitlines()
    assert lines[0] == f"bestk: {len(found)} models of 6 groups (9 features)"
    assert "    at most 1 of a, <b>" in lines
    assert "  necessary    size, i" in lines
    listed = found.structure.groups_of(np.flatnonzero(found.has.any(axis=0)))
    assert len(listed) == found.structure.n_groups - 1
    assert "  useless      1 group" in lines
    for model in found.models[:8]:
        groups = found.structure.groups_of(model.support)
        names = ", ".join(found.structure.group_names[g] for g in groups)
        assert any(line.endswith(f" {names}") for line in lines)


def test_whole_groups_are_necessary_possible_or_useless(found):
    for word in ("necessary", "possible", "useless"):
        some, structure = getattr(found, word), found.structure
        np.testing.assert_array_equal(structure.features_of(structure.groups_of(some)), some)
    share = found.inclusion()
    for members in GROUPS.values():
        assert len(set(share[members])) == 1


def test_the_frame_counts_features_and_groups(found):
    frame = found.to_frame()
    assert frame["size"].tolist() == [len(m.support) for m in found]
    assert frame["groups"].tolist() == [len(found.structure.groups_of(m.support)) for m in found]
    np.testing.assert_array_equal(frame[list(found.names)], [m.coef for m in found])


def test_features_may_be_called_as_columns_of_the_frame(data):
    X, y = data
    names = ["size", "objective", "groups", *X.columns[3:]]
    named = X.set_axis(names, axis=1)
    frame = bestk.near_optimal(named, y, 2, groups={"one": ["size", "groups"]})
    assert frame.to_frame().columns.tolist().count("size") == 2


def test_a_list_without_groups_has_no_column_for_them(data):
    assert "groups" not in bestk.near_optimal(*data, 1).to_frame().columns
    ruled = bestk.near_optimal(*data, 2, rules=[rules.exclusive("a", "b")])
    assert "groups" not in ruled.to_frame().columns
    assert str(ruled).startswith(f"bestk: {len(ruled)} model")
