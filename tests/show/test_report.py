"""Reports: every number and warning is there, every name is escaped, nothing is loaded."""

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path as FilePath

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import bestk
from bestk import Advanced, Problem, Status
from bestk.selection.cross_validation import CrossValidation
from bestk.show import inline_svg, one_model, plots, report
from bestk.show.html import named, number

NASTY = ["<b>bold</b>", "x & y", '"quoted"', "$a_1$ b$", "_hidden", "温度", "line\nbreak"]
VOID = {"meta", "br", "hr", "img", "link", "input"}


@pytest.fixture(scope="module")
def data():
    X, y, _ = bestk.datasets.make_synthetic(80, 7, k=7, rho=0.5)
    return pd.DataFrame(X, columns=NASTY), y


@pytest.fixture(scope="module")
def result(data):
    return bestk.solve(*data, k=7, fit_intercept=True)


@pytest.fixture(scope="module")
def stopped():
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    slow = Advanced(enumeration=False, batch_size=1)
    result = bestk.solve(X, y, k=6, node_limit=20, advanced=slow)
    assert result.status is Status.NODE_LIMIT
    return result


@pytest.fixture(scope="module")
def path(data):
    return bestk.solve_path(*data, ks=range(8), fit_intercept=True)


@pytest.fixture(scope="module")
def cv(path):
    """Three penalties and four folds that happen to share one path."""
    errors = 5.0 + np.random.default_rng(0).random((3, 8, 4))
    errors[1, 7] = [1.0, 2.0, 3.0, 4.0]
    return CrossValidation(
        ks=path.ks, alphas=np.array([0.0, 0.1, 1.0]), errors=errors, paths=((path,) * 4,) * 3
    )


@pytest.fixture(scope="module")
def found():
    """Equations of states with nasty names; the third never changes."""
    from bestk.sindy import discover

    t = np.arange(0, 3, 0.02)
    x = np.c_[1 + np.cos(t), np.sin(t), np.ones(len(t))]
    return discover(x, t, degree=1, names=NASTY[:2] + NASTY[5:6], ks=[1, 2], alphas=[1e-5])


@pytest.fixture(scope="module")
def pages(data, result, stopped, path, cv, found):
    X, y = data
    return {
        "result": result.to_html(X=X, y=y),
        "stopped": stopped.to_html(),
        "path": path.to_html(X=X, y=y),
        "cv": cv.to_html(),
        "discovery": found.to_html(),
    }


@pytest.fixture
def no_pictures(monkeypatch):
    """Pages as they are without matplotlib: quick, where the text is all that matters."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


class Reader(HTMLParser):
    """Checks that tags are balanced; keeps text, ids and references."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.references, self.used, self.words = [], [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.used.append((tag, dict(attributes)))
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "srcset", "data", "action"):
                self.references.append(value)
            self.references += re.findall(r"url\(['\"]?([^)'\"]*)", value or "")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return "".join(self.words)


@pytest.mark.parametrize("name", ["result", "stopped", "path", "cv", "discovery"])
class TestEveryPage:
    def test_needs_nothing_else(self, pages, name):
        """Only ids of the page itself, or embedded data, are referred to."""
        page = Reader(pages[name])
        assert all(link.startswith(("#", "data:")) for link in page.references)
        assert {link[1:] for link in page.references if link.startswith("#")} <= set(page.ids)
        tags = {tag for tag, _ in page.used}
        assert "svg" in tags
        assert not tags & {"script", "link", "iframe", "img"}
        assert "@import" not in pages[name]
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", pages[name])

    def test_has_unique_ids(self, pages, name):
        ids = Reader(pages[name]).ids
        assert len(ids) > 10
        assert len(ids) == len(set(ids))

    def test_is_accessible(self, pages, name):
        used = Reader(pages[name]).used
        assert ("html", {"lang": "en"}) in used
        assert [tag for tag, _ in used].count("h1") == 1
        assert all(a.get("scope") in ("col", "row") for tag, a in used if tag == "th")
        assert all(a["role"] == "img" and a["aria-label"] for tag, a in used if tag == "svg")

    def test_pictures_take_the_colour_of_the_text(self, pages, name):
        assert "currentColor" in pages[name]
        assert inline_svg.INK not in pages[name]
        assert "prefers-color-scheme: dark" in pages[name]

    def test_says_what_made_it(self, pages, name):
        assert f"bestk {bestk.__version__}" in pages[name]
        assert "gap_tol" in pages[name]


