"""The flows study as a whole: which systems, which peers, and the page."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from joblib import Parallel, delayed, parallel_config

from ..harness import machine
from ..harness.environments import python_of
from ..harness.study import Study
from . import report
from .measuring import applies, measure
from .rows import Row
from .systems import load

NOISES = (0.0, 0.002, 0.01)
METHODS = ["bestk", "STLSQ", "SSR", "MIOSR"]
QUICK = ("Lorenz", "Rossler", "SprottK", "HyperXu")


class Flows(Study):
    name, title, row = "flows", "Flows of dysts", Row
    findings = staticmethod(report.findings)
    tables = staticmethod(report.tables)

    def options(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--systems", nargs="+", metavar="NAME", help="default: all that qualify")
        add(
            "--methods",
            nargs="+",
            choices=METHODS,
            default=METHODS,
            metavar="METHOD",
            help=str(METHODS),
        )
        add("--quick", action="store_true", help="four systems, one level of noise")
        add("--jobs", type=int, default=2, help="systems at once, each on one thread")

    def notes(self, arguments: Namespace) -> list[str]:
        return [*machine.describe(1)[:3], f"{arguments.jobs} systems at once, each on one thread"]

    def measure(self, arguments: Namespace, known: list[Row]) -> Iterator[Row]:
        """Whole systems, those with the fewest terms first."""
        names = arguments.systems or (QUICK if arguments.quick else None)
        noises = NOISES[1:2] if arguments.quick else NOISES
        done = {(row.system, row.method) for row in known}
        missing = [
            (flow, methods)
            for flow in sorted(load(names), key=lambda flow: flow.coef.size)
            if (
                methods := [
                    method
                    for method in arguments.methods
                    if (flow.name, method) not in done and applies(method, flow)
                ]
            )
        ]
        if not missing:
            return
        python_of("pysindy")  # made before several processes ask for it
        with parallel_config("loky", n_jobs=arguments.jobs, inner_max_num_threads=1):
            found = Parallel(return_as="generator_unordered")(
                delayed(measure)(flow, noises, methods) for flow, methods in missing
            )
            for i, rows in enumerate(found, start=1):
                yield from rows
                print(f"  {i} of {len(missing)}: {report.one_line(rows)}", flush=True)
