"""The code in README.md, in the pages of docs/ and in docstrings runs, and prints what they say.

``python`` blocks of a page are run, ``pycon`` blocks (``>>>``) are doctests. Blocks of a page
share one namespace and one empty folder. In docs/cli.md, lines of ``sh`` blocks that call bestk are
run too.
"""

import doctest
import re
import shlex
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import bestk

ROOT = Path(__file__).parents[2]
MODULES = [
    module.name
    for module in walk_packages(bestk.__path__, "bestk.")
    if module.name != "bestk.__main__"
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(language, code, line) of each fenced block."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield match[1], match[2], text.count("\n", 0, match.start()) + 1


def run_python(code, page, line, namespace):
    # Blank lines in front make line numbers of a traceback those of the page.
    exec(compile("\n" * line + code, str(page), "exec"), namespace)


def run_doctest(test):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)


def run_shell(code):
    from typer.testing import CliRunner

    from bestk.cli.app import app

    for command in code.splitlines():
        program, *arguments = shlex.split(command, comments=True) or [""]
        if program == "bestk":
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, f"{command}\n{result.output}"


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
            if language == "python":
                run_python(code, page, line, namespace)
            elif language == "pycon":
                parser = doctest.DocTestParser()
                test = parser.get_doctest(code, namespace, page.name, str(page), line)
                run_doctest(test)
                namespace.update(test.globs)
            elif language == "sh" and page.name == "cli.md":
                run_shell(code)
    finally:
        plt.close("all")


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for test in doctest.DocTestFinder().find(import_module(name)):
        run_doctest(test)
