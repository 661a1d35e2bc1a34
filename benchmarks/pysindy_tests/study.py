"""The study as a whole: two runs of the tests, and the page."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any

from ..harness import machine
from ..harness.environments import VENVS, python_of, run_script
from ..harness.study import Study
from . import report
from .rows import Row, paired
from .sources import ENVIRONMENT, folder_of_tests

PATIENCE = 3600.0


class PySINDyTests(Study):
    name, title, row = "pysindy_tests", "PySINDy's own tests with OKRidge", Row
    findings = staticmethod(report.findings)
    tables = staticmethod(report.tables)

    def __init__(self) -> None:
        self.packages: dict[str, str] = {}

    def options(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--quick", action="store_true", help="without the tests of SBR, which take a minute")
        add("--threads", type=int, default=2, help="of OKRidge and BLAS (default 2)")

    def notes(self, arguments: Namespace) -> list[str]:
        packages = ", ".join(f"{name} {number}" for name, number in self.packages.items())
        return [*machine.describe(arguments.threads), packages]

    def measure(self, arguments: Namespace, known: list[Row]) -> Iterator[Row]:
        """Both runs, unless the file has them."""
        if known:
            return
        words = '-k "not SBR and not sbr"' if arguments.quick else ""
        runs = [run_tests(which, words, arguments.threads) for which in ("without", "with")]
        self.packages = runs[1]["versions"]
        yield from paired(*(run["tests"] for run in runs))


def run_tests(stand_ins: str, words: str, threads: int) -> dict[str, Any]:
    """What became of each test, "with" or "without" OKRidge in place."""
    folder, python = folder_of_tests(), python_of(ENVIRONMENT)
    answer = VENVS / ENVIRONMENT / f"{stand_ins}.json"
    answer.unlink(missing_ok=True)
    print(f"  running the tests {stand_ins} OKRidge", flush=True)
    paths = (machine.ROOT, machine.ROOT / "src")
    found = run_script(
        *(python, "pysindy_tests/pytest_run.py", folder, stand_ins, words, answer),
        threads=threads,
        patience=PATIENCE,
        PYTHONPATH=os.pathsep.join(map(str, paths)),
        NUMBA_CACHE_DIR=str(VENVS / ENVIRONMENT / "numba"),
    )
    if "error" in found:
        raise RuntimeError(f"the tests {stand_ins} OKRidge did not run: {found['error']}")
    return found
