"""Commands with workers: processes started for them, or those of a scheduler that runs."""

import json
import os
import signal
import subprocess
import sys
from time import perf_counter, sleep

import psutil
import pytest
from helpers.checks import assert_same
from helpers.clusters import wait_until
from helpers.command_line import fit, run, run_json, same_model, solve

import bestk
from bestk import storage
from bestk.cli import cluster
from bestk.cli.question import cross_validated
from bestk.readers.data import open_data
from bestk.show.progress import Counter

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

COLUMNS = ["-t", "price", "--drop", "count"]


@pytest.fixture
def scheduler(client):
    """Options that name a scheduler with two workers."""
    return ["--scheduler", client.scheduler.address]


def program(*arguments, **options):
    command = [sys.executable, "-m", "bestk", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_workers_are_started_for_a_program(folders, file, frame, tmp_path):
    run_file = tmp_path / "run.npz"
    options = ["-k", 3, *COLUMNS, "--workers", 2, "--json", "--save", run_file]
    done = program("fit", folders / "parquet", *options)
    assert done.returncode == 0, done.stderr
    same_model(json.loads(done.stdout), solve(frame))
    assert done.stderr == f"run written to {run_file}\n"
    assert storage.load(run_file).engine == "dask, 2 workers"
    for data in (folders / "csv", file):
        assert run_json("verify", run_file, data, *COLUMNS)["is_valid"] is True


@pytest.mark.parametrize("path", ["parquet", "csv/part-?.csv", "parquet/part-1.parquet"])
def test_workers_in_another_folder_read_the_files(
    folders, frame, scheduler, tmp_path, monkeypatch, path
):
    monkeypatch.chdir(folders)
    document = fit(path, "-k", 3, *scheduler, "--save", tmp_path / "run.npz")
    rows = frame[30:60] if path.endswith("1.parquet") else frame
    same_model(document, solve(rows))
    assert run_json("verify", tmp_path / "run.npz", path, *COLUMNS)["is_valid"] is True


def test_a_path_is_that_of_one_process(folders, file, scheduler):
    options = [*COLUMNS, "--max-k", 4, "--alpha", 0.1, "--criterion", "bic"]
    ours = run_json("path", folders / "csv", *options, *scheduler)
    theirs = run_json("path", file, *options)
    assert ours["chosen"]["support"] == theirs["chosen"]["support"]
    assert ours["proven"] is True
    for one, other in zip(ours["results"], theirs["results"], strict=True):
        assert one["support"] == other["support"]
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-9)


def test_folds_do_not_depend_on_the_number_of_workers(folders, scheduler):
    options = [*COLUMNS, "--max-k", 3, "--alphas", "0,1", "--folds", 3, "--seed", 2]
    documents = [
        run_json("cv", folders / "parquet", *options, *workers)
        for workers in (["--workers", 1], ["--workers", 2], scheduler)
    ]
    for document in documents:
        document["model"].pop("seconds")
        assert document == documents[0]
    assert documents[0]["proven"] is True
    assert documents[0]["share_proven"] == 1.0


def test_fits_on_workers_are_counted(folders, client):
    data = open_data(folders / "csv", target="price", drop=["count"])
    counter = Counter("cross-validating", "fits")
    validation, _ = cross_validated(
        data, client, True, [1, 2, 3], [0.0, 1.0], n_folds=4, client=client, progress=counter
    )
    assert counter.count == validation.errors.size == 24


def test_equations_are_shared_out(trajectory, scheduler):
    options = ["--time", "seconds", "--drop", "note", "--degree", 2, "--max-k", 3]
    documents = [
        run_json("discover", trajectory, *options, "--alphas", "1e-3", *more)
        for more in ([], scheduler)
    ]
    alone, shared = ([e["equation"] for e in document["equations"]] for document in documents)
    assert alone == shared
    assert_same(documents[0]["table"], documents[1]["table"])


@pytest.mark.parametrize("first", [True, False])
def test_a_checkpoint_goes_on_with_workers_or_without(folders, scheduler, tmp_path, first):
    command = [folders / "csv", "-k", 3, "--checkpoint", tmp_path / "run.ckpt"]
    options = [scheduler, []] if first else [[], scheduler]
    assert not fit(*command, "--node-limit", 0, *options[0], code=3)["proven"]
    assert (tmp_path / "run.ckpt").exists()
    assert fit(*command, *options[1])["proven"]


