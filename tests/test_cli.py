"""The command line: the same models as the library, one JSON object, exit codes, messages."""

import json
import os
import re
import signal
import subprocess
import sys
from time import perf_counter, sleep

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bestk
from bestk import storage
from bestk.cli.app import app
from bestk.selection.cross_validation import cross_validate_batches

N, P = 80, 8
KEYS = (
    "k alpha support coef intercept objective lower_bound gap explained_gap status proven "
    "conditional at_bounds assumptions r2 n_samples n_features n_nodes seconds criteria version"
)


@pytest.fixture(scope="module")
def frame():
    X, y, _ = bestk.datasets.make_synthetic(N, P, k=3, rho=0.6, seed=5)
    frame = pd.DataFrame(X, columns=[f"size{j}" for j in range(P)])
    return frame.assign(price=y + 4.0, count=np.arange(1, N + 1))


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """Data whose best ten features take long to prove."""
    X, y, _ = bestk.datasets.make_synthetic(100, 80, k=10, rho=0.9)
    path = tmp_path_factory.mktemp("cli") / "hard.npz"
    np.savez(path, X=X, y=y)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments, code=0):
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == code, outcome.output
    return json.loads(outcome.stdout)


def fit(file, *options, **more):
    return run_json("fit", file, "--target", "price", "--drop", "count", *options, **more)


def same_model(document, result):
    assert document["support"] == result.names
    for name, j in zip(result.names, result.support, strict=True):
        assert document["coef"][name] == pytest.approx(result.coef[j], rel=1e-8)
    assert document["intercept"] == pytest.approx(result.intercept, rel=1e-8)
    assert document["objective"] == pytest.approx(result.objective, rel=1e-10)
    assert document["k"] == result.k
    assert document["alpha"] == result.alpha


def solve(frame, k=3, **options):
    X = frame.drop(columns=["price", "count"])
    return bestk.solve(X, frame["price"], k, **{"fit_intercept": True, **options})


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        ([], {}),
        (["--alpha", "2.5"], {"alpha": 2.5}),
        (["--no-intercept"], {"fit_intercept": False}),
        (
            ["--include", "size1,size2", "--exclude", "size0", "--exclude", "size5"],
            {"include": ["size1", "size2"], "exclude": ["size0", "size5"]},
        ),
        (["--nonnegative", "--upper", "0.5"], {"bounds": (0, 0.5)}),
        (["--lower", "-0.1"], {"bounds": (-0.1, np.inf)}),
        (["--threads", "1", "--gap-tol", "0"], {"gap_tol": 0}),
    ],
)
def test_fit_is_solve(file, frame, options, keywords):
    document = fit(file, "-k", 3, *options)
    same_model(document, solve(frame, **keywords))
    assert document["proven"] is True
    assert document["gap"] <= 1e-4


def test_fit_with_weights(file, frame):
    document = run_json("fit", file, "-t", "price", "-k", 2, "--weight", "count")
    same_model(document, solve(frame, k=2, sample_weight=frame["count"]))


def test_the_json_of_a_model_has_these_keys(file, frame):
    document = fit(file, "-k", 3)
    assert list(document) == KEYS.split()
    assert list(document["criteria"]) == ["aicc", "bic", "ebic"]
    assert document["criteria"]["bic"] == pytest.approx(solve(frame).criterion("bic"))
    assert document["n_samples"] == N
    assert document["n_features"] == P
    assert document["status"] == "optimal"
    assert document["version"] == bestk.__version__


def test_numbers_that_are_not_finite_are_null(tmp_path):
    (tmp_path / "tiny.csv").write_text("a,b,y\n1,0,1\n0,1,2\n1,1,2.5\n")
    document = run_json("fit", tmp_path / "tiny.csv", "-k", 2)
    assert document["criteria"]["aicc"] is None


