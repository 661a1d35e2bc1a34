"""The dynamical systems study as a whole: which trajectories, which methods, and the page."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from dataclasses import replace

from joblib import Parallel, delayed

from ..harness import machine
from ..harness.study import Study
from . import figures, report
from .measuring import METHODS, Effort, applies, by_runner, measure
from .rows import Row, Task
from .trajectories import SYSTEMS

# Trials of methods that would take most of the hour.
SLOW = {("MIOSR", "lorenz"): 1}


class Dynamics(Study):
    name, title, row = "dynamics", "Dynamical systems benchmark", Row
    findings = staticmethod(report.findings)
    tables = staticmethod(report.tables)
    draw = staticmethod(figures.draw)

    def options(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
        add(
            "--methods",
            nargs="+",
            choices=METHODS,
            default=METHODS,
            metavar="METHOD",
            help=str(METHODS),
        )
        add("--trials", type=int, help="of each length (default 5; MHD, MIOSR less)")
        add("--lengths", type=int, nargs="+", choices=range(1, 13), metavar="1..12")
        add("--full", action="store_true", help="20 trials of all 12 lengths (days)")
        add("--quick", action="store_true", help="one short trajectory of each system")
        add("--threads", type=int, default=2, help="of bestk and Gurobi (default 2)")
        add("--jobs", type=int, default=1, help="loops at once (default 1, for fair times)")

    def notes(self, arguments: Namespace) -> list[str]:
        jobs = [f"{arguments.jobs} loops at once"] if arguments.jobs > 1 else []
        return [*machine.describe(arguments.threads), *jobs]

    def measure(self, arguments: Namespace, known: list[Row]) -> Iterator[Row]:
        """Slow methods in their first trials only, unless trials are asked for."""
        done = {row.key for row in known}
        slow = {} if arguments.full or arguments.trials else SLOW
        effort = Effort(threads=arguments.threads)
        if arguments.quick:
            effort = replace(effort, ks=range(1, 4), solve_limit=2.0, loop_limit=4.0)
        asked = [
            (task, group)
            for task in _tasks(arguments)
            for group in by_runner(
                [
                    method
                    for method in arguments.methods
                    if (task, method) not in done
                    and applies(method, task.system)
                    and task.trial <= slow.get((method, task.system), task.trial)
                ]
            )
        ]
        found = Parallel(arguments.jobs, backend="threading", return_as="generator_unordered")(
            delayed(_measured)(task, group, effort) for task, group in asked
        )
        for i, rows in enumerate(found, start=1):
            print(f"  {i} of {len(asked)} done", file=sys.stderr, flush=True)
            yield from rows


def _measured(task: Task, methods: list[str], effort: Effort) -> list[Row]:
    print(f"  {task}: {', '.join(methods)}", file=sys.stderr, flush=True)
    return list(measure(task, methods, effort))


def _tasks(arguments: Namespace) -> Iterable[Task]:
    # Lengths for which means of MIOSR have been published; MHD is too slow for all of them.
    lengths = {"lorenz": (1, 3, 5, 7, 9, 12), "hopf": (1, 3, 5, 7, 9, 12), "mhd": (5, 9, 12)}
    trials = {"lorenz": 5, "hopf": 5, "mhd": 1}
    if arguments.full:
        lengths, trials = dict.fromkeys(SYSTEMS, range(1, 13)), dict.fromkeys(SYSTEMS, 20)
    if arguments.quick:
        lengths = {"lorenz": (2,), "hopf": (2,), "mhd": (1,)}
        trials = dict.fromkeys(SYSTEMS, 1)
    for system in arguments.systems:
        for trial in range(1, (arguments.trials or trials[system]) + 1):
            for length in arguments.lengths or lengths[system]:
                yield Task(system, length, trial)
