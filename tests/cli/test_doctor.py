"""bestk doctor: what it finds, what it says if something is wrong, and its exit code."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.command_line import run, run_json

import bestk
from bestk.base.device import cuda
from bestk.cli.commands import doctor, self_test


def test_a_machine_that_works():
    found = run_json("doctor")
    assert found["healthy"] is True
    assert found["version"] == bestk.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert None not in found["packages"].values()
    assert found["threads"]["default"] >= 1
    assert found["blas"][0]["num_threads"] >= 1
    assert found["compile_cache"]["writable"] is True
    assert found["compile_cache"]["bytes"] > 0
    names = [check["name"] for check in found["self_test"]]
    assert {"models", "boxes", "groups", "rules", "constraints"} <= set(names)
    assert all(check["passed"] and not check["problem"] for check in found["self_test"])


def test_in_words_without_the_self_test():
    outcome = run("doctor", "--no-self-test")
    assert outcome.exit_code == 0
    for word in (bestk.__version__, "scikit-learn", "BLAS", "compiled loops", "devices"):
        assert word in outcome.stdout
    assert "self-test" not in outcome.stdout


def test_a_bound_that_is_too_high_is_found(monkeypatch):
    solve = bestk.solve

    def boastful(*args, **options):
        result = solve(*args, **options)
        above = 1.001 * result.objective
        kept = ("is_closed", "objective", "gap", "status", "certificate")
        return SimpleNamespace(lower_bound=above, **{name: getattr(result, name) for name in kept})

    monkeypatch.setattr(bestk, "solve", boastful)
    found = run_json("doctor", code=doctor.UNHEALTHY)
    assert found["healthy"] is False
    problems = {check["name"]: check["problem"] for check in found["self_test"]}
    for name in ("models", "boxes", "groups", "rules", "constraints"):
        assert "is above the optimum" in problems[name]


def test_errors_are_told_and_the_other_checks_still_run(monkeypatch):
    def broken(n_threads):
        raise RuntimeError("no [locator] available")

    monkeypatch.setitem(self_test._CHECKS, "boxes", broken)
    outcome = run("doctor")
    assert outcome.exit_code == 1
    assert "self-test of boxes: failed: RuntimeError: no [locator] available" in outcome.stdout
    assert "self-test of rules: passed" in outcome.stdout


def test_a_package_that_is_missing(monkeypatch):
    monkeypatch.setattr(doctor, "_OPTIONAL", ("no-such-package",))
    assert run_json("doctor", "--no-self-test")["optional"] == {"no-such-package": None}


@pytest.mark.parametrize("has_driver", [True, False])
def test_cupy_is_not_imported_if_it_is_not_there(monkeypatch, tmp_path, has_driver):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(doctor, "_NVIDIA", tmp_path if has_driver else tmp_path / "none")
    found = doctor._devices()
    assert found["names"] == []
    assert ("install bestk[gpu]" in found["problem"]) is has_driver


def test_devices_have_names_and_problems(monkeypatch):
    runtime = SimpleNamespace(getDeviceCount=lambda: 2)
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(doctor, "find_spec", lambda name: object())
    monkeypatch.setattr(cuda, "cupy_for", lambda number: (cupy, None, {"name": b"H200"}))
    assert doctor._devices() == {"names": ["cuda:0 (H200)", "cuda:1 (H200)"], "problem": ""}

    def lost(number):
        raise RuntimeError("driver is too old")

    monkeypatch.setattr(cuda, "cupy_for", lost)
    assert doctor._devices()["problem"] == "RuntimeError: driver is too old"


def test_a_cache_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr(doctor, "_is_writable", lambda folder: False)
    found = doctor._compile_cache()
    assert found["writable"] is False
    assert "every process compiles anew" in found["problem"]


def test_no_folder_for_compiled_loops(monkeypatch):
    def refused():
        raise RuntimeError("cannot cache function 'dot': no locator available")

    monkeypatch.setattr(doctor, "_cache_folders", refused)
    outcome = run("doctor", "--no-self-test")
    assert "no folder" in outcome.stdout
    assert "NUMBA_CACHE_DIR" in outcome.stdout


def test_a_folder_is_writable_or_not(tmp_path):
    assert doctor._is_writable(tmp_path / "made" / "later")
    (tmp_path / "file").touch()
    assert not doctor._is_writable(tmp_path / "file")


def test_help_brings_nothing_heavy_along():
    code = "import sys\nfrom bestk.cli import app\ntry: app(['doctor', '--help'])\n"
    code += "except SystemExit: pass\nprint(sorted({'numpy', 'numba', 'cupy'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_as_a_program_json_is_all_there_is_on_standard_output():
    program = [sys.executable, "-m", "bestk", "doctor", "--json", "--no-self-test"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["self_test"] == []
    assert done.stderr == ""
