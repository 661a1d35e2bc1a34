"""Rooms: what importing one brings along. Which room may import which is checked by `make lint`."""

import subprocess
import sys

import pytest

ROOMS = (
    "base", "problem", "form", "supports", "bounds", "results", "subtrees", "search", "selection",
    "verification", "readers",
)  # fmt: skip


def modules_after(code: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after some code."""
    command = f"import sys\n{code}\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def every_module_of(room: str) -> str:
    return (
        f"import importlib, pkgutil, bestk.{room} as room\n"
        "for found in pkgutil.walk_packages(room.__path__, room.__name__ + '.'):\n"
        "    importlib.import_module(found.name)\n"
    )


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_brings_what_is_shown_or_the_command_along(room):
    loaded = modules_after(every_module_of(room))
    assert f"bestk.{room}" in loaded
    shown = [m for m in loaded if m.split(".")[:2] in (["bestk", "show"], ["bestk", "cli"])]
    assert not shown
    assert not loaded & {"matplotlib", "typer", "pysindy"}


def test_importing_bestk_brings_next_to_nothing_along():
    loaded = modules_after("import bestk")
    assert not loaded & {"numpy", "scipy", "numba", "sklearn", "matplotlib"}


DOCUMENTED = (
    "plots.gap", "plots.COLOURS", "report.result_page", "report.path_page", "report.cv_page",
    "report.discovery_page", "progress.Progress", "progress.LiveDisplay", "storage.save",
    "storage.load", "storage.from_json", "certificate.ProofTree", "certificate.SplitRecord",
    "readers.open_data", "readers.Data", "cross_validation.cross_validate_batches",
    "verification.verify_batches", "verification.Verification", "datasets.make_synthetic",
    "sindy.discover", "sindy.OKRidge", "sindy.Discovery",
)  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTED)
def test_import_paths_of_the_documentation_stay(name):
    module, _, thing = name.partition(".")
    assert thing in dir(__import__(f"bestk.{module}", fromlist=[thing]))


def test_names_of_the_documentation_need_one_import():
    modules_after("import bestk\n" + "\n".join(f"bestk.{name}" for name in DOCUMENTED))
