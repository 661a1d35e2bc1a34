"""The code in README.md, in the pages of docs/ and in docstrings runs, and prints what they say.

``python`` blocks of a page are run, ``pycon`` blocks (``>>>``) are doctests. Blocks of a page
share one namespace and one empty folder. In docs/cli.md, lines of ``sh`` blocks that call bestk are
run, too, and an output right below a block is compared with what they print.
"""

import doctest
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
from helpers.pages import (
    blocks,
    lasting,
    output_below,
    run_block,
    run_doctest,
    run_shell,
)

import bestk

ROOT = Path(__file__).parents[2]
MODULES = [
    module.name
    for module in walk_packages(bestk.__path__, "bestk.")
    if module.name != "bestk.__main__"
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def units_at_once():
    """What is documented is what users see."""


# Clusters of several pages may run at a time, and leave it to the system to close what they opened.
@pytest.mark.filterwarnings("ignore:Port 8787 is already in use", "ignore::ResourceWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page, tmp_path, monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    try:
        for language, code, line in blocks(page):
            run_block(language, code, page, line, namespace)
            if language == "sh" and page.name in ("cli.md", "large_tables.md"):
                printed = run_shell(code)
                if expected := output_below(page, code):
                    assert lasting(printed) == expected
    finally:
        plt.close("all")


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for test in doctest.DocTestFinder().find(import_module(name)):
        run_doctest(test)
