"""Exit codes and messages: limits, bad input, wrong usage, Ctrl-C."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from time import perf_counter, sleep

import pytest
import typer
from helpers.command_line import run, run_json

import bestk
from bestk.cli.outcome import INTERRUPTED, helpful


def test_a_limit_leaves_a_gap_and_code_3(hard):
    document = run_json("fit", hard, "-k", 10, "--node-limit", 20, code=3)
    assert document["proven"] is False
    assert document["status"] == "node limit"
    assert 0 < document["lower_bound"] < document["objective"]
    outcome = run("fit", hard, "-k", 10, "--node-limit", 20)
    assert outcome.exit_code == 3
    assert "Not proven (node limit)" in outcome.stdout
    assert run("path", hard, "--ks", "1,10", "--node-limit", 20).exit_code == 3
    assert run("cv", hard, "--ks", "10", "--node-limit", 5, "--folds", 2).exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "2"], "--target: there is no column 'y'"),
        (["-k", "2", "-t", "prise"], "no column 'prise'; did you mean 'price'"),
        (["-k", "2", "-t", "price", "--include", "size9"], "--include: there is no column 'size9'"),
        (["-k", "2", "-t", "price", "--exclude", "price"], "--exclude: there is no column 'price'"),
        (["-k", "2", "-t", "price", "--drop", "cuont"], "--drop: .* did you mean 'count'"),
        (["-k", "2", "-t", "price", "--weight", "wieght"], "--weight: there is no column"),
        (["-k", "1", "-t", "price", "--include", "size1,size2"], "raise k"),
        (["-k", "2", "-t", "price", "--lower", "1"], "--lower must be at most 0, got 1"),
        (["-k", "2", "-t", "price", "--report", "/no/such/folder/a.html"], "there is no folder"),
    ],
)
def test_bad_input_is_code_1_and_a_message(file, arguments, message):
    outcome = run("fit", file, *arguments, "--json")
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert re.match(f"bestk: .*{message}", outcome.stderr)
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["fit", "-k", "2"], ["path"], ["cv"], ["discover"]])
def test_a_file_that_is_not_there(command):
    outcome = run(command[0], "nothing.csv", *command[1:])
    assert outcome.exit_code == 1
    assert outcome.stderr == "bestk: there is no file nothing.csv\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "FILE", "-t", "price"],
        ["fit", "FILE", "-t", "price", "-k", "two"],
        ["fit", "FILE", "-t", "price", "-k", "2", "--nonnegative", "--lower", "-1"],
        ["fit", "FILE", "-t", "price", "-k", "2", "--no-such-option"],
        ["path", "FILE", "-t", "price", "--ks", "3-"],
        ["path", "FILE", "-t", "price", "--ks", "5-2"],
        ["path", "FILE", "-t", "price", "--criterion", "cp"],
        ["cv", "FILE", "-t", "price", "--alphas", "0,-1"],
        ["cv", "FILE", "-t", "price", "--folds", "1"],
        ["discover"],
        ["discover", "FILE", "--degree", "0"],
        ["discover", "FILE", "--alphas", "a"],
        ["nothing"],
    ],
)
def test_wrong_usage_is_code_2(file, arguments):
    outcome = run(*(file if word == "FILE" else word for word in arguments))
    assert outcome.exit_code == 2
    assert "Usage:" in outcome.stderr


def test_help_and_version():
    assert run("--version").stdout == f"bestk {bestk.__version__}\n"
    text = run("--help").stdout
    for word in (
        "fit",
        "path",
        "cv",
        "discover",
        "demo",
        "Exit codes",
        "130",
        "--install-completion",
    ):
        assert word in text


def test_as_a_program_json_is_all_there_is_on_standard_output(file):
    program = [sys.executable, "-m", "bestk", "fit", file, "-t", "price", "-k", "2", "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["proven"] is True
    assert done.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_still_gives_the_best_model(hard, tmp_path):
    watched = (
        "import sys; from bestk.search import tree; from bestk.cli import app\n"
        "report = tree.Tree._report\n"
        "def told(self):\n"
        "    report(self)\n"
        "    if self.space.n_nodes: sys.stderr.write('searching\\n'); sys.stderr.flush()\n"
        "tree.Tree._report = told\n"
        "app()"
    )
    program = [sys.executable, "-c", watched, "fit", hard, "-k", "10", "--json"]
    with open(tmp_path / "messages", "w") as messages:
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=messages, text=True)
        start = perf_counter()
        while "searching" not in (tmp_path / "messages").read_text():
            assert perf_counter() - start < 90  # loops may have to be compiled
            sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=90)
    assert process.returncode == 130
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert len(document["support"]) == 10


def press_twice():
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
        pytest.fail("nobody heard")
    signal.raise_signal(signal.SIGINT)
    typer.echo("result")
    return 0


def test_who_presses_ctrl_c_twice_still_gets_the_result(monkeypatch, capsys):
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(typer.Exit) as ended:
        helpful(press_twice)()
    assert ended.value.exit_code == 0
    assert capsys.readouterr().out == "result\n"
    monkeypatch.setattr("bestk.cli.outcome._ONE_PRESS", 0.0)  # or who presses it again later
    with pytest.raises(typer.Exit) as ended:
        helpful(press_twice)()
    assert ended.value.exit_code == INTERRUPTED
    assert capsys.readouterr().out == ""
    assert signal.getsignal(signal.SIGINT) is handler
