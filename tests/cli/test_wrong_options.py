"""Wrong values of options: what is wrong, and with which option, as it was typed."""

import numpy as np
import pandas as pd
import pytest
from helpers.command_line import run

from bestk.show.console import as_typed


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("options")
    X = np.random.default_rng(0).standard_normal((60, 4))
    frame = pd.DataFrame(X, columns=["age", "sex", "bmi", "height"])
    frame["price"] = X @ [1, 0, 2, 0] + 0.1 * np.random.default_rng(1).standard_normal(60)
    frame.to_csv(folder / "data.csv", index=False)
    return folder / "data.csv"


def words_of(outcome):
    """What went to standard error, without the frame that is drawn around wrong usage."""
    return " ".join(outcome.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-k", "99999999999999999999"], ["k must be at most"]),
        (["--alpha", "inf"], ["--alpha must be a finite number"]),
        (["--lower", "1"], ["--lower must be at most 0, got 1"]),
        (["--lower", "nan"], ["--lower must be at most 0, got nan"]),
        (["--upper", "-2"], ["--upper must be at least 0, got -2"]),
        (["--gap-tol", "inf"], ["--gap-tol must be a finite number"]),
        (["--gap-tol", "5"], ["--gap-tol must be less than 1, got 5.0; 0.01 stands for 1%"]),
        (["--device", "gpu"], ['--device must be "cpu", "cuda"', "got 'gpu'"]),
        (["--include", "age,sex,bmi"], ["--include names 3 features", "raise k"]),
        (["--include", "age", "--exclude", "age"], ["both --include and --exclude"]),
        (["--include", "AGE"], ["--include", "did you mean 'age'?"]),
        (["--weight", ""], ["--weight: there is no column ''"]),
        (["--weight", "price"], ["--target and --weight both name 'price'"]),
        (["--weight", "age"], ["--weight: column 'age' has negative values"]),
        (["--group", "age=sex,bmi"], ["--group: there is a group 'age'", "rename"]),
        (["--group", "g=age,sex", "--auto-bounds"], ["--auto-bounds cannot", "--lower"]),
        (["--group", "g=age,sex", "--device", "cuda"], ["--device cannot", "leave --device out"]),
        (["--rule", "at least 5 of age, sex"], ["--rule: at least 5", "ask for fewer"]),
        (["--rule", f"at most {10**30} of age"], ["--rule: at_most: m must be at most"]),
        (["--rule", "exclusive age"], ["--rule: exclusive: 'age' alone"]),
        (["--hierarchy", "strong"], ["--hierarchy: no feature", "--rule 'ab needs a, b'"]),
        (["--constraint", "0 age = 1"], ["--constraint, '0 age = 1'", "leave it out"]),
        (["--constraint", "age = 1", "--constraint", "age = 2"], ["and --constraint, 'age = 2'"]),
        (["--rule", "not both age, sex", "--include", "age,sex"], ["--include age, sex"]),
        (["--report", "/tmp"], ["--report: '/tmp' is a folder; give the name of a file"]),
        (["--save", ""], ["--save", "is a folder"]),
        (["--checkpoint", "/no/such/file"], ["--checkpoint: cannot write", "no folder /no/such"]),
    ],
)  # fmt: skip
def test_bad_input_names_the_option(table, options, words):
    k = [] if "-k" in options else ["-k", "2"]
    outcome = run("fit", table, "-t", "price", *k, *options, "-q")
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("bestk: ")
    for word in words:
        assert word in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["path", "--ks", "3-"], "Invalid value for --ks: '3-' is not a list of sizes"),
        (["path", "--ks", "1-99999999999"], "for --ks: '1-99999999999' is not a list"),
        (["cv", "--alphas", "a"], "Invalid value for --alphas: 'a' is not a list of penalties"),
        (["cv", "--rule", "one_se"], "for --rule: 'one_se' is not a rule, and not min or one-se"),
        (["fit", "-k", "2", "--group", "g"], "Invalid value for --group: 'g' is not like"),
        (["alternatives", "-k", "2", "--within", ""], "Invalid value for --within: ''"),
    ],
)
def test_wrong_usage_names_the_option(table, arguments, words):
    outcome = run(arguments[0], table, "-t", "price", *arguments[1:], "-q")
    assert outcome.exit_code == 2
    assert words in words_of(outcome)


def test_files_that_are_no_files(table, tmp_path):
    outcome = run("verify", tmp_path / "nothing.npz", table, "-t", "price")
    assert outcome.stderr == f"bestk: there is no file {tmp_path / 'nothing.npz'}\n"
    outcome = run("verify", tmp_path, table, "-t", "price")
    assert outcome.stderr.startswith(f"bestk: cannot open {tmp_path}: ")
    np.savez(tmp_path / "other.npz", X=np.eye(2))
    outcome = run("verify", tmp_path / "other.npz", table, "-t", "price")
    assert f"{tmp_path / 'other.npz'}: this file holds no certificate" in outcome.stderr
    assert outcome.exit_code == 1


def test_too_few_rows_for_the_folds(table):
    outcome = run("cv", table, "-t", "price", "--folds", 100, "-q")
    assert "there are too few rows for --folds = 100; lower --folds" in outcome.stderr


def trajectory(path, times, names):
    pd.DataFrame({"t": times} | {name: np.sin(times + i) for i, name in enumerate(names)}).to_csv(
        path, index=False
    )
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--validation", "0"], "--validation must be between 0 and 1"),
        (["--validation", "0.001"], "or another share for --validation\n"),
        (["--plot", "found.xyz"], "--plot: there are no pictures in the format .xyz"),
        (["--drop", "x,y"], "no columns besides 't' that could be states"),
    ],
)
def test_discover_names_the_option(tmp_path, options, words):
    file = trajectory(tmp_path / "a.csv", np.arange(100) * 0.01, "xy")
    outcome = run("discover", file, *options, "--max-k", 1, "-q")
    assert outcome.exit_code == 1
    assert words in outcome.stderr


def test_discover_names_the_file(tmp_path):
    first = trajectory(tmp_path / "a.csv", np.arange(100) * 0.01, "xy")
    other = trajectory(tmp_path / "b.csv", np.arange(100) * 0.01, "xz")
    outcome = run("discover", first, other, "-q")
    assert f"{other} has the states x, z, but {first} has x, y" in outcome.stderr
    back = trajectory(tmp_path / "c.csv", np.arange(100)[::-1] * 0.01, "xy")
    outcome = run("discover", back, "-q")
    assert f"{back}: times (--time t) must increase, but 0.98 in row 2" in outcome.stderr


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Raise time_limit or loosen gap_tol.", "Raise --time-limit or loosen --gap-tol."),
        ("raise max_bytes= or the environment variable A", "raise the environment variable A"),
        ("leave out exact=True (--exact)", "leave out --exact"),
        ("device='cuda:1' failed", "--device cuda:1 failed"),
        ("loosen them, exclude less, or raise k", "loosen them, exclude less, or raise k"),
    ],
)
def test_other_messages_as_typed(text, typed):
    assert as_typed(text) == typed
