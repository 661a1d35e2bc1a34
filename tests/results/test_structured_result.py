"""What a result with groups, rules and constraints says of itself."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bestk
from bestk import rules
from bestk.results.result import active_constraints, grouped_support, uncounted

NAMES = ["a", "b", "c", "d", "e", "f", "g", "a:b"]
GROUPS = {"size": ["c", "d"], "rest": ["f", "g"]}
RULES = [rules.implies("a:b", ["a", "b"]), rules.at_least(1, ["size"])]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 8)), columns=NAMES)
    X["a:b"] = X.a * X.b
    y = 2 * X.a - X.b + X["a:b"] + 0.5 * X.c + 0.4 * X.d + 0.5 * rng.normal(size=90)
    return X, y


def solve(data, k=4, **options):
    return bestk.solve(*data, k, **{"groups": GROUPS, "rules": RULES, **options})


@pytest.fixture(scope="module")
def constrained(data):
    constraints = ["a + b <= 0.5", "c + d = 1", "-9 <= e", "f - g <= 0"]
    return solve(data, constraints=constraints, free=["e"])


def test_groups_are_counted_and_have_their_features_under_them(constrained):
    lines = str(constrained).splitlines()
    assert lines[0] == "bestk: 5 of 6 groups (6 of 8 features)"
    at = lines.index("  size")
    assert lines[at + 1].split()[0] == "c"
    assert lines[at + 1].startswith("    c ")
    assert lines[at + 2].startswith("    d ")
    assert next(line for line in lines if line.endswith("(not counted)")).startswith("  e ")
    assert lines[-1] == "Proven: no admissible model is better by more than gap_tol."


def test_rules_and_active_constraints_are_told(constrained):
    text = str(constrained)
    assert "\n  rules\n    a:b only with a and b\n    at least 1 of size\n" in text
    first, second = constrained.multipliers[:2]
    assert f"    a + b <= 0.5  (active, multiplier {first:.4g})\n" in text
    assert f"    c + d = 1  (active, multiplier {second:.4g})\n" in text
    assert "    -9 <= e\n" in text
    assert f"KKT residual {constrained.kkt_residual:.3g}" in text


def test_a_constraint_on_features_that_are_not_chosen_is_not_active(constrained):
    assert active_constraints(constrained).tolist() == [True, True, False, False]
    assert constrained.multipliers[2:].tolist() == [0.0, 0.0]


def test_lists_are_short(data):
    many = [rules.at_most(2, [a, b]) for a in "abe" for b in ("f", "a:b", "c")]
    text = str(solve(data, rules=many, constraints=[f"{n} >= -9" for n in NAMES]))
    assert "    ... and 4 more\n" in text
    assert "    ... and 3 more\n" in text
    assert text.count("    at most 2 of") == 5


def test_many_features_of_a_group_are_abbreviated():
    X, y, _ = bestk.datasets.make_synthetic(100, 40, 3)
    text = str(bestk.solve(X, y, 2, groups={"one": range(30)}, include=["one"]))
    assert text.startswith("bestk: 2 of 11 groups (31 of 40 features)")
    assert "\n  ... and 11 more\n" in text
    assert text.count("    x") == 20


def test_no_group_means_features(data):
    result = bestk.solve(*data, 3, rules=[rules.exclusive("a", "b")])
    assert str(result).startswith("bestk: 3 of 8 features\n")
    assert "  at most 1 of a, b\n" in str(result)
    assert "KKT" not in str(result)


def test_a_group_of_one_is_told_by_its_name_where_that_is_another(data):
    result = bestk.solve(*data, 2, groups={"first": ["a"]}, include=["first"])
    assert ("first", [0]) in grouped_support(result)
    assert "\n  first\n    a " in str(result)


def test_free_features_are_known_from_the_certificate(data):
    result = bestk.solve(*data, 2, free=["e"])
    assert uncounted(result) == {4}
    assert "(not counted)" in str(result)
    assert uncounted(replace(result, certificate=None)) == set()


def test_zero_has_no_sign(data):
    result = solve(data, include=["e"], constraints=["e = 0"])
    shown = replace(result, coef=np.where(result.coef == 0.0, -0.0, result.coef))
    assert "-0\n" not in str(shown) + "\n"
    assert any(line.split() == ["e", "0"] for line in str(shown).splitlines())


# Criteria ---------------------------------------------------------------------------------------


def parameters(result):
    """How many parameters BIC counts."""
    n = result.n_samples
    return round((result.criterion("bic") - n * math.log(result.rss / n)) / math.log(n))


def test_a_group_costs_as_many_parameters_as_it_has_features(data):
    result = solve(data)
    assert len(result.support) > len(result.chosen)
    assert parameters(result) == len(result.support) + 1


@pytest.mark.parametrize(
    ("constraints", "saved"),
    [
        (["c + d = 1"], 1),
        (["c + d <= 0.1"], 0),
        (["c + d = 1", "a + b = 1"], 2),
        (["c + d = 1", "1e6 c + 1e6 d + e = 1e6"], 1),  # the same, as e is not chosen
        (["c + d = 1", "c + d - a = 0", "a = 1"], 2),  # the third follows
        (["f + g = 0"], 0),  # not chosen
        (["f + g = 0", "e = 0", "c = 0.5"], 1),
    ],
)
def test_independent_equations_on_chosen_features_save_parameters(data, constraints, saved):
    options = {"include": ["a", "b", "size"], "exclude": ["e", "rest"], "fit_intercept": True}
    result = solve(data, constraints=constraints, **options)
    assert set("abcd") <= set(result.names)
    assert parameters(result) == len(result.support) + 2 - saved
