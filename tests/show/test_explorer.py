"""The page of near-optimal models: what its head says, what it embeds, and that names stay text."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.near_optimal_stub import find, many, proxies

import bestk
from bestk import Status
from bestk.show.explorer import MAX_ROWS, MAX_UNUSED, explorer_data, write_explorer

NASTY = [
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "x & y",
    '"quoted"',
    "line\nbreak \u2028 \u2029",
    "$a_1$ b$",
    "温度",
    "\ud800 lone",
    "",
    "__proto__",
]


@pytest.fixture(scope="module")
def found():
    names = [f"f{j}" for j in range(12)]
    X, y = proxies(names, noise=4.0)
    return find(X, y, names, k=3, within=0.25)


@pytest.fixture(scope="module")
def page(found):
    return write_explorer(found, None)


def embedded(page):
    (text,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    return json.loads(text)


def words(page):
    """The text of the head, without tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", page[page.index("<main>") :]).split())


def test_the_page_is_written_and_returned(found, tmp_path):
    path = tmp_path / "page.html"
    html = write_explorer(found, path)
    assert path.read_text(encoding="utf-8") == html


def test_nothing_is_loaded_and_one_script_may_run(page):
    assert not re.search(r"https?:|@import|\bsrc=|url\(|<link", page)
    assert "default-src 'none'" in page
    assert page.count("<script") == 2
    assert "unsafe-inline" in page
    assert "script-src 'unsafe-inline'" not in page


def test_the_head_says_what_it_is(found, page):
    text = words(page)
    for part in (
        "Near-optimal models with at most 3 of 12 features",
        "Proven complete.",
        "at most 25% above the best",
        f"The list has {len(found.models)} models.",
        "This is not a confidence set.",
        "alpha 0.1",
    ):
        assert part in text


def test_the_data_are_those_of_the_models(found, page):
    data = embedded(page)
    assert data["objectives"] == [m.objective for m in found.models]
    assert data["sizes"] == [m.size for m in found.models]
    ends = np.cumsum(data["sizes"])
    for model, start, end in zip(found.models, ends - data["sizes"], ends, strict=True):
        assert tuple(data["names"][f] for f in data["features"][start:end]) == model.names
        np.testing.assert_allclose(data["values"][start:end], model.values, rtol=1e-7)
    used = {name for model in found.models for name in model.names}
    assert set(data["names"]) == used
    assert set(data["unused"]) == set(found.names) - used


def test_ranges_are_rounded_outwards(found, page):
    data = embedded(page)
    exact = np.concatenate(found.model_ranges())
    assert np.all(np.array(data["lows"]) <= exact[:, 0])
    assert np.all(np.array(data["highs"]) >= exact[:, 1])
    np.testing.assert_allclose(np.c_[data["lows"], data["highs"]], exact, rtol=1e-6)


def test_predictions_of_the_first_rows(found):
    rows = explorer_data(found, found.X)["rows"]
    shape = len(found.models), MAX_ROWS
    assert rows["labels"] == [str(i) for i in range(MAX_ROWS)]
    exact = found.predictions(found.X[:MAX_ROWS])
    np.testing.assert_allclose(np.reshape(rows["fitted"], shape), exact[:, :, 1], rtol=1e-4)
    assert np.all(np.reshape(rows["low"], shape) <= exact[:, :, 0])
    assert np.all(np.reshape(rows["high"], shape) >= exact[:, :, 2])
    whole = found.prediction_range(found.X[:MAX_ROWS])
    assert np.all(rows["allLow"] <= whole[:, 0])
    assert np.all(rows["allHigh"] >= whole[:, 1])


def test_rows_of_a_table_keep_their_names(found):
    table = pd.DataFrame(found.X[:2], columns=found.names, index=["<i>Oslo</i>", "Rome"])
    assert explorer_data(found, table)["rows"]["labels"] == ["<i>Oslo</i>", "Rome"]
    assert "<i>" not in write_explorer(found, None, table)


