"""bestk discover: the equations of the library, from files."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from helpers.command_line import run, run_json, same_model

KEYS = (
    "k alpha support coef intercept objective lower_bound gap explained_gap status proven "
    "conditional at_bounds assumptions r2 n_samples n_features n_nodes seconds criteria version"
)
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
    assert "Raise --time-limit" in outcome.stdout
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
        (["--time", "x", "--drop", "note"], r"times \(--time x\) must increase, but .* in row 2"),
        ([*LORENZ, "--validation", "0"], "validation must be between 0 and 1"),
        (
            [*LORENZ, "--validation", "0.004"],
            "the trajectory has 1,000 rows, 996 to fit and 4 for validation",
        ),
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