def test_what_is_wrong_with_a_file_is_one_line(folders, scheduler, tmp_path, frame):
    for i in range(3):
        piece = frame[i * 30 : (i + 1) * 30].copy()
        if i == 1:
            piece.iloc[4, 2] = float("nan")
        piece.to_csv(tmp_path / f"part-{i}.csv", index=False)
    for command in (["fit", "-k", 2], ["path"], ["cv"]):
        outcome = run(command[0], tmp_path, *command[1:], *COLUMNS, *scheduler, "--json")
        assert outcome.exit_code == 1
        assert outcome.stdout == ""
        assert outcome.stderr.startswith(
            f"bestk: {tmp_path / 'part-1.csv'}: column 'size2' has a missing value in row 5;"
        )
        assert outcome.stderr.count("\n") == 1


def test_a_scheduler_that_does_not_answer(file, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    outcome = run("fit", file, "-k", 2, *COLUMNS, "--scheduler", "tcp://127.0.0.1:9")
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert outcome.stderr == (
        "bestk: --scheduler: there is no answer from tcp://127.0.0.1:9; start one with "
        "'dask scheduler', which prints its address\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2", "--scheduler", "tcp://host:1"], "exclude each other"),
        (["--workers", "0"], "--workers"),
        (["--scheduler", "host"], "'host' is not an address such as tcp://host:8786"),
        (["--scheduler", "http://host:8787"], "unknown address scheme 'http'"),
    ],
)
@pytest.mark.parametrize("command", [["fit", "-k", "2"], ["path"], ["cv"]])
def test_wrong_usage_is_code_2(file, command, options, message):
    outcome = run(command[0], file, *command[1:], *COLUMNS, *options)
    assert outcome.exit_code == 2
    assert message in " ".join(outcome.stderr.replace("│", " ").split())


@pytest.mark.parametrize("options", [["--workers", "2"], ["--scheduler", "tcp://host:1"]])
def test_without_dask_the_message_says_what_to_install(file, monkeypatch, options):
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = run("fit", file, "-k", 2, *COLUMNS, *options)
    assert outcome.exit_code == 1
    text = 'bestk: --workers and --scheduler need Dask: pip install "bestk[dask]"\n'
    assert outcome.stderr == text


def test_another_bestk_on_the_workers_is_refused(folders, scheduler, monkeypatch):
    monkeypatch.setattr(bestk, "__version__", "0.0.1")
    outcome = run("cv", folders / "csv", "--max-k", 2, *COLUMNS, *scheduler)
    assert outcome.exit_code == 1
    assert "and this process has 0.0.1; install the same version" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_the_dashboard_is_named_where_there_is_one(folders, scheduler, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: name)
    command = ["fit", folders / "csv", "-k", 2, *COLUMNS, *scheduler]
    outcome = run(*command)
    assert outcome.stderr.startswith("dashboard: http://127.0.0.1:")
    assert run(*command, "--quiet").stderr == ""


def test_a_scheduler_without_workers_is_waited_for(folders, frame, monkeypatch):
    from distributed import LocalCluster

    place = {"protocol": "tcp://", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, processes=False, threads_per_worker=1, **place) as empty:
        told, echo = [], cluster.typer.echo

        def at_last(text, **options):
            told.append(text)
            echo(text, **options)
            empty.scale(1)

        monkeypatch.setattr(cluster.typer, "echo", at_last)
        outcome = run(
            "fit", folders / "csv", "-k", 3, *COLUMNS, "--scheduler", empty.scheduler_address
        )
    assert outcome.exit_code == 0, outcome.output
    assert told[0] == f"bestk: {empty.scheduler_address} has no workers yet; waiting for the first"


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_gives_the_best_model_and_leaves_no_workers(hard, tmp_path):
    """Also if it is pressed twice."""
    watched = (
        "import sys; from bestk.base.cluster import client as cluster; from bestk.cli import app\n"
        "get = cluster.Calls.get\n"
        "def told(self, stop):\n"
        "    sys.stderr.write('searching\\n'); sys.stderr.flush()\n"
        "    return get(self, stop)\n"
        "cluster.Calls.get = told\n"
        "app()"
    )
    command = [sys.executable, "-c", watched, "fit", str(hard), "-k", "10", "--json"]
    with open(tmp_path / "messages", "w") as messages:
        # In a terminal Ctrl-C goes to all processes of the command, workers included.
        process = subprocess.Popen(
            [*command, "--workers", "2"],
            stdout=subprocess.PIPE, stderr=messages, text=True, start_new_session=True,
        )  # fmt: skip
        start = perf_counter()
        while "searching" not in (tmp_path / "messages").read_text():
            assert perf_counter() - start < 60
            sleep(0.02)
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            sleep(0.1)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert len(document["support"]) == 10
    assert set((tmp_path / "messages").read_text().split("\n")) == {"searching", ""}
    wait_until(lambda: not any(child.is_running() for child in children))


def test_help_tells_of_workers():
    for command in ("fit", "path", "cv", "discover"):
        text = run(command, "--help").stdout
        assert "--workers" in text
        assert "--scheduler" in text
    assert "--workers" not in run("verify", "--help").stdout
