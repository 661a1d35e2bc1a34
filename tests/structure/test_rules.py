"""Rows of a rule hold for exactly those choices of groups that the rule's definition allows."""

import pickle
from itertools import chain, combinations

import numpy as np
import pytest
from helpers.seeds import seeds
from sklearn.base import BaseEstimator, clone

from bestk import rules
from bestk.structure.compose import structure_of

NAMES = ("a", "b", "c", "d", "e", "f")


def choices(m):
    return chain.from_iterable(combinations(range(m), size) for size in range(m + 1))


def allowed(structure):
    """All choices that break no row."""
    every = choices(structure.n_groups)
    return {Z for Z in every if not structure.broken(np.array(Z, dtype=np.intp))}


def some(rng, p, least=1):
    """Features, by index or by name, perhaps the same one twice."""
    picked = rng.integers(p, size=rng.integers(least, p + 2)).tolist()
    return [NAMES[j] if rng.random() < 0.5 else j for j in picked]


def places(features):
    return {NAMES.index(f) if isinstance(f, str) else f for f in features}


@seeds(300, chunk=50)
def test_rows_are_the_definition(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 7))
    labels = rng.integers(p, size=p)
    groups = [f"group of {label}" for label in labels]
    labels = np.array([list(dict.fromkeys(groups)).index(g) for g in groups])
    features = some(rng, p)
    named = {int(labels[j]) for j in places(features)}
    feature = int(rng.integers(p))
    child = int(labels[feature])
    correlations = rng.uniform(-1, 1, (p, p))
    correlations = (correlations + correlations.T) / 2
    correlations[rng.random((p, p)) < 0.2] = np.nan
    m, limit = int(rng.integers(len(named) + 1)), float(rng.uniform(0.1, 1))
    kept = np.abs(np.nan_to_num(correlations))
    clash = {(labels[i], labels[j]) for i in range(p) for j in range(p) if kept[i, j] > limit}
    definitions = {
        rules.at_most(m, features): lambda Z: len(Z & named) <= m,
        rules.at_least(m, features): lambda Z: len(Z & named) >= m,
        rules.implies(feature, features): lambda Z: child not in Z or named <= Z,
        rules.implies(feature, features, any=True): lambda Z: child not in Z or bool(named & Z),
        rules.max_correlation(limit): lambda Z: (
            not any((g, h) in clash or (h, g) in clash for g, h in combinations(Z, 2))
        ),
    }
    for rule, holds in definitions.items():
        found = structure_of(
            p, NAMES[:p], groups=groups, rules=rule, correlations=lambda: correlations
        )
        assert found.groups.tolist() == labels.tolist()
        for row in found.rows:
            both = [*row.plus, *row.minus]
            assert len(both) == len(set(both)), "a group has one place in a row"
        expected = {Z for Z in choices(found.n_groups) if holds(set(Z))}
        assert allowed(found) == expected, rule


@seeds(100, chunk=25)
@pytest.mark.parametrize("kind", ["strong", "weak"])
def test_hierarchy_with_given_parents_is_its_definition(seed, kind):
    rng = np.random.default_rng(seed)
    p = 6
    labels = rng.integers(4, size=p).tolist()
    parents = {NAMES[j]: some(rng, p) for j in rng.permutation(p)[: rng.integers(1, p)]}
    found = structure_of(p, NAMES, groups=labels, rules=rules.hierarchy(kind, parents))
    own = [
        (found.groups[NAMES.index(c)], found.groups[list(places(f))]) for c, f in parents.items()
    ]
    enough = all if kind == "strong" else any
    expected = {
        Z
        for Z in choices(found.n_groups)
        if all(c not in Z or enough(h in Z for h in g) for c, g in own)
    }
    assert allowed(found) == expected


def test_several_rules_keep_their_places_and_words():
    found = structure_of(
        4,
        ("a", "b", "c", "a b"),
        rules=[
            rules.at_most(2, ["c", "a", "b"]),
            rules.exclusive("a", "c"),
            rules.implies("a", ["b", "c"]),
            rules.implies("a", ["b", "c"], any=True),
            rules.at_least(1, "b"),
            rules.hierarchy("strong"),
            rules.hierarchy("weak", {"c": "a"}),
            rules.max_correlation(0.5),
        ],
        correlations=lambda: np.eye(4)[::-1],
    )
    assert found.words == (
        "at most 2 of a, b, c",
        "at most 1 of a, c",
        "a only with b and c",
        "a only with b or c",
        "at least 1 of b",
        "strong hierarchy: products only with all their factors (1 term)",
        "weak hierarchy: terms only with at least one of their parents (1 term)",
        "no two features correlated above 0.5 (2 pairs)",
    )
    assert [row.rule for row in found.rows] == [0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 7]


def test_long_lists_are_cut_in_words():
    (words,) = structure_of(30, None, rules=rules.at_most(3, range(30))).words
    assert words == "at most 3 of x0, x1, x2, x3, x4, x5, x6, x7, ... (30)"


