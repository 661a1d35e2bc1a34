"""--device: names are checked, what is missing is said, and a device does the work."""

import sys
from importlib import import_module

import pytest
from helpers.command_line import fit, run
from helpers.devices import Plain, using

ASKED = ("--target", "price", "--drop", "count")


@pytest.mark.parametrize("command", ["fit", "path", "cv"])
def test_models_with_a_device(command, file, force):
    force.closed_by_device_at_once()
    sizes = ("-k", "4") if command == "fit" else ("--max-k", "4")
    with using(Plain()) as device:
        outcome = run(command, file, *ASKED, *sizes, "--device", "cuda", "--json")
    assert outcome.exit_code == 0, outcome.output
    assert device.n_tasks > 0


def test_the_same_model_with_a_device_and_without(file, force):
    plain = fit(file, "-k", "4")
    force.closed_by_device_at_once()
    with using(Plain()):
        other = fit(file, "-k", "4", "--device", "cuda")
    assert other["support"] == plain["support"]
    assert other["objective"] == pytest.approx(plain["objective"], rel=1e-12)


def test_discovery_takes_a_device(trajectory, force):
    force.closed_by_device_at_once()
    asked = ("--time", "seconds", "--drop", "note", "--degree", "2", "--max-k", "3", "--json")
    with using(Plain()) as device:
        outcome = run("discover", trajectory, *asked, "--device", "cuda")
    assert outcome.exit_code == 0, outcome.output
    assert device.n_tasks > 0


@pytest.mark.parametrize("command", ["fit", "verify"])
def test_other_names_are_refused(command, file, tmp_path):
    proof = tmp_path / "run.npz"
    fit(file, "-k", "2", "--save", proof)
    first = (proof, file) if command == "verify" else (file, "-k", "2")
    outcome = run(command, *first, *ASKED, "--device", "gpu")
    assert outcome.exit_code == 1
    assert '--device must be "cpu", "cuda", or "cuda:"' in outcome.stderr


def test_the_help_names_the_extra(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert "a GPU (bestk[gpu])" in run("fit", "--help").stdout


@pytest.mark.parametrize("command", ["fit", "verify"])
def test_a_missing_package_is_named(command, file, tmp_path, monkeypatch):
    proof = tmp_path / "run.npz"
    fit(file, "-k", "2", "--save", proof)
    monkeypatch.setitem(sys.modules, "cupy", None)
    first = (proof, file) if command == "verify" else (file, "-k", "2")
    outcome = run(command, *first, *ASKED, "--device", "cuda:5")
    assert outcome.exit_code == 1
    assert "needs CuPy: install bestk[gpu]" in outcome.stderr


@pytest.mark.filterwarnings("default")
def test_a_long_verification_is_announced(file, tmp_path, monkeypatch):
    proof = tmp_path / "run.npz"
    fit(file, "-k", "2", "--save", proof)
    words = "two hours on 1 thread, and a minute on a large GPU (device='cuda')"
    monkeypatch.setattr(
        import_module("bestk.verification.verify"), "forecast", lambda *arguments: words
    )
    outcome = run("verify", proof, file, *ASKED, "--json")
    assert outcome.exit_code == 0
    assert outcome.stderr.strip().endswith("a minute on a large GPU (--device cuda)")
