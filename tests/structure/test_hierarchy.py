"""Parents of terms, from their names."""

from collections import Counter

import numpy as np
import patsy
import pysindy
import pytest
from helpers.seeds import seeds
from sklearn.preprocessing import PolynomialFeatures

from bestk import rules
from bestk.structure.compose import structure_of
from bestk.structure.hierarchy import monomials_of, parents_of


def family(*names):
    """{name: names of its parents}."""
    return {
        name: {names[i] for i in own} for name, own in zip(names, parents_of(names), strict=True)
    }


def parents_by_powers(powers):
    """Largest divisors of each row of exponents among the others, by comparing all of them."""
    found = []
    for row in powers:
        below = [
            i for i, other in enumerate(powers) if (other <= row).all() and (other < row).any()
        ]
        found.append(
            {i for i in below if not any((powers[i] <= powers[j]).all() for j in below if j != i)}
        )
    return found


COLUMNS = [
    ["a", "b", "c", "d"],
    ["mean radius", "mean", "worst mean", "radius of it"],
    ["x^2", "b", "a:b of c", "1"],
    ["mean radius", "radius", "error", "radius error mean"],
]


@seeds(40, chunk=10)
@pytest.mark.parametrize("columns", COLUMNS, ids=lambda columns: columns[0])
def test_names_of_polynomial_features(seed, columns):
    """Also where some terms are left out, and in any order."""
    rng = np.random.default_rng(seed)
    expand = PolynomialFeatures(3, include_bias=False).fit(np.zeros((1, 4)))
    names, powers = expand.get_feature_names_out(columns), expand.powers_
    kept = np.concatenate([np.arange(4), 4 + np.flatnonzero(rng.random(len(names) - 4) < 0.7)])
    kept = rng.permutation(kept)
    found = parents_of(tuple(names[kept]))
    assert [set(own) for own in found] == parents_by_powers(powers[kept])


def test_names_of_pysindy():
    library = pysindy.PolynomialLibrary(3, include_bias=True).fit(np.zeros((5, 3)))
    names = library.get_feature_names()
    found = family(*names)
    assert found["x0^2 x1"] == {"x0^2", "x0 x1"}
    assert found["x0 x1 x2"] == {"x0 x1", "x0 x2", "x1 x2"}
    assert found["x2^3"] == {"x2^2"}
    assert found["1"] == found["x0"] == set()


def test_names_of_formulas():
    data = {"a": np.arange(1.0, 7), "z": np.ones(6), "x": list("pqrpqr")}
    formula = "a * C(x) + z + C(x):z + I(a ** 2) + I(a**2):z + np.log(a) + np.log(a):z"
    names = patsy.dmatrix(formula, data).design_info.column_names
    found = family(*names)
    assert found["a:C(x)[T.q]"] == {"a", "C(x)[T.q]"}
    assert found["C(x)[T.r]:z"] == {"C(x)[T.r]", "z"}
    assert found["I(a ** 2)"] == {"a"}
    assert found["I(a ** 2):z"] == {"I(a ** 2)", "z"}
    assert found["np.log(a):z"] == {"np.log(a)", "z"}
    assert found["np.log(a)"] == found["Intercept"] == found["C(x)[T.q]"] == set()


def test_powers_of_formulas_and_ways_to_write_products():
    assert family("a", "b", "I(a**2)", "I(a * b)", "I(a + b)") == {
        "a": set(),
        "b": set(),
        "I(a**2)": {"a"},
        "I(a * b)": {"a", "b"},
        "I(a + b)": set(),
    }
    for product in ("a b", "a:b", "a*b", "a * b", "a×b", "b a"):
        assert family("a", "b", product)[product] == {"a", "b"}
    assert family("a", "a^3", "a**2")["a^3"] == {"a**2"}


def test_products_of_unknown_names_are_main_effects():
    assert not any(parents_of(("a", "a b", "mean radius", "mean", "a_1", "ab", "c:d", "b^2")))


def test_nearest_divisors_take_the_place_of_missing_ones():
    assert family("x", "y", "x^2 y")["x^2 y"] == {"x", "y"}
    assert family("x", "y", "x y", "x^2 y")["x^2 y"] == {"x y"}
    assert family("x", "y", "z", "x^2", "x y z", "x^2 y z")["x^2 y z"] == {"x^2", "x y z"}


def test_a_name_with_two_readings_is_an_error():
    with pytest.raises(ValueError, match=r"'a b c' can be read as .* give parents="):
        parents_of(("a", "b c", "a b", "c", "a b c"))


def test_monomials_hold_every_factor():
    names = ("a b", "c", "a b^2 c", "c^3")
    assert list(map(Counter, monomials_of(names))) == [
        {"a b": 1},
        {"c": 1},
        {"a b": 2, "c": 1},
        {"c": 3},
    ]


def test_groups_of_interactions_need_groups():
    names = ("z", "x[T.q]", "x[T.r]", "x[T.q]:z", "x[T.r]:z")
    groups = {"x": [1, 2], "x:z": [3, 4]}
    rows = {}
    for kind in ("strong", "weak"):
        found = structure_of(5, names, groups=groups, rules=rules.hierarchy(kind))
        assert found.group_names == ("z", "x", "x:z")
        assert "(1 term)" in found.words[0]
        rows[kind] = [(r.plus.tolist(), r.minus.tolist(), r.limit) for r in found.rows]
    assert rows["strong"] == [([2], [0], 0), ([2], [1], 0)]
    assert rows["weak"] == [([2], [0, 1], 0)]


def test_powers_in_one_group_need_nothing():
    """A group with all powers of a feature brings the parents along."""
    found = structure_of(3, ("a", "a^2", "a^3"), groups=["a"] * 3, rules=rules.hierarchy("strong"))
    assert found.rows == ()


def test_names_with_very_many_factors_are_no_products():
    """To read them would take long, or more calls inside each other than Python allows."""
    long = " ".join("a" * 2000)
    assert not any(parents_of(("a", long, "I(" * 400 + "a" + ")" * 400)))
    assert parents_of(("a", " ".join("a" * 50))) == [(), (0,)]


def test_high_powers_do_not_take_long():
    """The last one has a hundred million divisors."""
    names = ("a", "b", "c", "d", "a^9 b^9", "a^99 b^99 c", "a^99 b^99 c^99 d^99")
    assert parents_of(names) == [(), (), (), (), (0, 1), (2, 4), (3, 5)]