@pytest.mark.parametrize("suffix", [".tsv", ".csv.gz", ".parquet", ".feather", ".npz"])
def test_every_format_gives_the_same_model(file, frame, tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".feather":
        frame.to_feather(path)
    elif suffix == ".npz":
        np.savez(path, **{name: frame[name] for name in frame})
    else:
        frame.to_csv(path, sep="\t" if suffix == ".tsv" else ",", index=False)
    ours, csv = fit(path, "-k", 4), fit(file, "-k", 4)
    assert ours["support"] == csv["support"]
    assert ours["objective"] == pytest.approx(csv["objective"], rel=1e-10)


def test_rows_pass_in_batches_and_once(file, frame, monkeypatch):
    from bestk.readers import data as readers

    monkeypatch.setattr(readers, "BATCH_BYTES", 8 * P * 9)
    sizes = []
    batches = readers.Data.__iter__

    def watched(self):
        for batch in batches(self):
            sizes.append(len(batch[1]))
            yield batch

    monkeypatch.setattr(readers.Data, "__iter__", watched)
    for command in (["fit", "-k", 3], ["path", "--max-k", 3], ["cv", "--max-k", 2]):
        sizes.clear()
        outcome = run(command[0], file, *command[1:], "-t", "price", "--drop", "count")
        assert outcome.exit_code == 0, outcome.output
        assert sizes == [9] * 8 + [8]


def test_path_is_solve_path(file, frame):
    options = ["--target", "price", "--drop", "count", "--criterion", "bic"]
    document = run_json("path", file, *options, "--ks", "1,3-4")
    X = frame.drop(columns=["price", "count"])
    path = bestk.solve_path(X, frame["price"], [1, 3, 4], fit_intercept=True)
    assert document["criterion"] == "bic"
    assert document["proven"] is True
    for ours, theirs in zip(document["results"], path.results, strict=True):
        same_model(ours, theirs)
    same_model(document["chosen"], path.best("bic"))


def test_a_path_stops_at_the_number_of_features(file):
    document = run_json("path", file, "-t", "price", "--drop", "count", "--max-k", 50)
    assert [model["k"] for model in document["results"]] == list(range(1, P + 1))


def test_cv_is_cross_validation_and_a_fit_of_all_rows(file, frame):
    options = ["--max-k", 4, "--alphas", "0,1", "--folds", 3, "--rule", "one-se", "--seed", 7]
    document = run_json("cv", file, "-t", "price", "--drop", "count", *options)
    X = frame.drop(columns=["price", "count"])
    batches = [(X, frame["price"])]
    validation, _ = cross_validate_batches(batches, range(1, 5), [0, 1], n_folds=3, seed=7)
    alpha, k = validation.best("one-se")
    assert document["chosen"] == {"alpha": alpha, "k": k}
    means = [row["mean"] for row in document["table"]]
    np.testing.assert_allclose(means, validation.mean.ravel(), rtol=1e-8)
    errors = [row["standard_error"] for row in document["table"]]
    np.testing.assert_allclose(errors, validation.standard_error.ravel(), rtol=1e-6)
    assert [row["k"] for row in document["table"]] == [1, 2, 3, 4] * 2
    assert document["share_proven"] == 1.0
    same_model(document["model"], solve(frame, k, alpha=alpha))


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (["fit", "-k", "3"], ["80 rows, 8 features", "intercept", "Proven:", "lower bound"]),
        (["path", "--max-k", "3"], ["aicc chooses k = 3", "size0, size2", "Proven:"]),
        (["cv", "--max-k", "3"], ["mean squared error", "100% of", "rule min chooses k = 3"]),
    ],
)
def test_what_people_read(file, arguments, pieces):
    command, *options = arguments
    outcome = run(command, file, *options, "-t", "price", "--drop", "count")
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    for piece in pieces:
        assert piece in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path):
    (tmp_path / "data.csv").write_text("[red]a,[/b],y\n1,0,1\n0,1,2\n1,1,3.5\n2,1,4\n3,3,9\n")
    outcome = run("fit", tmp_path / "data.csv", "-k", 2)
    assert outcome.exit_code == 0
    assert "[red]a" in outcome.stdout
    assert "[/b]" in outcome.stdout


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
        (["-k", "2", "-t", "price", "--lower", "1"], "bounds must allow 0"),
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


def test_a_saved_run_can_be_loaded(file, frame, tmp_path):
    outcome = run(
        "fit", file, "-t", "price", "--drop", "count", "-k", 3, "--json",
        "--save", tmp_path / "run.npz",
    )  # fmt: skip
    json.loads(outcome.stdout)
    assert outcome.stderr == f"run written to {tmp_path / 'run.npz'}\n"
    result = storage.load(tmp_path / "run.npz")
    assert result.names == solve(frame).names
    assert result.certificate is not None


