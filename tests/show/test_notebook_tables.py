"""Short tables for notebooks: of lists of models, of stability; texts that notebooks set."""

import pytest
from sklearn.datasets import load_diabetes

import bestk


@pytest.fixture(scope="module")
def data():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X.rename(columns={"bmi": "<b>bmi</b>"}), y


def test_a_list_shows_its_first_models_and_what_they_share(data):
    near = bestk.near_optimal(*data, k=5, within=0.2, fit_intercept=True)
    html = near._repr_html_()
    assert len(near) > 10
    assert f"... and {len(near) - 10} more" in html
    assert "<b>" not in html
    assert html.count("&lt;b&gt;bmi&lt;/b&gt;") > 5
    assert "<strong>Proven complete.</strong>" in html
    assert html.count('<th scope="row"') == 10 + 2
    last = near.models[9]
    assert f"{last.objective:.8g}" in html


def test_features_that_k_does_not_count_are_named(data):
    result = bestk.solve(*data, k=2, free=["<b>bmi</b>", "s5"], fit_intercept=True)
    html = result._repr_html_()
    assert "Not counted in k: &lt;b&gt;bmi&lt;/b&gt;, s5." in html
    assert "Not counted" not in bestk.solve(*data, k=2)._repr_html_()


def test_a_list_of_groups_names_groups(data):
    X, y = data
    labels = ["who", "who", *X.columns[2:4], *["blood"] * 6]
    near = bestk.near_optimal(X, y, k=2, within=0.1, groups=labels, fit_intercept=True)
    html = near._repr_html_()
    assert ", blood</td>" in html
    assert "of 4 groups" in html


def test_the_best_of_one_size(data):
    html = bestk.near_optimal(*data, k=2, n_best=3, fit_intercept=True)._repr_html_()
    assert "The best models with exactly 2 of 10 features" in html


def test_what_models_have_in_common_is_said_of_complete_lists_only():
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    near = bestk.near_optimal(X, y, k=8, within=0.3, node_limit=1)
    assert not near.complete
    for word in ("necessary", "possible", "useless"):
        assert word not in str(near)
    assert "in every model found" in near._repr_html_()
    assert "The list may be incomplete" in near._repr_html_()


def test_stability_shows_frequencies_and_models(data):
    found = bestk.stability(*data, k=3, n_resamples=30, fit_intercept=True, random_state=0)
    html = found._repr_html_()
    assert "30 of 30 resamples searched, 30 proven optimal." in html
    assert "<strong>Every model is proven optimal.</strong>" in html
    assert "<b>" not in html
    for each in found.supports[:5]:
        assert f"{each.share:.1%}" in html
    frame = found.to_frame()
    assert html.count("%</td>") == (frame["frequency"] > 0).sum()


def test_stability_says_what_is_not_proven():
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    found = bestk.stability(X, y, k=8, n_resamples=3, node_limit=1, random_state=0)
    assert "<strong>Not every model is proven.</strong>" in found._repr_html_()


class Printer:
    """IPython's, as far as a value needs it."""

    def text(self, text):
        self.shown = text


def pretty(item):
    item._repr_pretty_(printer := Printer(), False)
    return printer.shown


def test_ipython_shows_what_print_shows(data):
    result = bestk.solve(*data, k=2, fit_intercept=True)
    path = bestk.solve_path(*data, ks=[1, 2])
    near = bestk.near_optimal(*data, k=2)
    checked = result.certificate.verify(*data), near.certificate.verify(*data)
    for item in (result, path, near, *checked):
        assert pretty(item) == str(item)


def test_pages_and_formulas_are_texts(data, tmp_path):
    result = bestk.solve(*data, k=2, fit_intercept=True)
    page = result.to_html(tmp_path / "page.html")
    assert page == (tmp_path / "page.html").read_text(encoding="utf-8")
    assert str(tmp_path / "page.html") in repr(page)
    assert "give a path" in repr(result.to_html())
    assert len(repr(page)) < 200
    formula = result.to_latex("y")
    assert formula._repr_latex_() == rf"$\displaystyle {formula}$"
    assert formula.startswith("y = ")
