"""Who takes part in the study of real tables, and what each is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..harness.answering import Question
from ..harness.arena import Arena, Contender, Task
from ..harness.paper import GAP
from .problems import Problem


def _boxed(solver: str, **more: Any) -> Contender:
    return Contender(solver=solver, kind="certified", is_warm=True, is_boxed=True, **more)


def _mip(solver: str, formulation: str, most_features: int) -> Contender:
    options = {"formulation": formulation}
    return Contender(
        solver=solver, kind="certified", options=options, most_features=most_features
    )  # fmt: skip


CONTENDERS: dict[str, Contender] = {
    "bestk": Contender(solver="bestk", kind="certified", options={"honest": True}),
    "okridge": Contender(solver="okridge", kind="certified"),
    "Gurobi, eigen-perspective": _mip("gurobi", "eigen-perspective", 66),
    "Gurobi, SOS1": _mip("gurobi", "sos1", 100),
    "SCIP": _mip("scip", "eigen-perspective", 100),
    "bestk in a box": _boxed("bestk", options={"honest": True}),
    "l0bnb in a box": _boxed("l0bnb", is_penalised=True),
    "el0ps in a box": _boxed("el0ps", is_penalised=True),
    "abess": Contender(solver="abess", kind="heuristic", options={"twice": True}),
    "lasso": Contender(solver="lasso", kind="heuristic"),
}
SOLVERS = tuple(dict.fromkeys(contender.solver for contender in CONTENDERS.values()))
SIZES = {"el0ps": (5, 10)}
"""Not all sizes for a solver that compiles for up to a minute before each run."""


def program(contender: str) -> str:
    """What the contender is a formulation of: the best of them counts."""
    return contender.split(",")[0]


PROGRAMS = {program(name): contender for name, contender in CONTENDERS.items()}
"""In the order of tables, each with its last formulation, which takes the most features."""


def takes(contender: Contender, problem: Problem, p: int) -> bool:
    """Whether it is asked, with p columns."""
    is_small = p <= (contender.most_features or p)
    return is_small and problem.k in SIZES.get(contender.solver, (problem.k,))


@dataclass
class Meeting(Arena):
    """All aim at a gap of GAP relative to the whole objective.

    Peers measure their gap against y'y - f, so they are told GAP f / (y'y - f), with the least f
    that is known: that of the beam search, or of a contender that ran before.
    """

    least: float = float("inf")

    def goal(self, contender: Contender, question: Question, yy: float) -> float:
        if contender.options.get("honest"):
            return GAP
        f = min(self.least, self._beam(question)["objective"])
        return GAP * f / (yy - f)

    def run(self, task: Task, contender: Contender, kind: type) -> Any:
        row = super().run(task, contender, kind)
        if not row.complaint:
            self.least = min(self.least, row.objective)
        return row
