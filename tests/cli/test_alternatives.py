"""bestk alternatives: the lists of the library, as one JSON object, in words or as a page."""

import os
import signal
import subprocess
import sys
from time import perf_counter, sleep

import numpy as np
import pytest
from helpers.command_line import run, run_json

import bestk
from bestk.results.completeness import CompletenessCertificate

COLUMNS = ["--target", "price", "--drop", "count"]
KEYS = (
    "k alpha threshold within exactly_k complete complete_below conditional status best models "
    "necessary possible useless copies n_samples n_features n_nodes seconds version"
)


def alternatives(file, *options, **more):
    return run_json("alternatives", file, *COLUMNS, "-k", 3, *options, **more)


def near_optimal(frame, **options):
    X = frame.drop(columns=["price", "count"])
    return bestk.near_optimal(X, frame["price"], 3, **{"fit_intercept": True, **options})


def same_list(document, found):
    assert document["complete"] is found.complete is True
    assert document["threshold"] == pytest.approx(found.threshold, rel=1e-9)
    assert document["complete_below"] == document["threshold"]
    assert len(document["models"]) == len(found)
    for one, model in zip(document["models"], found, strict=True):
        assert one["support"] == list(model.names) == list(one["coef"])
        np.testing.assert_allclose(list(one["coef"].values()), model.values, rtol=1e-7)
        assert one["intercept"] == pytest.approx(model.intercept, rel=1e-7)
        assert one["objective"] == pytest.approx(model.objective, rel=1e-9)
        worse = model.objective / found.best.objective - 1
        assert one["worse_by"] == pytest.approx(worse, abs=1e-9)
    for key in ("necessary", "possible", "useless"):
        assert document[key] == [found.names[j] for j in getattr(found, key)]


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (["--within", "60%"], {"within": 0.6}),
        (["--within", "0.6", "--threads", "1"], {"within": 0.6}),
        ([], {"within": 0.02}),
        (["--below", "150"], {"below": 150.0}),
        (["--n-best", "7"], {"n_best": 7}),
        (["--within", "1", "--alpha", "2.5", "--no-intercept"],
         {"within": 1.0, "alpha": 2.5, "fit_intercept": False}),
        (["--within", "1", "--include", "size1", "--exclude", "size0"],
         {"within": 1.0, "include": ["size1"], "exclude": ["size0"]}),
        (["--within", "2", "--nonnegative", "--upper", "0.5"],
         {"within": 2.0, "bounds": (0.0, 0.5)}),
    ],
)  # fmt: skip
def test_the_list_is_that_of_the_library(file, frame, options, keywords):
    same_list(alternatives(file, *options), near_optimal(frame, **keywords))


def test_weights(file, frame):
    options = ["-t", "price", "--weight", "count", "-k", 3, "--within", 1]
    document = run_json("alternatives", file, *options)
    same_list(document, near_optimal(frame, within=1.0, sample_weight=frame["count"]))


def test_the_json_of_a_list_has_these_keys(file, frame):
    document = alternatives(file, "--within", "60%")
    assert list(document) == KEYS.split()
    assert document["within"] == 0.6
    assert document["exactly_k"] is document["conditional"] is False
    assert document["status"] == "optimal"
    assert document["best"]["proven"] is True
    assert document["best"]["objective"] <= document["models"][0]["objective"]
    assert document["n_samples"] == len(frame)
    assert alternatives(file, "--n-best", 2)["exactly_k"] is True
    assert alternatives(file, "--auto-bounds")["conditional"] is True


def test_what_people_read(file):
    outcome = run("alternatives", file, *COLUMNS, "-k", 3, "--within", "300%")
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    document = alternatives(file, "--within", 3)
    assert len(document["models"]) > 2
    for model in document["models"][:3]:
        assert f"{model['objective']:.7g}" in outcome.stdout
        assert ", ".join(model["support"]) in outcome.stdout
    assert "80 rows, 8 features" in outcome.stdout
    assert "300% above the best" in outcome.stdout
    assert "Complete: every model with at most 3 features" in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_a_long_list_is_cut_on_the_console_only(file):
    options = [*COLUMNS, "-k", 3, "--n-best", 30]
    outcome = run("alternatives", file, *options)
    assert "... and 10 more" in outcome.stdout
    assert "exactly 3 features" in outcome.stdout
    assert len(run_json("alternatives", file, *options)["models"]) == 30