def test_names_cannot_leave_the_data(tmp_path):
    X, y = proxies(NASTY, noise=4.0)
    found = find(X, y, NASTY, k=3, within=0.5, copies=((1, 0),))
    page = write_explorer(found, tmp_path / "page.html")
    start = page.index('<script id="data"')
    inside = page[start : page.index("</script>", start)].partition(">")[2]
    assert inside.isascii()
    assert not set(inside) & set("<>&")
    data = embedded(page)
    assert set(data["names"]) | set(data["unused"]) == set(NASTY)
    assert data["copies"] == [[NASTY[1], NASTY[0]]]
    assert "hacked" not in page[:start]


def test_an_incomplete_list_says_where_it_is_complete(found):
    below = 1.04321 * found.best.objective
    stopped = replace(found, complete=False, complete_below=below, status=Status.TIME_LIMIT)
    text = words(write_explorer(stopped, None))
    assert "The list may be incomplete (time limit)." in text
    assert "Nothing is missing below the objective" in text
    assert "4.32% above the best" in text
    assert Status.TIME_LIMIT.advice.split(".")[0] in text
    assert "Proven complete" not in text


@pytest.mark.parametrize("below", [-np.inf, 0.0])
def test_nothing_may_be_known_to_be_complete(found, below):
    stopped = replace(found, complete=False, complete_below=below, status=Status.NODE_LIMIT)
    page = write_explorer(stopped, None)
    assert "Models may be missing at every objective." in page
    assert embedded(page)["completeBelow"] == (0.0 if below == 0 else None)


def test_borderline_models_are_counted(found):
    last = replace(found.models[-1], is_borderline=True)
    page = write_explorer(replace(found, models=(*found.models[:-1], last)), None)
    assert "1 model equals the threshold up to rounding" in page
    assert embedded(page)["borderline"] == [len(found.models) - 1]


def test_required_features_are_named_though_no_model_is_listed(found):
    empty = replace(found, models=(), include=np.array([4]), complete=False)
    data = explorer_data(empty)
    assert data["names"] == ["f4"]
    assert data["include"] == [0]
    assert data["objectives"] == data["features"] == data["lows"] == []


def test_a_perfect_fit_is_measured_by_yy(found):
    best = replace(found.best, objective=0.0)
    perfect = replace(found, best=best, threshold=0.01 * found.yy, within=None)
    page = write_explorer(perfect, None)
    assert "1% of y&#x27;y above the best" in page
    assert embedded(page)["scale"] == found.yy


def test_ranges_without_end_are_none(found):
    class Endless(type(found)):
        def model_ranges(self):
            return [np.full((m.size, 2), [-np.inf, np.inf]) for m in self.models]

    endless = Endless(**vars(found))
    assert set(explorer_data(endless)["lows"]) == {None}


def test_features_that_no_model_has_are_named_up_to_a_number():
    names = [f"f{j}" for j in range(8)]
    X, y = proxies(names)
    small = find(X, y, names, k=2, within=0.0)
    wide = replace(
        small,
        names=tuple(names) + tuple(f"more {j}" for j in range(1000)),
        X=np.c_[X, np.zeros((len(X), 1000))],
    )
    data = explorer_data(wide)
    assert len(data["unused"]) == MAX_UNUSED
    assert data["unusedCount"] == 1008 - len(data["names"])


def test_many_models_take_few_bytes():
    page = write_explorer(many(2000), None)
    assert len(page) < 200 * 2000 + 300_000


def test_the_page_needs_no_matplotlib():
    code = "import sys, bestk.show.explorer; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_models_of_exactly_k_features_are_not_called_irreducible(found):
    same = replace(found, only_k=True, within=None, include=np.array([0]), exclude=np.array([1, 2]))
    text = words(write_explorer(same, None))
    assert f"the {len(found.models)} best linear models with exactly 3 of 12 features" in text
    assert "as small as it can be" not in text
    assert "every model has 1 given feature." in text
    assert "every model lacks 2 given features." in text