@pytest.mark.parametrize("name", ["result", "path", "cv"])
def test_names_are_escaped(pages, name):
    assert "<b>" not in pages[name]
    assert "x & y" not in pages[name]
    text = Reader(pages[name]).text
    for feature in NASTY:
        assert feature in text


def test_summaries_are_escaped_and_have_no_colours(result, path, cv, found):
    for html in (item._repr_html_() for item in (result, path, cv, found)):
        Reader(html)
        assert "<b>" not in html
        assert not re.search(r"color|background|#[0-9a-f]{3}", html)
    assert "<b>bold</b>" in Reader(result._repr_html_()).text


def test_proven_result(result, pages):
    page = Reader(pages["result"]).text
    assert "Proven optimal." in page
    assert f"{result.objective:.10g}" in page
    assert f"{result.coef[0]:.8g}".replace("-", "−") in page
    assert f"{result.criterion('bic'):.7g}".replace("-", "−") in page
    assert "1 leaf: 0 with a lower bound, 1 where every model left was tried" in page


def test_equation(result):
    equation = Reader(one_model.equation(result, "target <1>")).text.replace("\xa0", " ")
    assert equation == result.equation("target <1>").replace("-", "−")


def test_stopped_result(stopped, pages):
    page = Reader(pages["stopped"]).text
    assert "Proven optimal" not in page
    assert "Stopped early (node limit)" in page
    assert stopped.status.advice in page
    assert plots.percent(stopped.gap) in page
    assert stopped.status.advice in Reader(stopped._repr_html_()).text


def test_a_bound_of_zero_is_said_to_prove_nothing(stopped):
    nothing = Reader(replace(stopped, lower_bound=0.0, gap=1.0)._repr_html_()).text
    assert "Stopped early (node limit): the gap is 100%." in nothing
    assert f"at most {stopped.k} of {len(stopped.coef)} features: the lower bound is 0." in nothing
    assert "is better by more than" not in nothing
    assert "is better by more than" in Reader(stopped._repr_html_()).text


def test_the_bound_shown_is_not_above_the_bound_proven(stopped):
    for offset in np.linspace(0, 1e-8, 20):
        shown = replace(stopped, lower_bound=stopped.lower_bound * (1 + offset))
        text = dict(one_model.numbers(shown))["lower bound"]
        assert float(text) <= shown.lower_bound


@pytest.mark.usefixtures("no_pictures")
def test_a_lost_certificate_is_mentioned(result):
    assert "no certificate" in report.result_page(replace(result, certificate=None))


@pytest.mark.usefixtures("no_pictures")
def test_required_and_excluded_features_are_named(data):
    page = bestk.solve(*data, k=3, include=["x & y"], exclude=["_hidden"]).to_html()
    assert "Required: x &amp; y. Excluded: _hidden." in page


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_empty_model(data, fit_intercept):
    result = bestk.solve(*data, k=0, fit_intercept=fit_intercept)
    page = Reader(result.to_html()).text
    assert "There was nothing to search." in page
    assert (f"y = {result.intercept:.4g}".replace("-", "−") if fit_intercept else "y = 0") in page


def test_unknown_number_of_rows(data):
    X, y = data[0].to_numpy(), data[1]
    problem = Problem.from_gram(X.T @ X, X.T @ y, y @ y)
    result = problem.solve(k=2)
    assert "AICc" not in Reader(result.to_html()).text
    page = Reader(bestk.Path((result,)).to_html()).text
    assert "AICc" not in page
    assert "Model with k = 2" in page


