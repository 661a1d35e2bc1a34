"""The synthetic study of the paper: which solver proves the best model, and how fast?

    python -m benchmarks.synthetic                  all studies, a good hour on two cores
    python -m benchmarks.synthetic small tall       some of them
    python -m benchmarks.synthetic --full           the paper's whole grid, an hour for each run

Every row is appended to benchmarks/results/synthetic.csv as soon as it is measured, and a study
that was interrupted goes on where it stopped: rows that are closed, or had as much time, stay.
Delete the file to start anew. At the end, or alone with --report, the rows become
benchmarks/results/synthetic.md and the figures of the documentation.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from bestk.datasets import make_synthetic

from . import environments, machine, synthetic_report
from .instances import GAP
from .objective import judge, refitted
from .penalty import forward_penalty
from .report import RESULTS
from .rows import append, read
from .runner import Question
from .synthetic_rows import Row
from .synthetic_studies import BOX, CONTENDERS, STUDIES, Contender, Instance, Task


def main() -> None:
    arguments = _arguments()
    names = arguments.studies or [name for name in STUDIES if name != "quick"]
    folder = RESULTS / "quick" if names == ["quick"] else RESULTS
    path = folder / "synthetic.csv"
    if not arguments.report:
        if os.getloadavg()[0] > 0.5:
            print("the machine is busy: times will mean little, those of BLAS threads least")
        for name in names:
            print(f"{name}: {STUDIES[name].title}")
            tasks = STUDIES[name].tasks(arguments.full, arguments.limit)
            measure_missing(tasks, path, arguments.threads)
    synthetic_report.write(path, into_docs=folder == RESULTS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "studies", nargs="*", choices=STUDIES, metavar="STUDY", help=str([*STUDIES])
    )
    parser.add_argument("--full", action="store_true", help="the paper's grid and limits (days)")
    parser.add_argument("--limit", type=float, help="seconds for each run instead of the study's")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--threads", type=int, default=2, help="of every solver (default 2)")
    return parser.parse_args()


def measure_missing(tasks: list[Task], path: Path, threads: int) -> None:
    """Measure the tasks that the file does not answer yet; one instance is made once."""
    known = {(row.instance, row.contender): row for row in read(path, Row)}

    def is_missing(task: Task) -> bool:
        row = known.get((task.instance, task.contender))
        return row is None or not (row.verdict.closed(GAP) or row.limit >= task.limit)

    missing = [task for task in tasks if is_missing(task)]
    for instance, group in groupby(missing, key=lambda task: task.instance):
        print(f"  {instance}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
            arena = Arena.of(instance, Path(folder), threads)
            for task in group:
                row = arena.run(task)
                print(f"    {row}", file=sys.stderr, flush=True)
                append(path, row, threads)


@dataclass
class Arena:
    """One instance on disk, and what contenders may be told about it."""

    instance: Instance
    data: environments.DataFiles
    true_support: np.ndarray
    threads: int
    beam: dict[str, Any] | None = None
    l0: float | None = None

    @classmethod
    def of(cls, instance: Instance, folder: Path, threads: int) -> Arena:
        n, p, rho, _, k = instance
        X, y, coef = make_synthetic(n, p, k, rho=rho)
        return cls(
            instance=instance,
            data=environments.DataFiles.write(folder, X, y),
            true_support=np.flatnonzero(coef),
            threads=threads,
        )

    def run(self, task: Task) -> Row:
        """One contender's claim, recomputed from the data."""
        contender = CONTENDERS[task.contender]
        question = Question(
            k=self.instance.k,
            alpha=self.instance.alpha,
            gap=GAP,
            time_limit=task.limit,
            threads=contender.threads or self.threads,
            options=dict(contender.options),
        )
        X, y = self.data.arrays()
        head_start = self._tell(contender, question, X, y)
        claim = environments.run_on(self.data, contender.solver, question)
        verdict = judge(
            X,
            y,
            k=question.k,
            alpha=question.alpha,
            claim=claim,
            best_known=refitted(X, y, self.true_support, question.alpha),
        )
        versions = claim.get("versions", {})
        return Row(
            **self.instance._asdict(),
            contender=task.contender,
            threads=question.threads,
            limit=task.limit,
            seconds=verdict.seconds + head_start,
            nodes=verdict.nodes,
            objective=verdict.objective,
            lower_bound=verdict.lower_bound,
            yy=verdict.yy,
            size=verdict.size,
            true_features=len(set(self.true_support) & set(claim.get("support", []))),
            complaint=verdict.complaint,
            notes=json.dumps(claim.get("notes", {})),
            versions=", ".join(f"{name} {number}" for name, number in versions.items()),
            commit=machine.commit(),
        )

    def _tell(self, contender: Contender, question: Question, X, y) -> float:
        """Give the contender what it needs to know; the seconds that are counted for that."""
        if not (contender.is_warm or contender.is_boxed or contender.is_penalised):
            return 0.0
        beam = self._beam(question)
        if contender.is_penalised:
            alpha = question.alpha
            self.l0 = self.l0 or forward_penalty(X, y, question.k, alpha, beam["support"])
            question.options["l0"] = self.l0
        if contender.is_boxed:
            question.options["M"] = BOX * float(np.abs(beam["coef"]).max())
        if contender.is_warm:
            start = np.zeros(self.instance.p)
            start[beam["support"]] = beam["coef"]
            question.options["start"] = start.tolist()
        return float(beam["seconds"]) if contender.is_warm else 0.0

    def _beam(self, question: Question) -> dict[str, Any]:
        """The model of bestk's beam search, made once."""
        if self.beam is None:
            cold = replace(question, options={}, threads=self.threads)
            self.beam = environments.run_on(self.data, "beam", cold)
            if "error" in self.beam:
                raise RuntimeError(f"beam search failed: {self.beam['error']}")
        return self.beam


if __name__ == "__main__":
    main()
