"""Files of the command line: saved runs, proofs to verify, checkpoints to resume."""

import json

import pytest
from helpers.command_line import fit, run, run_json, solve

from bestk import storage


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


@pytest.mark.parametrize("exact", [(), ("--exact",)])
def test_a_verification_has_a_limit_of_time(proof, file, exact):
    options = ("--drop", "count", "--target", "price", *exact)
    outcome = run("verify", proof, file, *options, "--max-seconds", 0, "--allow-long")
    assert outcome.exit_code == 1
    assert "given up after 0 seconds" in outcome.stderr
    assert "raise --max-seconds" in outcome.stderr
    assert run("verify", proof, file, *options, "--max-seconds", 600).exit_code == 0
    assert run("verify", proof, file, *options, "--max-seconds", -1).exit_code == 2


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
    whole = fit(file, "-k", 3)
    assert [second[key] for key in ("coef", "n_nodes")] == [
        whole[key] for key in ("coef", "n_nodes")
    ]
    assert first["n_nodes"] < whole["n_nodes"]
    outcome = run("fit", file, "-t", "price", "--drop", "count", "-k", 2, "--checkpoint", path)
    assert outcome.exit_code == 1
    assert "another problem" in outcome.stderr