@pytest.mark.parametrize("criterion", ["aicc", "bic", "ebic"])
@pytest.mark.usefixtures("no_pictures")
def test_path_shows_the_chosen_model(path, criterion):
    page = Reader(path.to_html(criterion=criterion)).text
    best, name = path.best(criterion), plots.CRITERION_NAMES[criterion]
    assert f"Model with k = {best.k}, smallest {name}" in page
    assert f"{best.criterion(criterion):.2f} ★".replace("-", "−") in page
    assert page.count("yes") == len(path)


@pytest.mark.usefixtures("no_pictures")
def test_path_with_gaps(path):
    last = replace(path[7], status=Status.TIME_LIMIT, gap=0.25)
    page = Reader(bestk.Path((*path.results[:-1], last)).to_html()).text
    assert "Not every size is proven. 7 of 8 models" in page
    assert "the largest gap is 25%" in page
    assert Status.TIME_LIMIT.advice in page


def test_cross_validation(cv, pages):
    page = Reader(pages["cv"]).text
    assert "Every fit is proven optimal. 96 of 96 fits" in page
    assert "2.50 ± 0.65 ★" in page
    assert "4 of 4" in page
    assert report.cv_summary(cv) == cv._repr_html_()


def test_equations_of_motion(found, pages):
    page = Reader(pages["discovery"]).text.replace("\xa0", " ")
    assert "Every equation is proven the best of its size." in page
    for state, text in zip(found.states, found.equations, strict=True):
        assert text.replace("-", "−").replace(f"{state}'", f"{state}\u2032") in page
    assert "温度\u2032 = 0" in page
    for worse, other in zip(found.distances, found.runners_up, strict=True):
        assert worse in page
        assert other is None or ", ".join(other.names) in page
    assert f"{found.horizon():.3g} of {found.t[-1]:.3g}" in page
    assert page.count("★") == len(found.states) + 1
    for i, result in enumerate(found.results):
        score = found.scores[i, 0, list(found.ks).index(result.k)]
        assert f"{score:.2f} ★".replace("-", "−").replace("inf", "∞") in page
    html = pages["discovery"]
    assert "<b>" not in html
    assert "x & y" not in html


@pytest.mark.usefixtures("no_pictures")
def test_equations_with_gaps(found):
    open_gap = replace(found.results[0], status=Status.TIME_LIMIT, gap=0.25)
    page = Reader(replace(found, results=[open_gap, *found.results[1:]]).to_html()).text
    assert "1 of 3 equations is not proven." in page
    assert "The largest gap is 25.00%." in page
    assert Status.TIME_LIMIT.advice in page
    assert "time limit" in page


@pytest.mark.usefixtures("no_pictures")
def test_terms_that_are_certain(found):
    assert "certain" not in Reader(found.to_html()).text
    html = found.to_html(within=0.05)
    text = Reader(html).text
    assert "Which terms are certain?" in text
    assert "at most 5% above the best" in text
    assert "<b>" not in html
    for near, result in zip(found.near_optimal(0.05).values(), found.results, strict=True):
        rivals = sum(model.support.tolist() != result.support.tolist() for model in near)
        words = ", ".join(near.names[j] for j in near.necessary) or "none"
        shown = words if near.complete else "not known"
        assert f"certain terms{shown}" in text
        assert f"rival models{rivals}" in text
    complete = sum(near.complete for near in found.near_optimal(0.05).values())
    assert text.count("yes, proven") == complete


