"""Folders, patterns and remote paths on the command line."""

import pytest
from helpers.command_line import fit, run, run_json, same_model, solve


@pytest.mark.parametrize("path", ["parquet/*.parquet", "parquet", "csv", "csv/part-?.csv"])
def test_a_model_of_many_files_is_that_of_one(folders, file, frame, tmp_path, path):
    run_file = tmp_path / "run.npz"
    same_model(fit(folders / path, "-k", 3, "--save", run_file), solve(frame))
    for data in (folders / path, file):
        options = ["-t", "price", "--drop", "count"]
        assert run_json("verify", run_file, data, *options)["is_valid"] is True
    document = run_json("verify", run_file, folders / "csv/part-[01].csv", *options, code=4)
    assert "not those of the certificate" in document["failures"][0]


def test_a_proof_of_one_file_holds_for_its_pieces(folders, file, tmp_path):
    fit(file, "-k", 2, "--save", tmp_path / "run.npz")
    outcome = run("verify", tmp_path / "run.npz", folders / "csv", "-t", "price", "--drop", "count")
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("Verified")


@pytest.mark.parametrize("command", [["path", "--max-k", "2"], ["cv", "--max-k", "2"]])
def test_what_people_read(folders, monkeypatch, command):
    monkeypatch.chdir(folders)
    options = ["-t", "price", "--drop", "count"]
    outcome = run(command[0], "parquet/*.parquet", *command[1:], *options)
    assert outcome.exit_code == 0, outcome.output
    assert "parquet/*.parquet (3 files): 80 rows, 8 features" in outcome.stdout


def test_remote_paths_stay_as_they_are(folders, file):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.put(str(folders / "csv"), "/tables", recursive=True)
    try:
        document = fit("memory://tables/*.csv", "-k", 3)
    finally:
        memory.rm("/tables", recursive=True)
    assert document["n_samples"] == 80
    assert document["support"] == fit(file, "-k", 3)["support"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("*.csv", "no file matches *.csv"),
        ("nowhere://data/a.csv", "cannot read nowhere://data/a.csv: Protocol not known: nowhere"),
        (".", ". has files of several formats, .csv, .parquet; "
              "choose those of one with a pattern such as './**/*.csv'"),
    ],
)  # fmt: skip
def test_wrong_paths_are_code_1_and_a_message(folders, monkeypatch, path, message):
    monkeypatch.chdir(folders)
    outcome = run("fit", path, "-k", 2)
    assert outcome.exit_code == 1
    assert outcome.stderr == f"bestk: {message}\n"


def test_trajectories_are_single_files(folders):
    outcome = run("discover", folders / "csv", "--time", "count")
    assert outcome.exit_code == 1
    assert "(3 files) is not one trajectory; give the file of each trajectory" in outcome.stderr


def test_help_says_what_a_file_may_be():
    text = " ".join(run("fit", "--help").stdout.replace("│", " ").split())
    assert "a file, a folder or a pattern" in text
    assert "s3://bucket/data" in run("--help").stdout


@pytest.fixture
def holed(frame, tmp_path):
    """Three files, and what is left of the frame without rows that lack a value."""
    spoilt = frame.copy()
    spoilt.loc[[4, 50], "price"] = None
    spoilt.loc[[5, 50], frame.columns[0]] = None
    (tmp_path / "holed").mkdir()
    for i in range(3):
        spoilt[i::3].to_parquet(tmp_path / f"holed/part-{i}.parquet")
    return tmp_path / "holed", spoilt.dropna()


@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_rows_with_missing_values_are_left_out(holed, tmp_path, workers):
    path, whole = holed
    document = fit(path, "-k", 3, "--missing", "drop", "--save", tmp_path / "run.npz", *workers)
    same_model(document, solve(whole))
    assert document["n_samples"] == len(whole) == 77
    if not workers:
        assert document["left_out"]["rows"] == 3
        assert document["left_out"]["missing"]["price"] == 2
    options = ["-t", "price", "--drop", "count", "--missing", "drop"]
    assert run_json("verify", tmp_path / "run.npz", path, *options)["is_valid"] is True
    outcome = run("fit", path, "-k", 3, *options, *workers)
    words = "are left out" if workers else "3 rows left out, where values are missing: "
    assert words in outcome.stdout


def test_without_the_option_the_message_names_it(holed):
    outcome = run("fit", holed[0], "-k", 3, "-t", "price", "--drop", "count")
    assert outcome.exit_code == 1
    assert "has a missing value in row" in outcome.stderr
    assert "--missing drop" in outcome.stderr


def test_columns_by_pattern(folders):
    for option, names in (("--features", "size[0-4]"), ("--drop", "size[567],count")):
        document = run_json("fit", folders / "csv", "-t", "price", "-k", 2, option, names)
        assert document["n_features"] == 5
