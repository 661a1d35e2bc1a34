"""The explorer page in a real browser: what one clicks, types and sees."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.browser import chromium
from helpers.near_optimal_stub import find, many, proxies
from test_explorer import NASTY

import bestk
from bestk import Status
from bestk.show.explorer import write_explorer

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
STEPS = 1000


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser, tmp_path):
    """Opens the page of models, and fails where the browser complains or something is loaded."""
    complaints, contexts = [], []

    def visit(found, X=None, **options):
        path = tmp_path / "page.html"
        write_explorer(found, path, X)
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        address = path.as_uri()
        page.on("request", lambda r: r.url == address or complaints.append(r.url))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def found():
    names = [f"f{j}" for j in range(14)]
    X, y = proxies(names, noise=3.0)
    return find(X, y, names, k=4, within=0.12)


def left(found, step=STEPS, required=(), forbidden=()):
    """The models that the page has to show."""
    span = found.threshold - found.best.objective
    limit = found.best.objective + span * step / STEPS + 1e-9 * span
    return [
        model
        for model in found.models
        if (step == STEPS or model.objective <= limit)
        and set(required) <= set(model.names)
        and not set(forbidden) & set(model.names)
    ]


def slide(page, step):
    page.locator("#slider").fill(str(step))


def feature(page, name):
    return page.locator(".feature").filter(has=page.get_by_text(name, exact=True))


def group(page, key):
    return page.locator(f"#group-{key} .feature .name").all_inner_texts()


def test_the_slider_changes_counts_groups_and_list(visit, found):
    page = visit(found)
    for step in (STEPS, 800, 450, 120, 0):
        slide(page, step)
        inside = left(found, step)
        number = "1 model" if len(inside) == 1 else f"{len(inside)} models"
        assert page.locator("#count").inner_text().startswith(f"{number} within")
        counts = {name: sum(name in m.names for m in inside) for name in found.names}
        used = {name for model in found.models for name in model.names}
        every = {name for name in used if inside and counts[name] == len(inside)}
        assert set(group(page, "every")) == every
        assert set(group(page, "some")) == {n for n in used if 0 < counts[n] < len(inside)}
        assert set(group(page, "none")) == {n for n in used if counts[n] == 0}
        rows = page.locator("#list .row")
        assert rows.count() <= len(inside)
        if inside:
            assert rows.first.get_attribute("aria-setsize") == str(len(inside))


def test_a_click_requires_then_forbids_then_undoes(visit, found):
    page = visit(found)
    names = [name for model in found.models for name in model.names]
    name = next(n for n in sorted(set(names)) if 3 < names.count(n) < len(found.models) - 3)
    for choice in ({"required": [name]}, {"forbidden": [name]}, {}):
        feature(page, name).click()
        models = left(found, **choice)
        text = page.locator("#count").inner_text()
        if not choice:
            assert text.startswith(f"{len(models)} models within 12%")
            assert page.locator("#chips button").count() == 0
            continue
        assert text.startswith(f"{len(models)} of {len(found.models)} models left within 12%")
        worse = models[0].objective / found.best.objective - 1
        if worse > 1e-12:
            shown = float(text.partition("of them is ")[2].partition("%")[0])
            assert 100 * worse <= shown < 100 * worse + 0.011
        else:
            assert "as good as the best" in text


def test_choices_add_up_with_the_tolerance_and_are_cleared(visit, found):
    page = visit(found)
    first = next(m for m in found.models if m.size == found.models[0].size).names
    slide(page, 900)
    feature(page, first[0]).click()
    other = next(n for m in left(found, 900, first[:1]) for n in m.names if n not in first)
    feature(page, other).dblclick()
    models = left(found, 900, first[:1], [other])
    assert page.locator("#count").inner_text().startswith(f"{len(models)} of ")
    for name in found.names:
        button = feature(page, name)
        if button.count():
            number = sum(name in m.names for m in models)
            assert f"; in {number} of {len(models)} model" in button.get_attribute("aria-label")
    page.locator("#clear").click()
    assert page.locator("#count").inner_text().startswith(f"{len(left(found, 900))} models within")


def test_what_no_model_lacks_cannot_be_forbidden(visit, found):
    shared = set.intersection(*(set(m.names) for m in found.models[:2]))
    name = shared.pop()
    some = replace(found, models=tuple(m for m in found.models if name in m.names))
    page = visit(some)
    feature(page, name).dblclick()
    assert page.locator("#note").inner_text().startswith(f"Proven: no model without {name}")
    assert page.locator("#list").is_hidden()
    feature(page, name).click()
    assert page.locator("#list .row").count() > 0


def test_a_required_feature_may_be_added_to_smaller_models(visit):
    names = [f"f{j}" for j in range(8)]
    X, y = proxies(names, noise=3.0)
    found = find(X, y, names, k=4, within=0.3)
    small = [m for m in found.models if m.size < 4]
    assert small
    name = next(n for n in names if any(n in m.names for m in found.models))
    page = visit(found)
    feature(page, name).click()
    room = [m for m in found.models if name not in m.names and m.size < 4]
    assert f"{len(room)} more model" in page.locator("#note").inner_text()


def test_what_replaces_a_feature(visit):
    """Two features are copies but for noise, so models have one or the other."""
    rng = np.random.default_rng(0)
    cause, other = rng.standard_normal((2, 60))
    noise = rng.standard_normal((60, 5))
    X = np.c_[cause + 0.05 * noise[:, 0], cause + 0.05 * noise[:, 1], other, noise[:, 2:]]
    y = 3 * cause + 2 * other + noise[:, 4]
    found = find(X, y, ["a", "b", "c", "d", "e", "f"], k=3, within=0.1)
    page = visit(found)
    page.locator("#which").select_option(label="a")
    assert page.locator(".standins .name").first.inner_text() == "b"
    page.locator(".standins .name").first.click()
    assert page.locator("#which option:checked").inner_text() == "b"
    assert page.locator(".standins .name").first.inner_text() == "a"
    cell = page.locator('.matrix td[aria-label^="a and b:"]')
    assert "−" in cell.get_attribute("aria-label")
    cell.hover()
    assert "They tend to replace each other." in page.locator("#pair").inner_text()


def test_a_model_is_shown_as_an_equation_with_ranges(visit, found):
    page = visit(found, found.X[:3])
    page.locator("#list .row").nth(2).click()
    model = found.models[2]
    detail = page.locator("#detail")
    assert detail.locator("h3").inner_text() == "Model 3"
    variables = detail.locator(".equation var").all_inner_texts()
    assert variables == ["y", *model.names]
    limits = found.model_ranges()[2]
    for i, row in enumerate(detail.locator("tbody tr").all()):
        cells = row.locator("td").all_inner_texts()
        low, high = (float(part.replace("−", "-")) for part in cells[1].split(" to "))
        assert low <= limits[i, 0]
        assert high >= limits[i, 1]
        np.testing.assert_allclose([low, high], limits[i], rtol=2e-3)
    rows = page.locator(".predictions tbody tr")
    assert rows.count() == 3
    fitted = [float(r.locator("td").first.inner_text().replace("−", "-")) for r in rows.all()]
    np.testing.assert_allclose(fitted, found.predictions(found.X[:3])[2, :, 1], rtol=1e-3)


def test_a_number_is_told_from_a_name_that_begins_with_one(visit):
    names = ["1450 nm", "a", "b", "1940 nm", "c", "d"]
    X, y = proxies(names)
    page = visit(find(X, y, names, k=4, within=0.5))
    page.locator("#list .row").first.click()
    line = page.locator("#detail .equation").inner_text().replace("\xa0", " ")
    written = re.findall(r"\d( · | )(\w+)", line)
    assert {times for times, name in written if name in ("1450", "1940")} == {" · "}
    assert {times for times, name in written if name in "abcd"} == {" "}


def test_names_stay_text(visit):
    X, y = proxies(NASTY, noise=4.0)
    found = find(X, y, NASTY, k=3, within=0.25, copies=((1, 0),))
    table = pd.DataFrame(X[:3], index=NASTY[:3])
    page = visit(found, table)
    assert page.locator(".feature").count() > 5
    for button in page.locator(".feature").all()[:4]:
        button.click()
    page.locator("#clear").click()
    for number in range(len(found.models)):
        page.locator(f"#model-{number}").click()
    page.locator(".matrix td[tabindex]").nth(2).click()
    page.locator(".swap").first.click()
    page.locator(".predictions").wait_for()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    shown = page.locator("#features").text_content() + page.locator("#copies").text_content()
    assert NASTY[0] in shown
    assert NASTY[1] in shown


def test_the_keyboard_is_enough(visit, found):
    page = visit(found)
    page.locator("#slider").focus()
    page.keyboard.press("Home")
    assert page.locator("#limit").inner_text() == "0%"
    page.keyboard.press("End")
    assert page.locator("#limit").inner_text() == "12%"
    page.keyboard.press("Tab")
    first = page.locator(".feature").first
    assert page.evaluate("document.activeElement.className").startswith("feature")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key, sign in (("Enter", "✓"), ("Space", "✕"), ("Enter", "○")):
        page.keyboard.press(key)
        assert first.locator(".sign").inner_text() == sign
        assert page.evaluate("document.activeElement.className").startswith("feature")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # what replaces it?
    assert page.evaluate("document.activeElement.id") == "which"
    page.locator('.matrix td[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.at") == "1 1"
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    chosen = page.locator("#which option:checked").inner_text()
    assert page.locator(".matrix th[scope=row]").nth(1).inner_text() == f"2 {chosen}"
    page.locator("#list").focus()
    for key, number in (("ArrowDown", 2), ("End", len(found.models)), ("ArrowUp", -1), ("Home", 1)):
        page.keyboard.press(key)
        number = len(found.models) - 1 if number < 0 else number
        assert page.locator("#detail h3").inner_text() == f"Model {number}"
        active = page.locator("#list").get_attribute("aria-activedescendant")
        assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_down_only(visit, scheme):
    names = [f"a rather long name of a feature without {j} end" for j in range(12)]
    names[3] = "x" * 150
    X, y = proxies(names, noise=4.0)
    found = find(X, y, names, k=3, within=0.15)
    page = visit(found, X[:4], viewport={"width": 360, "height": 740}, color_scheme=scheme)
    feature(page, found.models[0].names[0]).click()
    slide(page, 900)
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        page.locator("#list").focus()
        page.keyboard.press("End")


def test_a_long_list_keeps_few_rows_in_the_document(visit, record_property):
    found = many()
    page = visit(found, found.X[:20])
    elements = page.evaluate("document.querySelectorAll('*').length")
    assert elements < 3000
    for step in (700, 300, STEPS):
        took = page.evaluate(
            """step => {
                const slider = document.getElementById("slider");
                slider.value = step;
                const start = performance.now();
                slider.dispatchEvent(new Event("input"));
                return performance.now() - start;
            }""",
            step,
        )
        record_property(f"milliseconds of a move to {step}", took)
        text = page.locator("#count").inner_text()
        assert text.startswith(f"{len(left(found, step)):,} models within")
        assert page.locator("#list .row").count() < 40
    page.locator("#list").focus()
    page.keyboard.press("End")
    assert page.locator("#detail h3").inner_text() == "Model 10000"
    assert page.locator("#model-9999").is_visible()
    page.locator("#list").evaluate("list => { list.scrollTop = 200000; }")
    page.locator("#model-5003").wait_for()
    assert page.locator("#list .row").count() < 40


def test_an_incomplete_list_says_so_beside_the_slider(visit, found):
    below = 1.05 * found.best.objective
    last = replace(found.models[-1], is_borderline=True)
    stopped = replace(
        found,
        models=(*found.models[:-1], last),
        complete=False,
        complete_below=below,
        status=Status.TIME_LIMIT,
        copies=((3, 0),),
    )
    page = visit(stopped)
    assert "Beyond 5% models may be missing." in page.locator("#caveat").inner_text()
    slide(page, 200)
    assert "may be missing" not in page.locator("#caveat").inner_text()
    slide(page, STEPS)
    assert "Proven" not in page.locator("#features").inner_text()
    assert "f3 for f0" in page.locator("#copies").inner_text()
    page.locator("#list").focus()
    page.keyboard.press("End")
    assert "equals the threshold up to rounding" in page.locator("#detail").inner_text()
    assert "≈" in page.locator("#list .row").last.inner_text()


@pytest.mark.parametrize("case", ["nothing", "no features", "one model", "no tolerance"])
def test_small_lists(visit, found, case):
    none = replace(found.models[0], support=np.zeros(0, dtype=int), names=(), values=np.zeros(0))
    page = visit(
        {
            "nothing": replace(found, models=(), complete=False, complete_below=-np.inf),
            "no features": replace(found, models=(none,)),
            "one model": replace(found, models=found.models[:1]),
            "no tolerance": replace(
                found, models=found.models[:1], threshold=found.best.objective, within=0.0
            ),
        }[case]
    )
    number = 0 if case == "nothing" else 1
    assert page.locator("#list .row").count() == number
    text = page.locator("#count").inner_text()
    assert text.startswith("0 models" if case == "nothing" else "1 model ")
    if case == "no features":
        assert "no features" in page.locator("#detail").inner_text()


def test_on_paper_the_first_models_are_listed(visit):
    page = visit(many(300))
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#list .row").count() == 40
    assert page.get_by_text("The first 40 of 300 models.").is_visible()
    assert page.locator("#slider").is_hidden()
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    # wait_for_function would evaluate a string, which the page's security policy forbids.
    playwright.expect(page.locator("#list .row").nth(39)).to_have_count(0)


# Groups, rules and constraints --------------------------------------------------------------------


def listed(constraints, **options):
    """A list of models with groups of nasty names; f9 is not counted."""
    X, y = proxies([f"f{j}" for j in range(10)], noise=3.0)
    table = pd.DataFrame(X, columns=[NASTY[1], *(f"f{j}" for j in range(1, 10))])
    groups = {NASTY[0]: [NASTY[1], "f3"], "pair": ["f1", "f2"]}
    asked = {"groups": groups, "rules": [bestk.rules.exclusive("f4", "pair")], "free": ["f9"]}
    more = {"constraints": constraints} if constraints else {}
    return table, bestk.near_optimal(
        table, y, k=3, within=0.6, fit_intercept=True, **asked, **more, **options
    )


@pytest.mark.parametrize("constraints", [(), ["f1 + f2 <= 0.5", "f9 = 0.1"]])
@pytest.mark.parametrize("width", [360, 1100])
def test_groups_are_chosen_as_a_whole(visit, constraints, width):
    X, real = listed(constraints)
    scheme = "dark" if width == 360 else "light"
    page = visit(real, X[:3], viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.hacked") is None
    structure = real.structure
    held = [{structure.group_names[g] for g in structure.groups_of(m.support)} for m in real]
    every = set.intersection(*held)
    assert set(group(page, "every")) == every
    assert set(group(page, "some")) == set.union(*held) - every
    assert "not counted" in feature(page, "f9").inner_text()
    rows = page.locator("#list .row .names")
    assert set(rows.first.inner_text().split(", ")) == held[0]
    assert page.locator("#list .row").first.locator("span").nth(2).inner_text() == str(len(held[0]))

    name = next(n for n in ("pair", NASTY[0]) if n in set.union(*held) - every)
    feature(page, name).click()
    count = sum(name in own for own in held)
    assert page.locator("#count").inner_text().startswith(f"{count} of {len(real)} models left")
    best = next(model for model, own in zip(real, held, strict=True) if name in own)
    body = page.locator("#detail .terms tbody")
    assert body.locator("th[scope=row]").count() == best.size
    assert body.locator("tr.head").get_by_text(name, exact=True).count() == 1
    assert set(body.locator("th[scope=row]").all_inner_texts()) == set(best.names)
    assert page.locator("#detail .range").count() == (0 if constraints else best.size)
    assert page.locator(".predictions tbody tr").count() == 3


def test_room_for_more_depends_on_the_rules(visit):
    _, real = listed(())
    page = visit(replace(real, k=real.k + 1))
    name = group(page, "some")[0]
    lacking = sum(name not in own for own in page.locator("#list .names").all_inner_texts())
    assert lacking > 0
    feature(page, name).click()
    note = page.locator("#note").inner_text()
    assert "room for what is required: where the rules allow to add it" in note
    assert note.startswith(f"{lacking} more model")


def test_free_groups_take_no_room(visit):
    _, real = listed(())
    assert {len(real.structure.groups_of(m.support)) for m in real} == {2}  # f9 and another one
    for k, has_room in ((1, False), (2, True)):
        page = visit(replace(real, k=k))
        feature(page, group(page, "some")[0]).click()
        assert ("room for what is required" in page.locator("#note").inner_text()) == has_room


def test_powers_are_raised_and_found_as_they_are_typed(visit):
    names = ["a^2", "b**2", "x^3 y", "d^2.5", "e^12", *(f"f{j}" for j in range(5, 30))]
    X, y = proxies(names, noise=3.0)
    page = visit(find(X, y, names, k=2, within=0.9, copies=((4, 0),)))
    shown = {name for key in ("every", "some", "none") for name in group(page, key)}
    assert {"a²", "b²", "x³ y", "d^2.5", "e¹²"} <= shown
    assert "e¹² for a²" in page.locator("#copies").inner_text()
    for typed in ("a^2", "a²"):
        page.locator("#search").fill(typed)
        assert group(page, "some") == ["a²"]