@pytest.mark.usefixtures("no_pictures")
def test_terms_are_not_certain_where_a_list_is_not_complete(found, monkeypatch):
    def stopped(self, within):
        lists = type(found).near_optimal_before(self, within)
        stop = {"complete": False, "status": Status.TIME_LIMIT, "certificate": None}
        return {state: replace(near, **stop) for state, near in lists.items()}

    kind = type(found)
    monkeypatch.setattr(kind, "near_optimal_before", kind.near_optimal, raising=False)
    monkeypatch.setattr(kind, "near_optimal", stopped)
    text = Reader(found.to_html(within=0.05)).text
    assert text.count("certain termsnot known") == len(found.states)
    assert text.count("no (time limit)") == len(found.states)
    assert Status.TIME_LIMIT.advice in text


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("place", "link"),
    [
        ("models.html", "models.html"),
        (FilePath("more") / "all models #1.html", "more/all%20models%20%231.html"),
        ("../x&y.html", "../x%26y.html"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
    ],
)
def test_a_link_to_the_near_optimal_models(result, place, link):
    page = Reader(result.to_html(alternatives=place))
    assert page.references == [link]
    assert "all models that are nearly as good" in page.text
    assert Reader(result.to_html()).references == []


def test_the_link_is_relative(result, tmp_path):
    with pytest.raises(ValueError, match="alternatives must be a path relative"):
        result.to_html(alternatives=tmp_path / "models.html")


@pytest.mark.usefixtures("no_pictures")
def test_title_and_target(result):
    html = result.to_html(title="Fish & <chips>", target="price")
    assert "<title>Fish &amp; &lt;chips&gt;</title>" in html
    assert "<h1>Fish &amp; &lt;chips&gt;</h1>" in html
    assert "<var>price</var> =" in html


@pytest.mark.usefixtures("no_pictures")
def test_the_file_is_the_page(result, tmp_path):
    file = tmp_path / "report.html"
    html = result.to_html(file)
    assert file.read_text(encoding="utf-8") == html
    assert html.startswith("<!DOCTYPE html>")


def test_data_come_in_pairs(result, data):
    with pytest.raises(ValueError, match="both X and y"):
        result.to_html(X=data[0])


def test_pictures_are_the_same_every_time_and_leave_the_style_alone(path, result):
    before = dict(mpl.rcParams)
    first = inline_svg.svg(lambda ax: plots.path(path, ax), "label", "a")
    with mpl.style.context("dark_background"):
        second = inline_svg.svg(lambda ax: plots.path(path, ax), "label", "a")
    assert first == second
    assert dict(mpl.rcParams) == before


@pytest.mark.usefixtures("no_pictures")
def test_without_matplotlib_the_page_says_how_to_get_pictures(result, path, cv, found):
    for html in (result.to_html(), path.to_html(), cv.to_html(), found.to_html()):
        assert "<svg" not in html
        assert 'pip install "bestk[plots]"' in Reader(html).text


@pytest.mark.parametrize(
    ("value", "html"),
    [
        (0.0, "0"),
        (-1.5, "−1.5"),
        (1.2e-5, "1.2 × 10<sup>−5</sup>"),
        (-3e20, "−3 × 10<sup>20</sup>"),
        (1e-100, "1 × 10<sup>−100</sup>"),
        (np.inf, "∞"),
        (np.nan, "–"),
    ],
)
def test_numbers(value, html):
    assert number(value) == html


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sex^2", "sex<sup>2</sup>"),
        ("a**3 b^12", "a<sup>3</sup> b<sup>12</sup>"),
        ("I(a ** 2)", "I(a<sup>2</sup>)"),
        ("f(x)^2", "f(x)<sup>2</sup>"),
        ("<b>^2", "&lt;b&gt;^2"),
        ("a<i>b^2", "a&lt;i&gt;b<sup>2</sup>"),
        ("a^b", "a^b"),
        ("a^2.5", "a^2.5"),
        ("^2", "^2"),
        ("a^123", "a^123"),
    ],
)
def test_powers_are_raised_and_names_escaped(name, shown):
    assert named(name) == shown


def test_powers_on_a_page(data, no_pictures):
    X, y = data
    X = X.set_axis(["a", "a^2", "a<b>^2", "b", "a b^3", "c", "d"], axis=1)
    html = bestk.solve(X, y, k=7).to_html()
    assert "<var>a<sup>2</sup></var>" in html
    assert "a b<sup>3</sup></span>" in html
    assert "a&lt;b&gt;^2" in html
    assert "<b>" not in html
    Reader(html)