def test_conditional_lists_say_so(file):
    outcome = run("alternatives", file, *COLUMNS, "-k", 3, "--auto-bounds")
    assert outcome.exit_code == 0
    assert "Complete inside the box:" in outcome.stdout


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path):
    (tmp_path / "data.csv").write_text("[red]a,[/b],y\n1,0,1\n0,1,2\n1,1,3.5\n2,1,4\n3,3,9\n")
    page = tmp_path / "models.html"
    outcome = run(
        "alternatives", tmp_path / "data.csv", "-k", 1, "--n-best", 2, "--report", page
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.output
    assert "[red]a" in outcome.stdout
    assert "[/b]" in outcome.stdout
    assert "</html>" in page.read_text()


# Lists that are not complete --------------------------------------------------------------------


def test_a_limit_leaves_an_incomplete_list_and_code_3(hard, tmp_path):
    command = ["alternatives", hard, "-k", 10, "--node-limit", 20]
    document = run_json(*command, code=3)
    assert document["complete"] is False
    assert document["status"] == "node limit"
    assert document["complete_below"] < document["threshold"]
    outcome = run(*command, "--save", tmp_path / "list.npz")
    assert outcome.exit_code == 3
    assert "Not complete (node limit)" in outcome.stdout
    assert "The best model is not proven" in outcome.stdout
    assert "it is not complete" in outcome.stderr
    assert not (tmp_path / "list.npz").exists()


def test_too_many_models_leave_the_best_ones_and_code_3(file, tmp_path):
    whole = alternatives(file, "--within", 3)
    options = ["--within", 3, "--max-models", 3, "--save", tmp_path / "list.npz"]
    some = alternatives(file, *options, code=3)
    assert 0 < len(some["models"]) <= 3 < len(whole["models"])
    assert some["complete"] is False
    assert some["models"] == alternatives(file, "--below", some["complete_below"])["models"]
    outcome = run("alternatives", file, *COLUMNS, "-k", 3, *options)
    assert "Not complete (--max-models)" in outcome.stdout
    if some["complete_below"] > some["best"]["objective"]:
        shown = outcome.stdout.split("Below the objective ")[1].split()[0]
        assert float(shown) <= some["complete_below"]
    # What it claims of objectives below that is proven.
    claim = run_json("verify", tmp_path / "list.npz", file, *COLUMNS)
    assert claim["is_valid"] is True
    assert claim["threshold"] == pytest.approx(some["complete_below"])


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_still_gives_a_list(hard, tmp_path):
    watched = (
        "import sys; from bestk.search import tree; from bestk.cli import app\n"
        "report = tree.Tree._report\n"
        "def told(self):\n"
        "    report(self)\n"
        "    if self.space.n_nodes > 500 and not self.space.incumbent.improves:\n"
        "        sys.stderr.write('searching\\n'); sys.stderr.flush()\n"
        "tree.Tree._report = told\n"
        "app()"
    )
    # With such a gap the best model is soon proven, and what is interrupted is the list.
    options = ["-k", "10", "--within", "2%", "--gap-tol", "0.99", "--json"]
    program = [sys.executable, "-c", watched, "alternatives", hard, *options]
    with open(tmp_path / "messages", "w") as messages:
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=messages, text=True)
        start = perf_counter()
        while "searching" not in (tmp_path / "messages").read_text():
            assert perf_counter() - start < 60
            assert process.poll() is None, (tmp_path / "messages").read_text()
            sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert '"complete": false' in out
    assert '"status": "interrupted"' in out


# Wrong usage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--within", "two"], "--within"),
        (["--within", "-1%"], "--within"),
        (["--within", "nan"], "--within"),
        (["--within", "inf%"], "--within"),
        (["--within", "1%", "--below", "3"], "--within and --below"),
        (["--within", "1%", "--n-best", "3"], "--within and --n-best"),
        (["--below", "1", "--n-best", "3"], "--below and --n-best"),
        (["--below", "-1"], "--below"),
        (["--n-best", "0"], "--n-best"),
        (["--max-models", "0"], "--max-models"),
        (["--checkpoint", "run.ckpt"], "--checkpoint"),
        (["--nonnegative", "--lower", "-1"], "--nonnegative"),
    ],
)
def test_wrong_usage_is_code_2_and_names_the_option(file, options, message):
    outcome = run("alternatives", file, *COLUMNS, "-k", 3, *options)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    assert message in outcome.stderr