def test_the_page_of_a_real_list(found, page):
    y = found.y
    real = bestk.near_optimal(found.X, y, k=3, within=0.25, alpha=0.1, fit_intercept=True)
    stub, data = embedded(page), explorer_data(real, found.X[:3])
    assert len(found.models) > 8
    assert data["sizes"] == stub["sizes"]
    assert [data["names"][f].replace("x", "f") for f in data["features"]] == [
        stub["names"][f] for f in stub["features"]
    ]
    for name in ("objectives", "values", "lows", "highs"):
        np.testing.assert_allclose(data[name], stub[name], rtol=1e-6)
    assert len(data["rows"]["fitted"]) == 3 * len(real.models)
    assert "Proven complete." in write_explorer(real, None)


# Groups, rules and constraints --------------------------------------------------------------------


@pytest.fixture(scope="module")
def grouped():
    """(X, y, what was asked): groups with nasty names."""
    X, y = proxies([f"f{j}" for j in range(10)], noise=3.0)
    groups = {NASTY[0]: ["f0", "f3"], "pair": ["f1", "f2"]}
    table = pd.DataFrame(X, columns=[NASTY[1], *(f"f{j}" for j in range(1, 10))])
    groups[NASTY[0]][0] = NASTY[1]
    asked = {"groups": groups, "rules": [bestk.rules.exclusive("f4", "pair")], "free": ["f9"]}
    return table, y, asked


def check_grouped(real, data):
    """What is embedded is the list: groups of models, and coefficients of their features."""
    structure, members = real.structure, data["members"]
    assert data["unit"] == "group"
    ends, last = np.cumsum(data["sizes"]), np.cumsum(members["sizes"])
    for i, model in enumerate(real.models):
        groups = data["features"][ends[i] - data["sizes"][i] : ends[i]]
        own = members["features"][last[i] - members["sizes"][i] : last[i]]
        names = [structure.group_names[g] for g in structure.groups_of(model.support)]
        assert [data["names"][g] for g in groups] == names
        assert tuple(members["names"][j] for j in own) == model.names
        assert {members["groups"][j] for j in own} == set(groups)
        values = data["values"][last[i] - members["sizes"][i] : last[i]]
        np.testing.assert_allclose(values, model.values, rtol=1e-7)
    assert [data["names"][f] for f in data["free"]] == ["f9"]


def test_a_page_with_groups(grouped):
    X, y, asked = grouped
    real = bestk.near_optimal(X, y, k=3, within=0.6, fit_intercept=True, **asked)
    assert len(real.models) > 3
    page = write_explorer(real, None, X[:2])
    data, text = embedded(page), words(page)
    check_grouped(real, data)
    np.testing.assert_allclose(data["lows"], np.concatenate(real.model_ranges())[:, 0], rtol=1e-6)
    assert data["hasRules"] is True
    assert "Near-optimal models with at most 3 of 8 groups" in text
    assert "no model with only a part of its groups is in the set" in text
    assert real.structure.words[0] in text
    assert "<script>window" not in page
    assert "<img" not in page


def test_a_page_with_constraints_has_no_ranges(grouped):
    X, y, asked = grouped
    more = {"constraints": ["f1 + f2 <= 0.5", "f9 = 0.1"], "exclude": ["f5"]}
    real = bestk.near_optimal(X, y, k=3, within=0.6, fit_intercept=True, **asked, **more)
    page = write_explorer(real, None, X[:3])
    data, text = embedded(page), words(page)
    check_grouped(real, data)
    assert data["lows"] is data["rangeLow"] is data["rows"]["low"] is None
    fitted = [m.intercept + X.to_numpy()[:3, m.support] @ m.values for m in real.models]
    np.testing.assert_allclose(data["rows"]["fitted"], np.ravel(fitted), rtol=1e-4)
    assert np.all(data["rows"]["allLow"] <= np.min(fitted, axis=0))
    assert "f1 + f2 &lt;= 0.5" in page
    assert "every model lacks 1 given group." in text
    assert "confidence intervals" not in text


def test_rules_without_groups_count_features(grouped):
    X, y, _ = grouped
    real = bestk.near_optimal(X, y, k=2, within=0.3, rules=[bestk.rules.exclusive("f4", "f5")])
    page = write_explorer(real, None)
    data = embedded(page)
    assert data["unit"] == "feature"
    assert data["members"] is None
    assert "at most 2 of 10 features" in words(page)
    assert "at most 1 of f4, f5" in words(page)
