"""--auto-bounds: what the command line claims inside a box that was chosen."""

import json

import numpy as np
import pytest
from helpers.command_line import run

from bestk import Advanced

SLOW = Advanced(enumeration=False, batch_size=1)
GREEDY = Advanced(beam_width=1)


@pytest.mark.parametrize(
    ("arguments", "piece"),
    [
        (["fit", "-k", "3"], "Conditional: no model with at most 3 features inside the box"),
        (["path", "--max-k", "3"], "(conditional)"),
        (["cv", "--max-k", "2", "--folds", "3"], "100% the best inside a box"),
    ],
)
def test_the_command_line_says_conditional(data_file, arguments, piece):
    command, *options = arguments
    outcome = run(command, data_file, *options, "--auto-bounds")
    assert outcome.exit_code == 0, outcome.output
    text = " ".join(outcome.stdout.split())
    assert piece in text
    assert "Proven:" not in text
    document = json.loads(run(command, data_file, *options, "--auto-bounds", "--json").stdout)
    assert document["conditional"] is True
    assert document["proven"] is False
    plain = json.loads(run(command, data_file, *options, "--json").stdout)
    assert plain["conditional"] is False
    assert plain["proven"] is True


def test_a_limit_inside_a_box_is_code_3(hard_data, tmp_path):
    X, y = hard_data
    np.savez(tmp_path / "hard.npz", X=X, y=y)
    arguments = ("fit", tmp_path / "hard.npz", "-k", 9, "--auto-bounds", "--node-limit", 0)
    outcome = run(*arguments)
    assert outcome.exit_code == 3
    assert "features inside the box may be better" in " ".join(outcome.stdout.split())


@pytest.mark.parametrize("other", [["--lower", "-1"], ["--upper", "1"], ["--nonnegative"]])
def test_chosen_and_given_bounds_exclude_each_other(data_file, other):
    outcome = run("fit", data_file, "-k", 2, "--auto-bounds", *other)
    assert outcome.exit_code == 2
    assert "--auto-bounds excludes" in outcome.output


def test_the_command_line_names_coefficients_at_their_bounds(data_file):
    outcome = run("fit", data_file, "-k", 1, "--upper", "0.1", "--lower", "-0.1")
    assert "is at its bound: a wider box" in " ".join(outcome.stdout.split())
    document = json.loads(
        run("fit", data_file, "-k", 1, "--upper", "0.1", "--lower", "-0.1", "--json").stdout
    )
    assert document["at_bounds"] == document["support"]


def test_a_checkpoint_of_the_command_line_keeps_the_box(data_file, tmp_path):
    path = tmp_path / "run.ckpt"
    fit = ("fit", data_file, "-k", 4, "--checkpoint", path, "--json")
    first = run(*fit, "--auto-bounds", "--node-limit", 0)
    assert first.exit_code == 3
    assert run(*fit).exit_code == 1
    second = run(*fit, "--auto-bounds")
    assert second.exit_code == 0
    assert json.loads(second.stdout)["conditional"] is True


def test_a_saved_proof_in_a_box_is_verified_with_its_assumption(data_file, tmp_path):
    path = tmp_path / "run.npz"
    assert run("fit", data_file, "-k", 3, "--auto-bounds", "--save", path).exit_code == 0
    outcome = run("verify", path, data_file)
    assert outcome.exit_code == 0
    assert "box chosen from the solution itself" in outcome.stdout
