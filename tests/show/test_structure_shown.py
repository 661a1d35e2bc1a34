"""Pages, tables and documents say what was asked of groups, rules and constraints."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.browser import chromium
from matplotlib.figure import Figure
from test_report import Reader

import bestk
from bestk import Advanced, Status, rules
from bestk.cross_validation import cross_validate_batches
from bestk.results.result import active_constraints
from bestk.show import console, one_model, plots, report
from bestk.show.near_optimal_plot import plot_near_optimal

NAMES = ["<b>bold</b>", "x & y", '"quoted"', "[red]c[/]", "温度", "f5", "f6", "f7", "f8"]
SIZE = "<i>size</i> & [bold]more"
GROUPS = {SIZE: NAMES[2:5], "other": ["f6", "f7"]}
RULES = [rules.implies("x & y", ["<b>bold</b>"]), rules.exclusive("f5", "other")]
CONSTRAINTS = ["x & y + 温度 <= -0.9", '"quoted" + [red]c[/] = 1', "f8 <= 5"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(90, 9)), columns=NAMES)
    y = X @ [2.0, -1.0, 0.5, 0.4, 0.3, 0.1, 0.2, 0.0, 0.1] + 0.7 * rng.normal(size=90)
    return X, y


@pytest.fixture(scope="module")
def asked():
    return {"groups": GROUPS, "rules": RULES, "free": ["f8"], "fit_intercept": True}


@pytest.fixture(scope="module")
def result(data, asked):
    return bestk.solve(*data, 3, constraints=CONSTRAINTS, **asked)


@pytest.fixture(scope="module")
def path(data, asked):
    return bestk.solve_path(*data, [1, 2, 3], constraints=CONSTRAINTS, **asked)


@pytest.fixture(scope="module")
def cv(data):
    X, y = (part.to_numpy() for part in data)
    asked = {"groups": {SIZE: [2, 3, 4]}, "rules": [rules.max_correlation(0.2)]}
    return cross_validate_batches([(X, y)], [1, 2], [0.1], n_folds=3, **asked)[0]


@pytest.fixture(scope="module")
def found(data, asked):
    return bestk.near_optimal(*data, 3, within=0.5, **asked)


@pytest.fixture(autouse=True)
def no_pictures(request, monkeypatch):
    if "ax" not in request.fixturenames:
        monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_hostile_names_stay_text(result, path, cv):
    for html in (result.to_html(), path.to_html(), cv.to_html(), result._repr_html_()):
        text = Reader(html).text
        assert "<b>" not in html
        assert "<i>" not in html
        assert "x & y" not in html
        assert SIZE in text or html == result._repr_html_()


def test_the_page_of_a_result(result):
    text = Reader(result.to_html()).text
    assert text.startswith("Best model with at most 3 of 6 groups")
    assert "No admissible model with at most 3 of 6 groups" in text
    for words in (*result.structure.words, *result.structure.constraint_words):
        assert words in text
    assert "6 groups of 9 features, 2 of them with several features" in text
    assert "f6, f7" in text
    assert "groups chosen4, 1 not counted" in text
    assert "k, most groups3" in text
    assert "f8 (not counted)" in text
    assert "every admissible model left was tried" in text
    assert "Not counted: f8." in text


def test_a_notebook_says_what_was_asked_for(result, data, asked):
    words = [*result.structure.words, *result.structure.constraint_words]
    assert len(words) == 5
    text = Reader(result._repr_html_()).text
    assert f"Asked for: {'; '.join(words[:3])}; ... and 2 more." in text
    found = bestk.near_optimal(*data, 3, within=0.1, **asked)
    text = Reader(found._repr_html_()).text
    assert f"Asked for: {'; '.join(found.structure.words)}." in text
    assert "Asked for" not in bestk.solve(*data, 3)._repr_html_()


def test_active_constraints_have_their_multipliers(result):
    html = result.to_html()
    rows = dict(re.findall(r'<tr><th scope="row"[^>]*>([^<]*)</th>(.*?)</tr>', html))
    active = active_constraints(result)
    assert active.tolist() == [True, True, False]
    for i, words in enumerate(result.structure.constraint_words):
        cells = Reader(
            rows[words.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")]
        )
        assert ("yes" in cells.text) == active[i]
        if active[i]:
            assert f"{result.multipliers[i]:.5g}".replace("-", "−") in cells.text
    assert "KKT residual" in html


def test_coefficients_stand_under_their_groups(result):
    text = Reader(one_model.terms(result)).text
    size, bold = text.index(SIZE), text.index("<b>bold</b>")
    assert bold < size < min(text.index(name) for name in NAMES[2:5])
    assert text.index("f8") > max(text.index(name) for name in NAMES[2:5])


def test_leaves_that_rules_close_are_counted(result):
    certificate = result.certificate
    tree = certificate.tree
    leaves = np.flatnonzero(tree.is_leaf)
    assert "leave empty" not in one_model.proof(result)
    broken = np.full(len(tree), -1)
    broken[leaves[0]] = 0
    closed = replace(certificate, choices=certificate.choices._replace(broken=broken))
    text = one_model.proof(replace(result, certificate=closed))
    assert "1 that the rules or k leave empty." in text
    numbers = [int(n) for n in re.findall(r"(\d+) (?:with|where|that)", text.partition(":")[2])]
    assert sum(numbers) == len(leaves)


def test_a_long_search_counts_all_leaves():
    X, y, _ = bestk.datasets.make_synthetic(100, 30, k=8, rho=0.9)
    slow = Advanced(enumeration=False, batch_size=1)
    asked = {"rules": [rules.at_most(1, range(0, 10)), rules.implies(3, [20, 21])]}
    result = bestk.solve(X, y, 4, advanced=slow, node_limit=60, **asked)
    text = one_model.proof(result)
    numbers = [int(n) for n in re.findall(r"(\d+) (?:with a|where|that)", text.partition(":")[2])]
    assert sum(numbers) == np.count_nonzero(result.certificate.tree.is_leaf)


def test_the_page_of_a_path(path):
    html = path.to_html()
    text = Reader(html).text
    assert ">groups</th>" in html
    assert f"<b>bold</b>, {SIZE}" in text or f"x & y, {SIZE}" in text
    assert path[1].structure.words[0] in text
    assert SIZE in Reader(path._repr_html_()).text


def test_the_page_of_a_cross_validation(cv):
    text = Reader(cv.to_html()).text
    assert "Groups of the chosen models" in text
    assert "no two features correlated above 0.2" in text
    words = {r.structure.words for folds in cv.paths for p in folds for r in p.results}
    assert ("those of the first fold" in text) == (len(words) > 1)
    assert f"{SIZE}" in text


def test_without_structure_nothing_is_said(data):
    text = Reader(bestk.solve(*data, 2).to_html()).text
    assert "Rules" not in text
    assert "group" not in text
    assert "multiplier" not in text


def test_pictures_count_groups(path, cv, found, ax):
    assert plots.path(path, ax).get_xlabel() == "largest number of groups k"
    assert plots.cross_validation(cv, Figure().subplots()).get_xlabel().endswith("groups k")
    drawn = plot_near_optimal(found, Figure().subplots())
    drawn.figure.canvas.draw()
    labels = [text.get_text().rpartition("  ")[0] for text in drawn.get_yticklabels()]
    dots = {(int(x), labels[int(y)]) for x, y in drawn.collections[-1].get_offsets()}
    structure = found.structure
    short = [name if len(name) <= 22 else name[:21] + "…" for name in structure.group_names]
    assert dots == {
        (i, short[g]) for i, m in enumerate(found, 1) for g in structure.groups_of(m.support)
    }


# The command ------------------------------------------------------------------------------------


def as_json(document, capsys):
    console.write_json(document)
    return json.loads(capsys.readouterr().out)


def test_the_document_of_a_model(result, capsys):
    document = as_json(console.model_document(result), capsys)
    assert document["groups"] == result.group_names
    assert document["n_groups"] == 6
    assert document["rules"] == list(result.structure.words)
    assert document["kkt_residual"] == result.kkt_residual
    for i, one in enumerate(document["constraints"]):
        assert one["words"] == result.structure.constraint_words[i]
        assert one["multiplier"] == result.multipliers[i]
        assert one["value"] == pytest.approx(result.structure.matrix[i] @ result.coef)
        assert one["active"] is bool(active_constraints(result)[i])
    assert document["support"] == result.names


def test_the_document_of_a_model_without_structure(data, capsys):
    document = as_json(console.model_document(bestk.solve(*data, 2)), capsys)
    assert not document.keys() & {"groups", "n_groups", "rules", "constraints", "kkt_residual"}


def test_the_document_of_a_list(found, capsys):
    document = as_json(console.list_document(found), capsys)
    assert document["rules"] == list(found.structure.words)
    assert document["constraints"] == []
    for model, one in zip(document["models"], found, strict=True):
        groups = found.structure.groups_of(one.support)
        assert model["groups"] == [found.structure.group_names[g] for g in groups]
    plain = console.list_document(replace(found, structure=None))
    assert "groups" not in plain["models"][0]
    assert "rules" not in plain


def test_tables_for_people(result, path, found, capsys):
    console.show_model(result)
    text = capsys.readouterr().out
    assert SIZE in text
    assert "  温度" in text
    assert "f8 (not counted)" in text
    assert f"{result.multipliers[0]:.4g}" in text
    assert "no admissible model with at most 3 groups is better" in text
    console.show_path(path, "bic")
    text = capsys.readouterr().out
    assert "groups" in text.splitlines()[1]
    console.show_list(found)
    text = " ".join(capsys.readouterr().out.split())
    assert "every admissible model with at most 3 groups up to the threshold" in text
    assert "of 6 groups" in text


def test_what_is_left_open(result, capsys):
    console.show_model(replace(result, status=Status.TIME_LIMIT, gap=0.1))
    text = " ".join(capsys.readouterr().out.split())
    assert "an admissible model with at most 3 groups may be better, but by 10.00%" in text


def test_the_claim_of_a_list_in_a_file(found, capsys):
    console.show_list_verification(found.certificate, "")
    text = " ".join(capsys.readouterr().out.split())
    assert "every admissible model with at most 3 groups" in text


def test_reports_know_a_structure_alone(result):
    """Constraints without groups or rules, and rules without constraints."""
    structure = result.structure
    only = replace(structure, rows=(), words=())
    text = Reader(report.result_page(replace(result, structure=only))).text
    assert "On the choice" not in text
    assert "On coefficients" in text


def test_long_names_of_a_group_stay_in_their_cells():
    names = ["num__missingindicator_mean_corpuscular_volume", "age"]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 2)), columns=names)
    result = bestk.solve(X, X.sum(axis=1), 1, groups={"volume": names})
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 500, "height": 900})
        page.set_content(result.to_html())
        assert page.locator(".member").count() == 2
        outside = page.evaluate(
            """() => [...document.querySelectorAll(".member")].filter((name) => {
                const cell = name.closest("th").getBoundingClientRect();
                return name.getBoundingClientRect().right > cell.right;
            }).length"""
        )
        assert outside == 0
