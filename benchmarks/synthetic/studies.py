"""What the synthetic studies measure: contenders, instances, and which meet in which study."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from ..harness.arena import Contender, Task
from ..harness.paper import ALPHA, K

RHOS = (0.1, 0.3, 0.5, 0.7, 0.9)
RIDGES = (0.001, 0.1, 10.0)
FORMULATIONS = ("sos1", "bigM 50", "bigM 20", "bigM 5", "perspective", "eigen-perspective")
HOUR = 3600.0


class Instance(NamedTuple):
    """A problem of :func:`bestk.datasets.make_synthetic`, seed 0, with its k and penalty."""

    n: int
    p: int
    rho: float
    alpha: float = ALPHA
    k: int = K


def _mip(solver: str, title: str, limits: tuple[int, int]) -> dict[str, Contender]:
    """Formulations cold and warm; limits on p for perspectives and for the others."""
    return {
        f"{title} {formulation}{' + beam' if warm else ''}": Contender(
            solver=solver,
            kind="certified",
            options={"formulation": formulation},
            is_warm=warm,
            most_features=limits[0] if "perspective" in formulation else limits[1],
        )
        for formulation, warm in product(FORMULATIONS, (False, True))
    }


def _variant(threads: int | None = None, advanced: dict | None = None, **options: Any) -> Contender:
    changed = options | ({"advanced": advanced} if advanced else {})
    return Contender(solver="bestk", kind="variant", options=changed, threads=threads)


GUROBI = _mip("gurobi", "Gurobi", (66, 100))
SCIP = _mip("scip", "SCIP", (100, 100))
OKRIDGE = {
    "okridge": Contender(solver="okridge", kind="certified"),
    "okridge, 1 thread": Contender(solver="okridge", kind="certified", threads=1),
}
PENALISED = {
    "l0bnb in a box": Contender(
        solver="l0bnb", kind="certified", is_warm=True, is_penalised=True, is_boxed=True
    ),
    "el0ps": Contender(solver="el0ps", kind="certified", is_penalised=True),
    "el0ps in a box": Contender(
        solver="el0ps", kind="certified", is_warm=True, is_penalised=True, is_boxed=True
    ),
}
RELAXED = {
    "optimal perspective (SDP)": Contender(solver="sdp", kind="certified", most_features=100)
}
HEURISTICS = {
    "beam search": Contender(solver="beam", kind="heuristic"),
    "abess": Contender(solver="abess", kind="heuristic"),
    "lasso": Contender(solver="lasso", kind="heuristic"),
    "OMP": Contender(solver="omp", kind="heuristic"),
}
FLOOR = {"X.T @ X alone": Contender(solver="gram", kind="floor")}
VARIANTS = {
    "fast bound": _variant(bound="fast"),
    "ADMM bound": _variant(bound="admm"),
    "subgradient bound": _variant(bound="subgradient"),
    "breadth-first": _variant(search="breadth-first"),
    "depth-first": _variant(search="depth-first"),
    "batches of 1": _variant(advanced={"batch_size": 1}),
    "batches of 8": _variant(advanced={"batch_size": 8}),
    "batches of 64": _variant(advanced={"batch_size": 64}),
    "batches of 512": _variant(advanced={"batch_size": 512}),
    "uniform d": _variant(advanced={"split": "uniform"}),
    "no fixing": _variant(advanced={"fixing": False}),
    "no enumeration": _variant(advanced={"enumeration": False}),
    "no rebuild": _variant(advanced={"rebuild": False}),
    "no record": _variant(advanced={"record": False}),
    "paper's branching": _variant(advanced={"branching": "heuristic"}),
    "all as in the paper": _variant(
        search="breadth-first",
        bound="admm",
        advanced={
            "fixing": False,
            "enumeration": False,
            "split": "uniform",
            "branching": "heuristic",
            "rebuild": False,
            "batch_size": 1,
        },
    ),
}
ONE_THREAD = {"1 thread": _variant(threads=1)}

CONTENDERS: dict[str, Contender] = {
    "bestk": Contender(solver="bestk", kind="certified"),
    "bestk in a box": Contender(solver="bestk", kind="certified", is_warm=True, is_boxed=True),
    **OKRIDGE,
    **GUROBI,
    **SCIP,
    **RELAXED,
    **PENALISED,
    **HEURISTICS,
    **FLOOR,
    **VARIANTS,
    **ONE_THREAD,
}


@dataclass(frozen=True, kw_only=True)
class Study:
    """Pairs of instances and contenders, in the order in which they are measured."""

    title: str
    question: str
    """A sentence on what is asked, or of what."""
    limit: float
    """Seconds for one run."""
    meetings: Sequence[tuple[Iterable[Instance], Iterable[str]]]
    more: Sequence[tuple[Iterable[Instance], Iterable[str]]] = ()
    """What --full adds, with an hour for each run as in the paper."""
    table: str = ""
    """The study in whose table the rows are shown, if it is another one."""

    def tasks(self, full: bool = False, limit: float | None = None) -> list[Task]:
        """All tasks, each once, those of one instance together."""
        meetings = [*self.meetings, *(self.more if full else ())]
        seconds = limit or (HOUR if full else self.limit)
        tasks = {
            Task(instance, name, seconds)
            for instances, names in meetings
            for instance in instances
            for name in names
            if instance.p <= (CONTENDERS[name].most_features or instance.p)
        }
        order = list(dict.fromkeys(i for instances, _ in meetings for i in instances))
        names = list(CONTENDERS)
        return sorted(tasks, key=lambda t: (order.index(t.instance), names.index(t.contender)))


def _grid(ns, ps, rhos, alphas=(ALPHA,)) -> list[Instance]:
    return [Instance(*cell) for cell in product(ns, ps, rhos, alphas)]


_TALL = 100_000
_SHOWN = (0.1, 0.5, 0.9)  # correlations of the paper's figures
_TINY = [Instance(1000, 20, 0.9), Instance(60, 20, 0.5)]
_SMALL = [
    *_TINY,
    Instance(1000, 60, 0.9),
    Instance(120, 60, 0.5),
    Instance(150, 60, 0.9),
    Instance(1000, 100, 0.9),
    Instance(150, 100, 0.5),
    Instance(150, 100, 0.9),
]
_SOME_SMALL = [Instance(1000, 20, 0.9), Instance(1000, 60, 0.9), Instance(120, 60, 0.5)]
_MEDIUM = [
    *_grid((10_000,), (100, 500, 1000), _SHOWN),
    *_grid((3000, 2000, 1500), (1000,), _SHOWN),
    Instance(1100, 1000, 0.1),
]
_SOME_MEDIUM = [Instance(10_000, 500, 0.1), Instance(3000, 1000, 0.5), Instance(2000, 1000, 0.9)]
_ABLATION = [
    Instance(120, 60, 0.5),
    Instance(150, 60, 0.9),
    Instance(1000, 100, 0.9),
    Instance(2000, 1000, 0.9),
    Instance(1100, 1000, 0.1),
    Instance(5000, 3000, 0.9),
]
SCALING = {
    "p": [Instance(10_000, p, 0.5) for p in (125, 250, 500, 1000, 2000, 4000)],
    "n": [Instance(n, 500, 0.5) for n in (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)],
    "k": [Instance(5000, 500, 0.5, k=k) for k in (1, 2, 5, 10, 20, 40, 80)],
    "rows per feature": [Instance(n, 500, 0.9) for n in (700, 800, 1000, 1500, 2500)],
}
"""What the cost is measured against, and the instances."""

STUDIES = {
    "small": Study(
        title="Small problems, every contender",
        question="20 to 100 features, where the paper concedes to commercial solvers.",
        limit=6.0,
        meetings=[
            (_SMALL, ["bestk", *OKRIDGE, *GUROBI, *HEURISTICS, "l0bnb in a box"]),
            (_SMALL[:7], ["SCIP eigen-perspective", "SCIP eigen-perspective + beam"]),
            (_SMALL[:6], RELAXED),
            (_SOME_SMALL, [*SCIP, "el0ps in a box"]),
            (_SOME_SMALL[:1], PENALISED),
        ],
        more=[
            (
                _grid((150, 1000), (20, 40, 60, 80, 100), RHOS),
                ["bestk", *OKRIDGE, *GUROBI, *SCIP, *RELAXED, *PENALISED, *HEURISTICS],
            )
        ],
    ),
    "medium": Study(
        title="Medium problems",
        question="Up to 1000 features, from a hundred rows per feature to hardly more than one.",
        limit=20.0,
        meetings=[
            (_MEDIUM, ["bestk", *OKRIDGE]),
            (_SOME_MEDIUM, [*HEURISTICS, "l0bnb in a box"]),
            (_SOME_MEDIUM[1:], ["el0ps in a box"]),
        ],
        more=[(_MEDIUM, [*PENALISED, *HEURISTICS])],
    ),
    "tall": Study(
        title="Setting 1 of the paper",
        question="100000 rows.",
        limit=60.0,
        meetings=[
            (_grid((_TALL,), (100, 500, 1000), _SHOWN), ["bestk", "okridge", *FLOOR]),
            (_grid((_TALL,), (100, 500), (0.9,)), ["l0bnb in a box", *HEURISTICS]),
            (_grid((_TALL,), (100,), _SHOWN), ["Gurobi sos1", "Gurobi bigM 50 + beam"]),
            (_grid((_TALL,), (3000,), _SHOWN), ["bestk", "okridge", *FLOOR]),
            (_grid((_TALL,), (5000,), (0.5,)), ["bestk", "okridge", "OMP", *FLOOR]),
        ],
        more=[
            (
                _grid((_TALL,), (100, 500, 1000, 3000, 5000), RHOS, RIDGES),
                ["bestk", *OKRIDGE, *GUROBI, *PENALISED, *HEURISTICS, *FLOOR],
            )
        ],
    ),
    "square": Study(
        title="Setting 2 of the paper",
        question="3000 features, and few rows for each of them.",
        limit=120.0,
        meetings=[
            (_grid((4000, 5000, 6000, 7000), (3000,), RHOS), ["bestk"]),
        ],
        more=[
            (
                _grid((3000, 4000, 5000, 6000, 7000), (3000,), RHOS, RIDGES),
                ["bestk", *OKRIDGE, *PENALISED, *HEURISTICS],
            )
        ],
    ),
    "square peers": Study(
        title="Setting 2 of the paper, with peers",
        question="3000 features, shorter limits.",
        table="square",
        limit=30.0,
        meetings=[
            (_grid((3000,), (3000,), (0.1, 0.9)), ["bestk"]),
            (_grid((5000, 7000), (3000,), _SHOWN), ["okridge"]),
            (_grid((5000,), (3000,), (0.3, 0.7)), ["okridge"]),
            (_grid((5000,), (3000,), _SHOWN), HEURISTICS),
        ],
    ),
    "ridge": Study(
        title="Larger ridge penalties",
        question="Penalties of 0.1 and 10; elsewhere it is 0.001.",
        limit=30.0,
        meetings=[
            (_grid((_TALL,), (1000,), (0.9,), (0.1, 10.0)), ["bestk", "okridge"]),
            (_grid((5000,), (3000,), (0.1, 0.9), (0.1, 10.0)), ["bestk"]),
            (_grid((2000,), (1000,), (0.1, 0.9), (0.1, 10.0)), ["bestk"]),
            (_grid((2000,), (1000,), (0.1,), (0.1, 10.0)), ["okridge, 1 thread"]),
            (
                _grid((150,), (60,), (0.9,), (10.0,)),
                ["bestk", "okridge, 1 thread", "Gurobi bigM 5", "Gurobi eigen-perspective"],
            ),
        ],
    ),
    "wide": Study(
        title="Setting 3 of the paper",
        question="3000 features, 100 to 500 rows; no bounds on coefficients unless it says so.",
        limit=15.0,
        meetings=[
            (_grid((100, 200, 500), (3000,), (0.1,), RIDGES), ["bestk"]),
            (_grid((100, 200, 500), (3000,), (0.1,), (0.1,)), ["okridge", *HEURISTICS]),
            (_grid((500,), (3000,), (0.1,), (0.1, 10.0)), ["bestk in a box", "l0bnb in a box"]),
        ],
        more=[
            (
                _grid((100, 200, 500), (3000,), (0.1,), RIDGES),
                ["bestk", *OKRIDGE, *PENALISED, *HEURISTICS],
            )
        ],
    ),
    "minute": Study(
        title="okridge, given a minute",
        question="Problems that it leaves open in shorter time.",
        table="small",
        limit=60.0,
        meetings=[
            (
                [Instance(60, 20, 0.5), Instance(120, 60, 0.5), Instance(150, 100, 0.5)],
                ["okridge, 1 thread"],
            ),
            ([Instance(2000, 1000, 0.9)], ["okridge, 1 thread"]),
        ],
    ),
    "ablation": Study(
        title="What each part is worth",
        question="bestk with one thing changed.",
        limit=10.0,
        meetings=[(_ABLATION, ["bestk", *VARIANTS])],
    ),
    "bounds": Study(
        title="Fast bound and ADMM",
        question="The ablation of the paper: bestk with the paper's bounds alone.",
        limit=10.0,
        meetings=[
            (
                [
                    *_grid((10_000,), (500, 1000, 3000), (0.1, 0.9)),
                    *_grid((5000, 7000), (3000,), (0.1, 0.9)),
                ],
                ["bestk", "fast bound", "ADMM bound"],
            ),
        ],
    ),
    "scaling": Study(
        title="How the cost grows",
        question="Time against p, n, k, rows per feature and the number of threads.",
        limit=20.0,
        meetings=[([i for group in SCALING.values() for i in group], ["bestk", *ONE_THREAD])],
    ),
    "quick": Study(
        title="A short look",
        question="Two small instances and the main contenders.",
        table="small",
        limit=5.0,
        meetings=[
            (
                _TINY,
                [
                    *("bestk", "okridge", "Gurobi eigen-perspective", "SCIP eigen-perspective"),
                    *("l0bnb in a box", "el0ps in a box", *RELAXED, *HEURISTICS, *FLOOR),
                    "uniform d",
                ],
            )
        ],
    ),
}
