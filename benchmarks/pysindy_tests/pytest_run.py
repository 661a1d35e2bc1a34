"""Run tests in this environment: python pytest_run.py FOLDER STAND_INS ARGUMENTS ANSWER.json.

STAND_INS is "with" or "without"; ARGUMENTS are further words for pytest, separated by spaces.
"""

from __future__ import annotations

import os
import shlex
from importlib.metadata import version
from typing import Any

import pytest

from benchmarks.harness.process import answer

PACKAGES = ("pysindy", "pytest", "numpy", "scipy", "scikit-learn", "gurobipy", "cvxpy", "jax")
ORDER = ("passed", "skipped", "failed")
"""A test is as good as the worst of its setup, call and teardown."""


class Recorder:
    """A plugin that writes down what became of each test, in the order of the tests."""

    def __init__(self, stand_ins: Any) -> None:
        self.stand_ins = stand_ins
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.stand_ins is not None:
            parameters = getattr(item, "callspec", None)
            values = parameters.params.values() if parameters else ()
            self.stand_ins.begin(getattr(item, "originalname", item.name), values)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Any:
        report = (yield).get_result()
        entry = self.tests.setdefault(item.nodeid, {"outcome": "passed", "reason": ""})
        if ORDER.index(report.outcome) > ORDER.index(entry["outcome"]):
            entry["outcome"] = report.outcome
        if report.outcome == "failed" and call.excinfo is not None:
            entry["reason"] = call.excinfo.exconly().splitlines()[0]
        if self.stand_ins is not None:
            entry["uses"] = sorted(self.stand_ins.uses)
            entry["equations"] = self.stand_ins.equations
            entry["proven"] = self.stand_ins.proven


def main(folder: str, stand_ins: str, arguments: str) -> dict[str, Any]:
    os.chdir(folder)
    watched = None
    if stand_ins == "with":
        import bestk
        from benchmarks.pysindy_tests.stand_ins import StandIns

        bestk.warmup()  # no time limit of a test is spent on compilation
        watched = StandIns()
        watched.install()
    recorder = Recorder(watched)
    # The notebooks that test_notebooks.py runs are not in the source archive.
    words = ["-q", "-p", "no:cacheprovider", "--ignore", "test/test_notebooks.py", "test"]
    code = pytest.main([*words, *shlex.split(arguments)], plugins=[recorder])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {code!r}")
    return {
        "tests": [{"test": name, **entry} for name, entry in recorder.tests.items()],
        "versions": {package: version(package) for package in PACKAGES},
    }


if __name__ == "__main__":
    answer(main)