@seeds(50, chunk=25)
def test_rows_of_correlations_are_fewer_than_pairs(seed):
    """Features of a block exclude each other by one row, not by pairs."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(3, size=9)
    together = (blocks[:, None] == blocks).astype(float)
    found = structure_of(9, None, rules=rules.max_correlation(0.5), correlations=lambda: together)
    sizes = np.bincount(blocks)
    assert len(found.rows) == (sizes > 1).sum()
    assert found.words[0].endswith(f"({(sizes * (sizes - 1) // 2).sum()} pairs)")


def test_a_correlation_of_one_up_to_rounding_is_not_above_one():
    copies = np.full((2, 2), 1.0 + 2e-16 * 4)
    found = structure_of(2, None, rules=rules.max_correlation(1.0), correlations=lambda: copies)
    assert found.rows == ()


def test_correlations_are_asked_for_only_where_they_are_needed():
    def never():
        raise AssertionError

    assert structure_of(2, None, rules=rules.exclusive(0, 1), correlations=never).rows


RULES = [
    rules.at_most(2, ["a", "b", 3]),
    rules.at_least(1, np.array(["a", "b"])),
    rules.exclusive(["a", "b"]),
    rules.implies("a", "b"),
    rules.implies(np.int64(0), [1, 2], any=True),
    rules.hierarchy("strong"),
    rules.hierarchy("weak", parents={"c": ["a", "b"], "d": 0}),
    rules.max_correlation(0.75),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_rules_are_values(rule):
    again = pickle.loads(pickle.dumps(rule))
    assert again == rule
    assert hash(again) == hash(rule)
    assert eval(repr(rule), vars(rules)) == rule
    assert sum(rule == other for other in RULES) == 1


def test_rules_are_parameters_of_estimators():
    class Model(BaseEstimator):
        def __init__(self, rules=None):
            self.rules = rules

    model = clone(Model(rules=RULES))
    assert model.get_params()["rules"] == RULES


def test_exclusive_takes_names_or_one_list():
    assert rules.exclusive("a", "b") == rules.exclusive(["a", "b"]) == rules.at_most(1, ("a", "b"))


def test_sets_are_ordered():
    assert rules.at_most(1, set("fedcba")).features == NAMES


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: rules.at_most(-1, ["a"]), ValueError, "at_most: m must be at least 0"),
        (lambda: rules.at_most(1.5, ["a"]), TypeError, "at_most: m must be a whole number"),
        (lambda: rules.at_least(1, []), ValueError, "at_least: features is empty"),
        (lambda: rules.at_least(1, [0.5]), TypeError, "at_least: features must name features"),
        (lambda: rules.at_most(1, [True, False]), TypeError, "at_most: features is a mask"),
        (lambda: rules.at_most(1, np.array([True])), TypeError, "at_most: features is a mask"),
        (lambda: rules.exclusive("a"), ValueError, "exclusive: 'a' alone"),
        (lambda: rules.exclusive(), ValueError, "exclusive: features is empty"),
        (lambda: rules.implies(["a"], "b"), TypeError, "implies: feature must name"),
        (lambda: rules.implies("a", []), ValueError, "implies: needs is empty"),
        (lambda: rules.implies("a", "b", "c"), TypeError, "implies: any must be True or False"),
        (lambda: rules.hierarchy("big"), ValueError, "hierarchy: kind must be one of 'strong'"),
        (lambda: rules.hierarchy("weak", {}), ValueError, "hierarchy: parents must be"),
        (lambda: rules.hierarchy("weak", ["a"]), ValueError, "hierarchy: parents must be"),
        (lambda: rules.hierarchy("weak", {"a": []}), ValueError, r"parents\['a'\] is empty"),
        (lambda: rules.max_correlation(0), ValueError, "above 0 and at most 1"),
        (lambda: rules.max_correlation(1.1), ValueError, "above 0 and at most 1"),
        (lambda: rules.max_correlation(float("nan")), ValueError, "above 0 and at most 1"),
        (lambda: rules.max_correlation("0.8"), TypeError, "limit must be a number"),
    ],
)
def test_rules_that_make_no_sense(make, error, match):
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize(
    ("rule", "match"),
    [
        (rules.at_most(1, "bmu"), r"rules\[0\] \(at_most\): there is no .* did you mean 'bmi'"),
        (rules.at_most(1, 3), "holds 3, but features are numbered 0 to 2"),
        (rules.at_most(1, -1), "holds -1"),
        (rules.at_least(3, ["age", "bmi"]), "these are only 2; ask for fewer, or name more"),
        (rules.at_least(2, ["age", 0]), "these are only 1"),
        (rules.implies("age", "sexx"), "did you mean 'sex'"),
        (rules.hierarchy("strong"), "no feature has the name of a product.*give parents="),
        (rules.hierarchy("weak", {"age": "bm"}), "did you mean 'bmi'"),
        (rules.max_correlation(0.5), "correlations are not known here"),
        ("at most 2", r"rules\[0\] must be a rule, got.*bestk\.rules"),
        ([rules.exclusive(0, 1), 3], r"rules\[1\] must be a rule, got 3"),
    ],
)
def test_rules_that_do_not_fit_the_features(rule, match):
    with pytest.raises((ValueError, TypeError), match=match):
        structure_of(3, ("age", "bmi", "sex"), rules=rule)


def test_hierarchy_needs_names():
    with pytest.raises(ValueError, match="the features have no names"):
        structure_of(3, None, rules=rules.hierarchy("strong"))


def test_names_of_columns_and_groups_are_told_apart():
    names, groups = ("a", "b", "c"), {"pair": ["a", "b"]}
    found = structure_of(3, names, groups=groups, rules=rules.exclusive("pair", "c"))
    assert allowed(found) == {(), (0,), (1,)}
    assert found.words == ("at most 1 of pair, c",)
    of_column = structure_of(3, names, groups=groups, rules=rules.exclusive("b", 2))
    assert of_column.words == found.words
    with pytest.raises(ValueError, match="'a' is ambiguous"):
        structure_of(2, ("a", "a"), rules=rules.at_most(1, "a"))
    assert structure_of(2, ("a", "a"), groups=[0, 0], rules=rules.at_most(1, "a")).rows