def test_bad_input_is_code_1_and_names_the_option(file):
    outcome = run("alternatives", file, *COLUMNS, "-k", 3, "--include", "size9")
    assert outcome.exit_code == 1
    assert "--include: there is no column 'size9'" in outcome.stderr
    outcome = run("alternatives", file, *COLUMNS, "-k", 3, "--save", "/no/such/folder/list.npz")
    assert outcome.exit_code == 1
    assert "there is no folder" in outcome.stderr


# Files ------------------------------------------------------------------------------------------


@pytest.fixture
def saved(file, tmp_path):
    alternatives(file, "--within", 3, "--save", tmp_path / "list.npz")
    return tmp_path / "list.npz"


def test_a_page_is_written(file, tmp_path):
    outcome = run(
        "alternatives", file, *COLUMNS, "-k", 3, "--report", tmp_path / "models.html", "--json"
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.output
    assert outcome.stderr == f"page written to {tmp_path / 'models.html'}\n"
    assert "</html>" in (tmp_path / "models.html").read_text()


def test_a_saved_list_is_verified(saved, file, frame, folders):
    found = near_optimal(frame, within=3.0)
    for data in (file, folders / "csv"):
        document = run_json("verify", saved, data, *COLUMNS)
        assert document["is_valid"] is True
        assert document["failures"] == document["assumptions"] == []
        assert document["n_models"] == len(found)
        assert document["threshold"] == pytest.approx(found.threshold, rel=1e-9)
    outcome = run("verify", saved, file, *COLUMNS)
    assert f"A list of {len(found)} models" in outcome.stdout
    assert "\nVerified" in outcome.stdout
    assert len(CompletenessCertificate.load(saved).models) == len(found)


def test_weights_are_those_of_the_list(file, tmp_path):
    path, weight = tmp_path / "list.npz", ["-t", "price", "--weight", "count"]
    run_json("alternatives", file, *weight, "-k", 2, "--within", 1, "--save", path)
    assert run_json("verify", path, file, *weight)["is_valid"] is True
    assert run_json("verify", path, file, *COLUMNS, code=4)["is_valid"] is False


def test_a_list_of_something_else_is_code_4(saved, file, frame, tmp_path):
    other = tmp_path / "other.csv"
    frame.iloc[1:].to_csv(other, index=False)
    document = run_json("verify", saved, other, *COLUMNS, code=4)
    assert document["is_valid"] is False
    outcome = run("verify", saved, other, *COLUMNS)
    assert outcome.exit_code == 4
    assert "NOT verified" in outcome.stdout


def test_a_list_that_lacks_a_model_is_code_4(saved, file, tmp_path):
    from dataclasses import replace

    proof = CompletenessCertificate.load(saved)
    for i in range(len(proof.models)):
        fewer = replace(proof, models=proof.models[:i] + proof.models[i + 1 :])
        fewer.save(tmp_path / "fewer.npz")
        assert run("verify", tmp_path / "fewer.npz", file, *COLUMNS).exit_code == 4


def test_lists_are_not_verified_in_rational_numbers(saved, file):
    outcome = run("verify", saved, file, *COLUMNS, "--exact")
    assert outcome.exit_code == 1
    assert "--exact is for the proof of one model" in outcome.stderr


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_workers_give_the_same_list(folders, file, frame, client, tmp_path):
    options = ["--within", 3, "--scheduler", client.scheduler.address]
    save = tmp_path / "list.npz"
    same_list(
        alternatives(folders / "parquet", *options, "--save", save), near_optimal(frame, within=3.0)
    )
    assert run_json("verify", save, file, *COLUMNS)["is_valid"] is True


def test_help_lists_the_command():
    assert "alternatives" in run("--help").stdout
    text = run("alternatives", "--help").stdout
    for word in ("--within", "--below", "--n-best", "--max-models", "--report", "--save"):
        assert word in text