@pytest.fixture
def proof(file, tmp_path):
    fit(file, "-k", 3, "--save", tmp_path / "run.npz")
    return tmp_path / "run.npz"


def verify(proof, file, *options, **more):
    return run_json("verify", proof, file, "--drop", "count", *options, **more)


def test_a_saved_proof_is_verified(proof, file, frame):
    document = verify(proof, file, "--target", "price")
    assert document["is_valid"] is True
    assert document["failures"] == document["assumptions"] == []
    assert document["lower_bound"] == pytest.approx(solve(frame).lower_bound, rel=1e-8)
    exact = verify(proof, file, "--target", "price", "--exact")
    assert exact["is_valid"] is exact["exact"] is True
    outcome = run("verify", proof, file, "--drop", "count", "--target", "price")
    assert outcome.stdout.startswith("Verified")


def test_a_proof_of_something_else_is_code_4(proof, file, frame, tmp_path):
    other = tmp_path / "other.csv"
    frame.iloc[1:].to_csv(other, index=False)
    document = verify(proof, other, "--target", "price", code=4)
    assert document["is_valid"] is False
    assert "not those of the certificate" in document["failures"][0]
    assert run("verify", proof, other, "-t", "price").exit_code == 4


def test_what_is_no_proof_is_an_error(file):
    outcome = run("verify", file, file, "-t", "price")
    assert outcome.exit_code == 1
    assert "no npz file" in outcome.stderr


def test_a_checkpoint_is_resumed(file, tmp_path):
    path = tmp_path / "run.ckpt"
    first = fit(file, "-k", 3, "--checkpoint", path, "--node-limit", 0, code=3)
    assert path.exists()
    second = fit(file, "-k", 3, "--checkpoint", path)
    assert second["proven"]
    assert second["seconds"] > first["seconds"]
    outcome = run("fit", file, "-t", "price", "--drop", "count", "-k", 2, "--checkpoint", path)
    assert outcome.exit_code == 1
    assert "another problem" in outcome.stderr


@pytest.mark.parametrize("command", [["fit", "-k", "2"], ["path", "--max-k", "2"], ["cv"]])
def test_reports_are_pages(file, tmp_path, command):
    page = tmp_path / "report.html"
    options = ["-t", "price", "--drop", "count", "--report", page]
    outcome = run(command[0], file, *command[1:], *options)
    assert outcome.exit_code == 0, outcome.output
    assert "</html>" in page.read_text()


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    states = bestk.datasets.simulate("lorenz", 2.0, noise=0.002)
    frame = pd.DataFrame(states, columns=["x", "y", "z"])
    path = tmp_path_factory.mktemp("cli") / "lorenz.csv"
    frame.assign(note="text", seconds=0.002 * np.arange(len(frame))).to_csv(path, index=False)
    return path


LORENZ = ["--time", "seconds", "--drop", "note", "--degree", "2", "--alphas", "0.001,0.1"]


def test_discover_is_discover(trajectory):
    from bestk.sindy import discover

    frame = pd.read_csv(trajectory)
    document = run_json("discover", trajectory, *LORENZ, "--max-k", 3, "--validation", 0.4)
    found = discover(
        frame[["x", "y", "z"]], frame["seconds"], degree=2, ks=[1, 2, 3], alphas=[0.001, 0.1],
        validation=0.4,
    )  # fmt: skip
    assert document["states"] == ["x", "y", "z"]
    assert [each["equation"] for each in document["equations"]] == found.equations
    for i, (ours, theirs) in enumerate(zip(document["equations"], found.results, strict=True)):
        same_model(ours, theirs)
        other = found.runners_up[i]
        assert ours["runner_up"]["support"] == other.names
        assert ours["runner_up"]["objective"] == pytest.approx(other.objective, rel=1e-8)
        assert ours["runner_up"]["margin"] == pytest.approx(found.margins[i], rel=1e-6)
    np.testing.assert_allclose([row["score"] for row in document["table"]], found.scores.ravel())
    assert [row["k"] for row in document["table"]] == [1, 2, 3] * 6
    assert document["n_terms"] == 10
    assert document["n_trajectories"] == 1
    assert document["share_proven"] == 1.0
    assert document["horizon"] == [found.horizon()]
    assert document["proven"] is True


