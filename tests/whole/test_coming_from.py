"""The pages for users of other programs: every block runs, and both sides find what is said there.

The first line of a block says whose it is: ``# bestk``, ``# abess``, or ``# abess and bestk`` where
the two are compared. Blocks that need a program which is not here are left out, and so are the
comparisons with it; all others run.
"""

import re
from pathlib import Path

import pytest
from helpers import peers
from helpers.pages import blocks, run_block, run_shell

FOLDER = Path(__file__).parents[2] / "docs" / "coming_from"
PAGES = sorted(FOLDER.glob("*.md"))
OF_PROGRAMS = [page for page in PAGES if page.stem != "index"]
WHOSE = re.compile(r"(?:>>> )?# ([\w-]+)( and bestk)?\n")


def whose(code):
    """(program, whether it is compared with bestk) of a block."""
    match = WHOSE.match(code)
    return (match[1], bool(match[2])) if match else ("bestk", False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    absent: dict[str, str] = {}
    for language, code, line in blocks(page):
        program, is_comparison = whose(code)
        if program in absent:
            continue
        if language == "sh":
            run_shell(code)
            continue
        if program == "bestk" or is_comparison:
            run_block(language, code, page, line, namespace)
            continue
        run = peers.run_r if language == "r" else peers.run_python
        reason = run(program, code, page, line, namespace)
        if reason:
            absent[program] = reason
    if absent:
        pytest.skip(f"all but: {'; '.join(absent.values())}")


@pytest.mark.parametrize("page", OF_PROGRAMS, ids=lambda page: page.stem)
def test_every_program_is_compared_with_bestk(page):
    found = [whose(code) for _, code, _ in blocks(page)]
    shown = {program for program, is_comparison in found if not is_comparison} - {"bestk"}
    assert shown
    assert shown == {program for program, is_comparison in found if is_comparison}


@pytest.mark.parametrize("page", OF_PROGRAMS, ids=lambda page: page.stem)
def test_columns_are_narrow_enough_to_stand_side_by_side(page):
    beside = re.findall(
        r"^:::{container} beside\n(.*?)^:::$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert beside
    assert [line for block in beside for line in block.splitlines() if len(line) > 50] == []
