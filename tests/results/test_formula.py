"""Formulas: what they say is what the model predicts, whatever features are called."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures

import bestk
from bestk.results.formula import Reader, latex, latex_sum, symbol, text
from bestk.rivals.models import NearModel

HOSTILE = [
    "$a_1$ b$", "100% \\ {x}", "a & b", "#1 ~ ^", "<b>", "温度", "line\nbreak", "\\input{x}",
    "}\\end{document}", "", " ", "%", "a^", "^2", "a**", "I(", "sin(", "\\", "a_b", "x\x00y",
]  # fmt: skip


def polynomials(seed, names=("a", "body mass", "x0"), degree=3, k=5, **options):
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame(rng.normal(size=(80, len(names))), columns=list(names))
    library = PolynomialFeatures(degree, include_bias=False).set_output(transform="pandas")
    X = library.fit_transform(raw)
    y = X.to_numpy() @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.3))
    return raw, X, bestk.solve(X, y + 0.1 * rng.normal(size=80), k, alpha=0.1, **options)


def value_of(expression, columns):
    """An expression of SymPy at rows of the data, by the names of its symbols."""
    import sympy

    symbols = sorted(expression.free_symbols, key=str)
    rows = [columns[str(each)].to_numpy() for each in symbols]
    return sympy.lambdify(symbols, expression, "numpy")(*rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sympy_predicts_as_the_model_does(seed, fit_intercept):
    pytest.importorskip("sympy")
    raw, X, result = polynomials(seed, fit_intercept=fit_intercept)
    expression = result.to_sympy()
    assert {str(each) for each in expression.free_symbols} <= set(raw.columns)
    np.testing.assert_allclose(value_of(expression, raw), result.predict(X), rtol=1e-11, atol=1e-11)
    near = bestk.near_optimal(X.iloc[:, :6], X @ result.coef, 2, within=0.5, alpha=0.1)
    for model in near.models[:3]:
        expected = model.intercept + X.iloc[:, :6].to_numpy() @ model.coef
        found = value_of(model.to_sympy(), raw)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_coefficients_of_sympy_are_exact():
    pytest.importorskip("sympy")
    X, y, _ = bestk.datasets.make_synthetic(60, 8, k=4)
    result = bestk.solve(X, y, 4, fit_intercept=True)
    found = {
        str(key): float(value) for key, value in result.to_sympy().as_coefficients_dict().items()
    }
    parts = result.to_sympy().as_ordered_terms()
    exact = {float(part.as_coeff_Mul()[0]) for part in parts}
    assert exact == {result.intercept, *result.coef[result.support].tolist()}
    assert len(found) == 5


def test_names_of_features_that_nobody_named():
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=2, seed=3)
    result = bestk.solve(X, y, 2)
    a, b = (rf"x_{{{j}}}" for j in result.support)
    assert re.fullmatch(
        rf"y = -?[\d.]+\\,{re.escape(a)} [+-] [\d.]+\\,{re.escape(b)}", result.to_latex()
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b", r"a\,b"),
        ("a:b", r"a\,b"),
        ("a*b", r"a\,b"),
        ("x0 x1", r"x_{0}\,x_{1}"),
        ("a^2", "a^{2}"),
        ("age**2", r"\mathrm{age}^{2}"),
        ("I(a ** 2)", "a^{2}"),
        ("x_1^2 y", r"x_{1}^{2}\,y"),
        ("sin(1 x0)", r"\sin\left(x_{0}\right)"),
        ("cos(2 x0)", r"\cos\left(2\,x_{0}\right)"),
        ("x sin(2 y)", r"x\,\sin\left(2\,y\right)"),
        ("np.log(a)", r"\log\left(a\right)"),
        ("theta", r"\theta"),
        ("body mass", r"\text{body mass}"),
        ("log(1 + x)", r"\text{log(1 + x)}"),
        ("level:2", r"\text{level:2}"),
    ],
)
def test_names_are_read(name, shown):
    assert latex("y", [(2.0, name)], Reader([name])) == rf"y = 2\,{shown}"


def test_words_are_factors_only_where_they_are_features():
    names = ["body", "mass", "body mass", "age", "net worth", "net worth:age"]
    reader = Reader(names)
    assert reader.product("body mass") == ("body", "mass")
    assert reader.product("net worth") == ("net worth",)
    assert reader.product("net worth:age") == ("age", "net worth")


def test_a_name_with_two_readings_is_one_symbol():
    names = ["a", "b", "a:b c", "c", "b c d", "d", "p q", "p", "q r", "r", "p q r"]
    reader = Reader([*names], states=["p q", "q r"])
    assert reader.product("p q r") == ("p q r",)


def test_numbers_and_signs():
    reader = Reader(["a", "b"])
    terms = [(-1.5e-7, None), (-2.0, "a"), (0.0, "b")]
    assert latex_sum(terms, reader) == r"-1.5 \times 10^{-7} - 2\,a"
    assert latex_sum([], reader) == "0"
    assert latex("y", [(1 / 3, "a")], reader, digits=2) == r"y = 0.33\,a"


def test_symbols_that_would_look_alike_are_text():
    shown = latex_sum([(1.0, "x1"), (1.0, "x_1"), (1.0, "x2")], Reader(["x1", "x_1", "x2"]))
    assert shown == r"1\,\text{x1} + 1\,\text{x\_1} + 1\,x_{2}"


# Whatever LaTeX means by a character, a name must not mean it.
SAFE = re.compile(
    r"(?:[^\\{}$&#%_^~\x00-\x1f]|\\[{}$&#%_]|\\text(?:backslash|asciicircum|asciitilde|less|greater|bar)\{\})*"
)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30) | st.sampled_from(HOSTILE))
def test_text_has_no_raw_special_characters(name):
    shown = text(name)
    assert shown.startswith(r"\text{")
    assert shown.endswith("}")
    assert SAFE.fullmatch(shown[6:-1])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("ab^*: 2I()sin_\\{}$x0", max_size=12), min_size=1, max_size=6))
def test_any_names_give_balanced_formulas(names):
    shown = latex("y", [(1.0, name) for name in names], Reader(names))
    plain = re.sub(r"\\[\\{}$&#%_]", "", shown)
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"[$&#%~\n]", plain)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_targets(name):
    model = NearModel(
        support=np.array([0]), values=np.array([2.0]), intercept=0.0, objective=1.0,
        is_borderline=False, all_names=(name,),
    )  # fmt: skip
    times = r" \cdot " if name[:1].isdecimal() else r"\,"
    assert model.to_latex(target=name) == f"{symbol(name)} = 2{times}{symbol(name)}"
    if "sympy" in sys.modules or pytest.importorskip("sympy"):
        assert {each.name for each in model.to_sympy().free_symbols} == {name}


def test_long_names_are_not_read():
    name = " ".join(["a"] * 5000)
    assert Reader([name, "a"]).product(name) == (name,)
    assert Reader(["sin(" + " " * 10000 + ")"]).call("sin(" + " " * 10000 + ")") is None


def test_without_sympy_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    X, y, _ = bestk.datasets.make_synthetic(30, 4, k=2)
    result = bestk.solve(X, y, 2)
    assert result.to_latex().startswith("y = ")
    with pytest.raises(ImportError, match="pip install sympy"):
        result.to_sympy()


def test_a_number_is_told_from_a_name_that_begins_with_one():
    """Wavelengths, years: "0.5 1450 nm" could be read as one number and a unit, or as two."""
    X, y, _ = bestk.datasets.make_synthetic(50, 4, k=2, rho=0.1)
    X = pd.DataFrame(X, columns=["1450 nm", "a", "2012", "b"])
    y = 2.5 * X["1450 nm"] - 1.5 * X["2012"] + 3.25 * X["a"]
    result = bestk.solve(X, y, 3, constraints="a = 3.25")
    assert result.equation() == "y = 2.5 * 1450 nm + 3.25 a - 1.5 * 2012"
    (near,) = bestk.near_optimal(X, y, 3, below=1e-9).models
    assert near.equation() == result.equation()
    assert result.to_latex() == r"y = 2.5 \cdot \text{1450 nm} + 3.25\,a - 1.5 \cdot \text{2012}"
    page = re.sub(r"<[^>]*>", "", result._repr_html_()).replace("\xa0", " ")
    assert "y = 2.5 · 1450 nm + 3.25 a − 1.5 · 2012" in page
    tied = bestk.solve(X, y, 3, constraints="a - 0.5 * 1450 nm >= 1")
    assert tied.structure.constraint_words == ("1 <= -0.5 * 1450 nm + a",)
