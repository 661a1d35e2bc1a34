"""Wrong values of options: what is wrong, and with which option, as it was typed."""

import numpy as np
import pandas as pd
import pytest
from helpers.command_line import run

from bestk.show.console import as_typed, of_table_as_typed


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
        (["--weight", "price"], ["--target price and --weight price are one column"]),
        (["--weight", "age"], ["--weight age has negative values"]),
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


def test_discover_says_which_file_and_which_trajectory(tmp_path):
    times = np.arange(100) * 0.01
    first = trajectory(tmp_path / "a.csv", times, "xy")
    other = tmp_path / "b.csv"
    pd.read_csv(first).rename(columns={"t": "time"}).to_csv(other, index=False)
    outcome = run("discover", first, other, "-q")
    assert f"bestk: {other}: --time: there is no column 't'; there are 'time'" in outcome.stderr
    short = trajectory(tmp_path / "c.csv", times[:1], "xy")
    outcome = run("discover", first, short, "-q")
    assert "bestk: trajectory 1 (counted from 0) has 1 row, 1 to fit" in outcome.stderr
    assert "bestk: the trajectory has 1 row" in run("discover", short, "-q").stderr


@pytest.mark.parametrize("command", ["path", "cv", "discover"])
def test_more_sizes_than_anybody_wants(command, tmp_path):
    file = tmp_path / "wide.npz"
    np.savez(file, X=np.zeros((1, 20_000)), y=np.ones(1), t=np.ones(1))
    outcome = run(command, file, "--max-k", 10**12, "-q")
    assert outcome.exit_code == 2
    assert "Invalid value for --max-k: 1000000000000 is too large" in words_of(outcome)


@pytest.mark.parametrize("option", ["--target", "--weight", "--drop"])
def test_columns_named_as_arguments_keep_their_names(option, tmp_path):
    table = pd.DataFrame(np.eye(3), columns=["sample_weight", "n_threads", "gap_tol"])
    table.assign(y=1.0).to_csv(tmp_path / "data.csv", index=False)
    outcome = run("fit", tmp_path / "data.csv", "-k", 1, option, "sample_weigth")
    assert "there is no column 'sample_weigth'; did you mean 'sample_weight'?" in outcome.stderr
    both = ("--include", "n_threads", "--exclude", "n_threads")
    outcome = run("fit", tmp_path / "data.csv", "-k", 1, *both)
    assert "feature 'n_threads' is in both --include and --exclude" in outcome.stderr


def test_names_in_quotes_are_not_translated():
    assert as_typed("n_threads: there is no 'n_threads'") == "--threads: there is no 'n_threads'"
    assert as_typed("'a' and 'n_folds', n_folds") == "'a' and 'n_folds', --folds"


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("leave it out with drop=['day']", "leave it out with --drop day"),
        ("take it as text with text=['a b']", "take it as text with --text 'a b'"),
        (f"drop=[{chr(34)}it's{chr(34)}]", "--drop 'it'\"'\"'s'"),
        ("drop=['sample_weight']", "--drop sample_weight"),
        ("with missing='drop'", "with --missing drop"),
        ("target='y' and weight='y' are", "--target y and --weight y are"),
        ("--rule: there is no column 'b'", "--rule: there is no column 'b'"),
        ("b/time.csv: time: there is no column 't'", "b/time.csv: --time: there is no column 't'"),
        (
            "sample_weight.csv has no column 'weight=1'",
            "sample_weight.csv has no column 'weight=1'",
        ),
    ],
)
def test_messages_about_tables_as_typed(text, typed):
    assert of_table_as_typed(text) == typed


def test_a_file_without_a_name_or_that_is_none():
    assert "the name of the file is empty; give one" in run("fit", "", "-k", 1).stderr
    assert "/dev/null is not a plain file" in run("fit", "/dev/null", "-k", 1).stderr


@pytest.mark.parametrize("option", ["--report", "--save", "--checkpoint"])
def test_no_permission_is_said_before_the_work(option, table, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    outcome = run("fit", table, "-k", 1, "-t", "price", option, tmp_path / "file")
    assert outcome.exit_code == 1
    assert f"bestk: {option}: you have no permission to write {tmp_path}/file" in outcome.stderr


def test_a_file_that_cannot_be_written_does_not_lose_the_others(table, tmp_path, monkeypatch):
    def full(*rest, **more):
        raise OSError(28, "No space left on device")

    report, run_file = tmp_path / "report.html", tmp_path / "run.npz"
    options = ("-k", 1, "-t", "price", "--report", report, "--save", run_file, "-q")
    monkeypatch.setattr("bestk.results.result.Result.to_html", full)
    outcome = run("fit", table, *options)
    assert outcome.exit_code == 1
    assert outcome.stderr.splitlines() == [
        f"run written to {run_file}",
        f"bestk: report not written to {report}: No space left on device",
    ]
    monkeypatch.undo()
    monkeypatch.setattr("bestk.results.storage.save", full)
    outcome = run("fit", table, *options)
    assert f"report written to {report}" in outcome.stderr
    assert f"bestk: run not written to {run_file}: No space" in outcome.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "bestk: there is too little memory; leave columns out"),
        (MemoryError("Unable to allocate 8 EiB"), "memory (Unable to allocate 8 EiB); leave"),
        (MemoryError("workers died; give them more"), "bestk: workers died; give them more"),
        (KeyboardInterrupt(), "bestk: interrupted before there was a result"),
    ],
)
def test_errors_of_python_have_words(table, monkeypatch, error, words):
    def failing(*rest, **more):
        raise error

    monkeypatch.setattr("bestk.problem.regression.Regression.from_batches", failing)
    assert words in run("fit", table, "-k", 1, "-t", "price", "-q").stderr


@pytest.mark.filterwarnings("default")
def test_warnings_are_plain_sentences(table, tmp_path, monkeypatch):
    def refused(*rest):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refused)
    path = tmp_path / "run.ckpt"
    outcome = run("fit", table, "-k", 1, "-t", "price", "--checkpoint", path, "-q")
    assert outcome.exit_code == 0
    assert outcome.stderr.startswith(f"bestk: no checkpoint was written to {path}: Permission den")
    assert outcome.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    def refused(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("os.scandir", refused)
    outcome = run("fit", tmp_path, "-k", 1)
    assert outcome.stderr == f"bestk: cannot open {tmp_path}: Permission denied\n"
