"""Every solver alone in a process with pinned threads, on the same files; one row each."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..harness import machine
from ..harness.contest import by_task
from ..harness.environments import python_of, run_script
from ..harness.paper import GAP
from .judging import judged
from .problems import Data, Problem, data_of
from .rows import Row

BESTK = "bestk"
ROOM = 2.0
"""The box of those who need one, in units of the largest coefficient of our model."""


class Peer(NamedTuple):
    """A solver file, the environment that it runs in, and the problems that it can be asked."""

    environment: str
    script: str
    takes: Callable[[Problem], bool]
    is_heuristic: bool = False


def _gurobi(problem: Problem) -> bool:
    """Not without rules, which other studies ask."""
    return problem.structure in ("weak", "strong", "groups")


def _sparselm(problem: Problem) -> bool:
    """It knows strong hierarchies and groups."""
    return problem.structure in ("strong", "groups")


PEERS = {
    "abess": Peer("abess", "abess_run.py", lambda one: one.part == "factors", True),
    "group lasso": Peer("skglm", "skglm_run.py", lambda one: one.part == "factors", True),
    "Gurobi": Peer("gurobi", "gurobi_run.py", _gurobi),
    "sparse-lm": Peer("sparselm", "sparselm_run.py", _sparselm),
    "MIOSR": Peer("pysindy", "pysindy_run.py", lambda one: one.part == "constraints"),
}


def measured(
    problems: Iterable[Problem], peers: Sequence[str], threads: int, known: list[Row]
) -> Iterator[Row]:
    """Rows that are not known yet, of the same data next to each other.

    bestk has a process for each k and penalty, in which hierarchies are solved in turns; then each
    peer has one for all.
    """
    answers = by_task(known)
    for title, group in groupby(problems, key=_same_data):
        some = list(group)
        print(f"  {', '.join(filter(None, title))}", flush=True)
        for _, together in groupby(some, key=lambda one: (one.k, one.alpha)):
            members = list(together)
            if any((problem, BESTK) not in answers for problem in members):
                for row in _asked(BESTK, members, threads, [{}] * len(members)):
                    answers[row.instance, BESTK] = row
                    yield row
        for name in peers:
            missing = [
                problem
                for problem in some
                if PEERS[name].takes(problem) and (problem, name) not in answers
            ]
            if missing:
                goals = [_goal(answers[problem, BESTK]) for problem in missing]
                yield from _asked(name, missing, threads, goals)


def _same_data(problem: Problem) -> tuple[str, str, str]:
    kind = "" if problem.part == "hierarchy" else problem.structure
    return problem.part, problem.data, kind


def _goal(ours: Row) -> dict[str, float]:
    """What peers are told: the gap that is ours in their units, and a box."""
    explained = ours.yy - ours.objective
    if not (np.isfinite(explained) and explained > 0.0):
        return {}
    return {
        "peer_gap": max(GAP * ours.objective / explained, 1e-10),
        "box": ROOM * ours.largest,
    }


def _asked(
    contender: str, problems: list[Problem], threads: int, goals: list[dict[str, float]]
) -> list[Row]:
    """Ask one solver; rows say what went wrong if something did."""
    data = [data_of(problem) for problem in problems]
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        here = Path(folder)
        _write(here, problems, data, threads, goals)
        files = [here / name for name in ("data.npz", "asked.json", "answer.json")]
        peer = PEERS.get(contender)
        python = Path(sys.executable) if peer is None else python_of(peer.environment)
        script = "bestk_run.py" if peer is None else f"peers/{peer.script}"
        patience = 120.0 + 6.0 * sum(problem.limit for problem in problems)
        claims: Any = run_script(
            python, f"structure/{script}", *files, threads=threads, patience=patience
        )
    if isinstance(claims, dict):
        claims = [claims] * len(problems)
    rows = [_row(contender, *one, threads) for one in zip(problems, data, claims, strict=True)]
    for row in rows:
        print(f"    {row.structure:<8} k {row.k:<3} {row}", flush=True)
    return rows


def _write(folder, problems, data, threads, goals) -> None:
    first = data[0]
    X, y = first.stacked()
    np.savez(
        folder / "data.npz", X=first.X, Y=first.Y, matrix=X, target=y,
        groups=first.groups, lhs=first.lhs, rhs=first.rhs,
    )  # fmt: skip
    questions = [
        {
            "names": list(its_data.names),
            "parents": [list(own) for own in its_data.parents],
            "structure": problem.structure,
            "k": problem.k,
            "alpha": problem.alpha,
            "fit_intercept": its_data.fit_intercept,
            "gap": GAP,
            "peer_gap": GAP,
            "limit": problem.limit,
            "threads": threads,
            "box": 1e3,
        }
        | goal
        for problem, its_data, goal in zip(problems, data, goals, strict=True)
    ]
    (folder / "asked.json").write_text(json.dumps(questions))


def _row(contender: str, problem: Problem, data: Data, claim: dict[str, Any], threads: int) -> Row:
    verdict, violation, largest = judged(problem, data, claim)
    box = claim.get("box")
    verified = claim.get("verified", "")
    return Row(
        part=problem.part,
        data=problem.data,
        structure=problem.structure,
        n=len(data.X),
        p=data.X.shape[1] * data.Y.shape[1],
        n_groups=len(np.unique(data.groups)),
        k=problem.k,
        alpha=problem.alpha,
        contender=contender,
        threads=threads,
        limit=problem.limit,
        seconds=verdict.seconds,
        runs=claim.get("runs", 0),
        nodes=verdict.nodes,
        objective=verdict.objective,
        lower_bound=verdict.lower_bound,
        yy=verdict.yy,
        size=verdict.size,
        violation=violation,
        box=np.nan if box is None else box,
        largest=largest,
        verify=claim.get("verify", np.nan),
        verified=verified,
        complaint=verdict.complaint,
        notes=claim.get("notes", ""),
        versions=claim.get("versions", ""),
        commit=machine.commit(),
    )
