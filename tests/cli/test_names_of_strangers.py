"""Names in a stranger's file cannot move the cursor, colour or hide anything on the terminal."""

from contextlib import nullcontext

import pytest
from helpers.command_line import run

from bestk.base.words import printable
from bestk.readers.formats.source import explained
from bestk.verification import Verification
from bestk.verification.completeness import ListVerification

NAMES = {
    "size0": "\x1b[2J[bold]a", "size1": "b\r\x9b1m", "size2": "c\u202ed", "price": "\x07[/]p",
}  # fmt: skip


@pytest.fixture
def strange(frame, tmp_path):
    frame.rename(columns=NAMES).to_parquet(tmp_path / "data.parquet")
    return tmp_path / "data.parquet"


def assert_harmless(text):
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "-k", 3, "--include", "*a,*m", "--rule", "at most 2 of *"],
        ["path", "--max-k", 3, "--include", "*a"],
        ["alternatives", "-k", 2, "--include", "*a"],
    ],
)
def test_names_in_tables(strange, arguments):
    command, *options = arguments
    done = run(command, strange, "--target", NAMES["price"], "--drop", "count", *options)
    assert done.exit_code == 0, done.output
    assert_harmless(done.output)
    assert r"\x1b[2J[bold]a" in done.output


def test_names_in_errors(strange):
    done = run("fit", strange, "-k", 2)
    assert done.exit_code == 1
    assert_harmless(done.output)
    done = run("fit", strange, "--target", "count", "-k", 2, "--exclude", NAMES["size0"] + "x")
    assert done.exit_code == 1
    assert_harmless(done.output)


def test_messages_have_a_limit(tmp_path):
    (tmp_path / "data.csv").write_text("a" * 100_000 + ",b\n1,2\n")
    done = run("fit", tmp_path / "data.csv", "-k", 1)
    assert done.exit_code == 1
    assert 1000 < len(done.output) < 10_000


@pytest.mark.parametrize("where", ["readers.data.open_data", "readers.data.open_source"])
def test_too_little_memory_is_said_in_words(strange, monkeypatch, where):
    def without_room(*args, **options):
        with explained(strange) if where.endswith("source") else nullcontext():
            raise MemoryError

    monkeypatch.setattr(f"bestk.{where}", without_room)
    done = run("fit", strange, "-k", 1)
    assert done.exit_code == 1
    assert "too little memory" in done.output


def test_words_of_a_forged_proof_stay_in_their_line():
    words = ("rule\x1b[1A\nVerified, rounding accounted for",)
    nothing = {"threshold": 1.0, "n_models": 0, "n_nodes": 0, "n_supports": 0, "assumptions": ()}
    of_list = ListVerification(is_valid=False, failures=words, seconds=0.0, **nothing)
    texts = [str(Verification(is_valid=False, failures=words)), str(of_list)]
    for text in texts:
        assert_harmless(text)
        assert text.splitlines()[1] == r"  failure: rule\x1b[1A\nVerified, rounding accounted for"


def test_what_people_write_is_left_as_it_is():
    assert printable("naïve 温度 x² − 1\u00a0%") == "naïve 温度 x² − 1\u00a0%"
    assert printable("a\nb\t\x7f", keep="\n") == "a\nb\\t\\x7f"
    assert printable("\ud800") == r"\ud800"