def test_discover_several_files_and_some_states(trajectory):
    options = [*LORENZ, "--ks", "2", "--states", "z,x"]
    document = run_json("discover", trajectory, trajectory, *options)
    assert document["states"] == ["z", "x"]
    assert document["n_trajectories"] == 2
    assert document["n_terms"] == 6
    assert document["equations"][0]["n_samples"] == 2000


def test_what_people_read_about_equations(trajectory, tmp_path):
    page, picture = tmp_path / "report.html", tmp_path / "picture.png"
    outcome = run("discover", trajectory, *LORENZ, "--report", page, "--plot", picture)
    assert outcome.exit_code == 0, outcome.output
    for piece in ("1,000 rows, 3 states, 10 candidate terms", "x' = -9.9", "30 of them proven"):
        assert piece in outcome.stdout
    assert "Every equation is proven" in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    assert outcome.stderr == f"report written to {page}\npicture written to {picture}\n"
    assert "</html>" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_discover_with_a_limit_is_code_3(trajectory):
    options = ["--time", "seconds", "--drop", "note", "--time-limit", 0]
    outcome = run("discover", trajectory, *options)
    assert outcome.exit_code == 3
    assert "3 of 3 equations are not proven." in outcome.stdout
    assert "Raise time_limit" in outcome.stdout
    assert outcome.stderr == ""
    assert run_json("discover", trajectory, *options, code=3)["proven"] is False


def test_ctrl_c_while_discovering_is_code_130(trajectory, monkeypatch):
    from bestk.show.progress import Counter

    def interrupt(self, snapshot):
        raise KeyboardInterrupt

    monkeypatch.setattr(Counter, "update", interrupt)
    document = run_json("discover", trajectory, *LORENZ, code=130)
    assert document["proven"] is False
    assert len(document["equations"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--drop", "note"], "--time: there is no column 't'"),
        (["--time", "secnods"], "--time: .* did you mean 'seconds'"),
        (["--time", "seconds"], "column 'note' holds text .* --drop note"),
        ([*LORENZ, "--states", "x,w"], "--states: there is no column 'w'"),
        (["--time", "x", "--drop", "note"], r"t must increase, but t\[1\]"),
        ([*LORENZ, "--validation", "0"], "validation must be a share between 0 and 1"),
        ([*LORENZ, "--validation", "0.004"], "x has 1000 rows, 996 to fit and 4 for validation"),
        ([*LORENZ, "--plot", "/no/such/folder/a.png"], "there is no folder"),
    ],
)
def test_bad_trajectories_are_code_1_and_a_message(trajectory, arguments, message):
    outcome = run("discover", trajectory, *arguments, "--json")
    assert outcome.exit_code == 1
    assert outcome.stdout == ""
    assert re.match(f"bestk: .*{message}", outcome.stderr)
    assert outcome.stderr.count("\n") == 1


def test_discover_without_pysindy_says_what_to_install(trajectory, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("bestk.sindy")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pysindy", None)
    outcome = run("discover", trajectory, *LORENZ)
    assert outcome.exit_code == 1
    assert outcome.stderr == 'bestk: bestk.sindy needs PySINDy: pip install "bestk[sindy]"\n'


def test_demo_proves_something():
    outcome = run("demo", "--quiet")
    assert outcome.exit_code == 0
    assert "10 of the 10 features" in outcome.stdout
    assert "Proven:" in outcome.stdout


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
        "    if self.n_nodes: sys.stderr.write('searching\\n'); sys.stderr.flush()\n"
        "tree.Tree._report = told\n"
        "app()"
    )
    program = [sys.executable, "-c", watched, "fit", hard, "-k", "10", "--json"]
    with open(tmp_path / "messages", "w") as messages:
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=messages, text=True)
        start = perf_counter()
        while "searching" not in (tmp_path / "messages").read_text():
            assert perf_counter() - start < 20
            sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    document = json.loads(out)
    assert document["status"] == "interrupted"
    assert len(document["support"]) == 10
