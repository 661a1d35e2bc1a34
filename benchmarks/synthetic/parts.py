"""The parts of the synthetic study: instances, and which contenders meet on them."""

from __future__ import annotations

from functools import partial
from itertools import product

from ..harness.arena import Instance
from ..harness.contest import Part
from ..harness.paper import ALPHA
from .contenders import (
    CONTENDERS,
    FLOOR,
    GUROBI,
    HEURISTICS,
    OKRIDGE,
    ONE_THREAD,
    PENALISED,
    RELAXED,
    SCIP,
    VARIANTS,
)

RHOS = (0.1, 0.3, 0.5, 0.7, 0.9)
RIDGES = (0.001, 0.1, 10.0)

part = partial(Part, contenders=CONTENDERS)


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

PARTS = {
    "small": part(
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
    "medium": part(
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
    "tall": part(
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
    "square": part(
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
    "square peers": part(
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
    "ridge": part(
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
    "wide": part(
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
    "minute": part(
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
    "ablation": part(
        title="What each part is worth",
        question="bestk with one thing changed.",
        limit=10.0,
        meetings=[(_ABLATION, ["bestk", *VARIANTS])],
    ),
    "bounds": part(
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
    "scaling": part(
        title="How the cost grows",
        question="Time against p, n, k, rows per feature and the number of threads.",
        limit=20.0,
        meetings=[([i for group in SCALING.values() for i in group], ["bestk", *ONE_THREAD])],
    ),
    "quick": part(
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
