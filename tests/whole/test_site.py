"""Documentation of several versions side by side: the program that arranges it, and its pages."""

import json
import runpy
import shutil
from pathlib import Path

import pytest
from helpers.browser import chromium
from jinja2 import Template

ROOT = Path(__file__).parents[2]
arrange = runpy.run_path(str(ROOT / ".ci" / "arrange_site.py"))["arrange"]
PAGES = ("index.html", "cli.html", "auto_examples/pde.html")


def build(folder, version, pages=PAGES):
    """A folder like those that Sphinx makes, with the list of versions of the real pages."""
    shutil.rmtree(folder, ignore_errors=True)
    menu = Template((ROOT / "docs" / "_templates" / "versions.html").read_text("utf-8"))
    for name in pages:
        up = "../" * name.count("/")
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        shown = menu.render(release=version, pathto=lambda to, resource, up=up: up + to)
        page.write_text(
            f'<!doctype html><html lang="en" data-content_root="{up or "./"}">'
            f'<meta charset="utf-8"><nav>{shown}</nav><article><h1>{name}</h1></article>',
            "utf-8",
        )
    for name in ("_modules/bestk.html", "_static/versions.js", ".buildinfo"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    shutil.copy(ROOT / "docs" / "_static" / "versions.js", folder / "_static")
    (folder / "objects.inv").write_bytes(
        b"# Sphinx inventory version 2\n# Project: bestk\n# Version: %s\nzlib" % version.encode()
    )
    return folder


def listed(site):
    text = (site / "versions.js").read_text("utf-8")
    return json.loads(text.removeprefix("window.bestkVersions = ").removesuffix(";\n"))


@pytest.fixture
def site(tmp_path):
    return tmp_path / "the site"


def put(site, version, pages=PAGES):
    arrange(build(site.parent / "built", version, pages), site)


def test_versions_stay_beside_each_other_and_the_newest_comes_first(site):
    for version in ("0.9.0", "0.10.1", "0.2.3", "1.0rc1"):
        put(site, version)
    found = listed(site)
    assert [v["version"] for v in found["versions"]] == ["1.0rc1", "0.10.1", "0.9.0", "0.2.3"]
    assert [v["folder"] for v in found["versions"]] == ["dev", "0.10", "0.9", "0.2"]
    assert found["newest"] == "0.10"
    assert found["versions"][0]["pages"] == sorted(PAGES)
    for version in found["versions"]:
        assert (site / version["folder"] / "cli.html").exists()
    assert "url=0.10/index.html" in (site / "index.html").read_text("utf-8")


def test_a_repair_replaces_its_version(site):
    put(site, "0.1.0", [*PAGES, "gone.html"])
    put(site, "0.1.1")
    assert [v["version"] for v in listed(site)["versions"]] == ["0.1.1"]
    assert not (site / "0.1" / "gone.html").exists()
    assert not (site / "0.1" / ".buildinfo").exists()


def test_a_version_in_development_is_never_the_newest(site):
    put(site, "0.2.0.dev0")
    assert listed(site)["newest"] is None
    assert "url=dev/index.html" in (site / "index.html").read_text("utf-8")
    put(site, "0.1.0")
    assert listed(site)["newest"] == "0.1"
    put(site, "0.3.0.dev0")
    assert [v["version"] for v in listed(site)["versions"]] == ["0.3.0.dev0", "0.1.0"]
    assert "url=0.1/index.html" in (site / "index.html").read_text("utf-8")


def test_a_version_that_is_taken_away_is_not_listed(site):
    for version in ("0.1.0", "0.2.0"):
        put(site, version)
    shutil.rmtree(site / "0.2")
    put(site, "0.1.1")
    assert [v["version"] for v in listed(site)["versions"]] == ["0.1.1"]


def test_what_is_not_ours_is_left_alone(site):
    put(site, "0.1.0")
    (site / "CNAME").write_text("example.org")
    (site / "notes" / "0.5").mkdir(parents=True)
    put(site, "0.1.0")
    assert (site / "CNAME").exists()
    assert (site / "notes" / "0.5").exists()

    with pytest.raises(SystemExit, match="no documentation of bestk: run `make docs` first"):
        arrange(site.parent, site)
    shutil.rmtree(site / "0.1" / "_static")
    (site / "0.1" / "objects.inv").unlink()
    with pytest.raises(SystemExit, match="would be replaced: move it away"):
        put(site, "0.1.0")
    (site / "versions.js").unlink()
    with pytest.raises(SystemExit, match="choose another folder"):
        put(site, "0.3.0")
    assert not (site / "0.3").exists()


# In a browser -------------------------------------------------------------------------------------


@pytest.fixture
def page():
    complaints = []
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    assert complaints == []


def test_a_reader_switches_with_the_keyboard(site, page):
    put(site, "0.1.0", ("index.html", "cli.html"))
    put(site, "0.2.0")
    put(site, "0.3.0.dev0")
    page.goto((site / "index.html").as_uri())
    page.wait_for_url("**/0.2/index.html")
    page.goto((site / "0.2" / "auto_examples" / "pde.html").as_uri())
    menu = page.locator(".versions")
    assert menu.locator("summary").inner_text() == "Version 0.2.0"
    assert page.locator("aside").count() == 0
    assert not menu.get_by_role("link").first.is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    names = ["0.3.0.dev0 (in development)", "0.2.0 (newest)", "0.1.0"]
    assert menu.get_by_role("link").all_inner_texts() == names
    assert menu.locator("[aria-current]").inner_text() == names[1]

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the same page of another version
    page.wait_for_url("**/dev/auto_examples/pde.html")
    note = page.locator("article > aside").inner_text()
    assert "Not released yet" in note
    assert "about bestk 0.3.0.dev0. The newest release is 0.2.0." in note

    page.locator("summary").click()
    page.get_by_role("link", name="0.1.0").click()  # has no such page
    page.wait_for_url("**/0.1/index.html")
    assert "An older version" in page.locator("article > aside").inner_text()
    page.locator("article > aside a").click()
    page.wait_for_url("**/0.2/index.html")


def test_without_other_versions_nothing_is_shown(site, page):
    alone = build(site, "0.1.0")
    page.goto((alone / "cli.html").as_uri())
    assert page.locator(".versions").count() == 1
    assert not page.locator(".versions").is_visible()
    put(site.parent / "list", "0.2.0")  # a copy under a name that is not in the list
    shutil.copytree(site.parent / "list" / "0.2", site.parent / "list" / "copy")
    page.goto((site.parent / "list" / "copy" / "cli.html").as_uri())
    assert not page.locator(".versions").is_visible()


def test_only_a_version_in_development_has_no_note(site, page):
    put(site, "0.1.0.dev0")
    page.goto((site / "dev" / "cli.html").as_uri())
    assert page.locator(".versions summary").is_visible()
    assert page.locator("aside").count() == 0
