"""Where contenders meet: one instance on disk, what each is told, and the row it leaves."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bestk.datasets import make_synthetic

from . import environments, machine
from .answering import Question
from .fitting import refit
from .paper import ALPHA, GAP, K
from .prices import forward_penalty
from .referee import judge

BOX = 1.2
"""l0bnb's own rule for a box, given to others that need one, too."""
HELD = 1.0 - 1e-6
"""A coefficient that reaches this share of its box is held by it."""


class Instance(NamedTuple):
    """A problem of :func:`bestk.datasets.make_synthetic`, seed 0, with its penalty and k."""

    n: int
    p: int
    rho: float
    alpha: float = ALPHA
    k: int = K
    M: float | None = None
    """The box |b| <= M of contenders that need one, instead of a box made from a first model."""

    @property
    def name(self) -> str:
        """As the command line has it: n-p-rho-alpha."""
        return f"{self.n}-{self.p}-{self.rho:g}-{self.alpha:g}"

    def data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X, y and the coefficients that made them."""
        return make_synthetic(self.n, self.p, self.k, rho=self.rho)


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One way to run one solver file of benchmarks/solvers."""

    solver: str
    kind: Literal["certified", "heuristic", "variant", "floor"]
    """A variant is bestk with one thing changed; a floor is work that none can do without."""
    options: dict[str, Any] = field(default_factory=dict)
    threads: int | None = None
    """Where it differs from everyone else's."""
    is_warm: bool = False
    """Starts from the model of bestk's beam search, whose time counts."""
    is_penalised: bool = False
    """Wants a price per feature instead of k; it gets one at which k features are worth having."""
    is_boxed: bool = False
    """Told that no coefficient exceeds the instance's M, or else BOX times the largest of the beam
    search: its proof, if any, is conditional on that."""
    most_features: int | None = None
    """Larger problems are not tried: a licence ends, or no answer can be expected."""


class Task(NamedTuple):
    """One contender on one instance: synthetic, or any that has data, k, alpha and M."""

    instance: Any
    contender: str
    limit: float


def measured(
    tasks: Iterable[Task],
    known: dict[tuple[Any, str], Any],
    contenders: dict[str, Contender],
    *,
    kind: type,
    threads: int,
    place: type[Arena] | None = None,
) -> Iterator[Any]:
    """Rows of the tasks that are not answered yet; one instance is made once.

    Answered are tasks whose last row is closed, or had as much time. New rows become known.
    ``place`` is where they meet, if not in an ordinary arena.
    """

    def is_missing(task: Task) -> bool:
        row = known.get((task.instance, task.contender))
        return row is None or not (row.is_closed or row.limit >= task.limit)

    for instance, group in groupby(filter(is_missing, tasks), key=lambda task: task.instance):
        print(f"  {instance}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
            arena = (place or Arena).of(instance, Path(folder), threads)
            for task in group:
                row = arena.run(task, contenders[task.contender], kind)
                print(f"    {row}", file=sys.stderr, flush=True)
                known[instance, task.contender] = row
                yield row


@dataclass
class Arena:
    """One instance on disk, and what contenders may be told about it."""

    instance: Any
    data: environments.DataFiles
    true_support: np.ndarray
    threads: int
    beam: dict[str, Any] | None = None
    l0: float | None = None

    @classmethod
    def of(cls, instance: Any, folder: Path, threads: int) -> Arena:
        X, y, coef = instance.data()
        return cls(
            instance=instance,
            data=environments.DataFiles.write(folder, X, y),
            true_support=np.flatnonzero(coef),
            threads=threads,
        )

    def run(self, task: Task, contender: Contender, kind: type) -> Any:
        """One contender's claim, recomputed from the data; the fields of ``kind`` are kept."""
        question = Question(
            k=self.instance.k,
            alpha=self.instance.alpha,
            gap=GAP,
            time_limit=task.limit,
            threads=contender.threads or self.threads,
            options=dict(contender.options),
        )
        X, y = self.data.arrays()
        question = replace(question, gap=self.goal(contender, question, float(y @ y)))
        head_start = self._tell(contender, question, X, y)
        claim = environments.run_on(self.data, contender.solver, question)
        best = self._true_model(X, y, question.options.get("M", np.inf))
        verdict = judge(X, y, k=question.k, alpha=question.alpha, claim=claim, best_known=best)
        versions = claim.get("versions", {})
        columns = {
            **dict(zip(("n", "p"), X.shape, strict=True)),
            **self.instance._asdict(),
            **asdict(verdict),
            "contender": task.contender,
            "threads": question.threads,
            "limit": task.limit,
            "seconds": verdict.seconds + head_start,
            "true_features": len(set(self.true_support) & set(claim.get("support", []))),
            "notes": json.dumps(claim.get("notes", {})),
            "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
            "commit": machine.commit(),
            "memory": claim.get("memory", np.nan),
            "largest": float(np.abs(claim.get("coef") or [0.0]).max()),
            "box": question.options.get("M", np.nan),
        }
        return kind(**{column.name: columns[column.name] for column in fields(kind)})

    def goal(self, contender: Contender, question: Question, yy: float) -> float:
        """The paper's gap at which the contender may stop."""
        return question.gap

    def _true_model(self, X: np.ndarray, y: np.ndarray, M: float) -> float:
        """f of the true features, refitted; no model of the problem if it leaves the box."""
        coef, objective = refit(X, y, self.true_support, self.instance.alpha)
        return objective if np.abs(coef).max() <= M else np.inf

    def _tell(self, contender: Contender, question: Question, X, y) -> float:
        """Give the contender what it needs to know; the seconds that are counted for that."""
        M = self.instance.M
        if contender.is_boxed and M is not None:
            question.options["M"] = M
        if contender.is_penalised:
            alpha, support = question.alpha, self._beam(question)["support"]
            self.l0 = self.l0 or forward_penalty(X, y, question.k, alpha, support)
            question.options["l0"] = self.l0
        if contender.is_boxed and M is None:
            question.options["M"] = BOX * float(np.abs(self._beam(question)["coef"]).max())
        if not contender.is_warm:
            return 0.0
        beam = self._beam(question)
        start = np.zeros(X.shape[1])
        start[beam["support"]] = beam["coef"]
        question.options["start"] = start.tolist()
        return float(beam["seconds"])

    def _beam(self, question: Question) -> dict[str, Any]:
        """The model of bestk's beam search, made once."""
        if self.beam is None:
            cold = replace(question, options={}, threads=self.threads)
            self.beam = environments.run_on(self.data, "beam", cold)
            if "error" in self.beam:
                raise RuntimeError(f"beam search failed: {self.beam['error']}")
        return self.beam
