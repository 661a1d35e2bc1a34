"""What the study of wide data measures: instances in their boxes, contenders, limits."""

from __future__ import annotations

from functools import partial

from ..harness.arena import Contender, Instance
from ..harness.contest import Part

FREE = ", no box"
"""Ends the name of a contender that is told nothing about coefficients."""
STEPS = (30, 100, 400)
"""Iterations after which the bounds of iterative methods are looked at."""

ROWS = [
    Instance(500, 3000, 0.1, 0.1, M=1.5),
    Instance(500, 3000, 0.1, 10.0, M=1.5),
    Instance(1000, 1000, 0.1, 0.1, M=1.5),
    Instance(1000, 1000, 0.9, 1.0, M=2.0),
    Instance(4000, 4000, 0.9, 1.0, M=2.0),
    Instance(200, 3000, 0.1, 10.0, M=1.5),
    Instance(100, 3000, 0.1, 10.0, M=1.5),
    Instance(500, 100_000, 0.1, 1.0, M=1.5),
]
GROWTH = [Instance(500, p, 0.1, 1.0, M=1.5) for p in (1000, 3000, 10_000, 30_000, 100_000)]
ROOTS = ROWS[:2]

PEERS = {
    "l0bnb": Contender(
        solver="l0bnb", kind="certified", is_warm=True, is_penalised=True, is_boxed=True
    ),
    "el0ps": Contender(
        solver="el0ps", kind="certified", is_warm=True, is_penalised=True, is_boxed=True
    ),
}


def _roots() -> dict[str, Contender]:
    """The bound at the root by every method, in a box and without.

    Where most eigenvalues are zero bestk's ADMM takes a tenth of the paper's 2 / rho, so that
    ten times as much is the paper's.
    """
    kinds = {
        "descent": {"method": "descent"},
        "descent, to the end": {"method": "descent", "closeness": 1e-6},
        "fast": {"method": "fast"},
    }
    for title, options in {
        "subgradient": {"method": "subgradient"},
        "ADMM": {"method": "admm"},
        "ADMM, 2/ρ of the paper": {"method": "admm", "factor": 10.0},
        "ADMM, 2/ρ a hundredth of it": {"method": "admm", "factor": 0.1},
    }.items():
        kinds |= {f"{title}, {n} steps": {**options, "iterations": n} for n in STEPS}
    return {
        f"root: {title}{FREE if is_free else ''}": Contender(
            solver="root", kind="variant", options=options, is_warm=True, is_boxed=not is_free
        )
        for title, options in kinds.items()
        for is_free in (False, True)
    }


ROOT_BOUNDS = _roots()
CONTENDERS: dict[str, Contender] = {
    "bestk": Contender(solver="bestk", kind="certified", is_boxed=True),
    "bestk" + FREE: Contender(solver="bestk", kind="certified"),
    **PEERS,
    **ROOT_BOUNDS,
}


part = partial(Part, contenders=CONTENDERS)


def _limit(instance: Instance, contender: str) -> float:
    if contender in PEERS:
        return 120.0 if instance.p <= 3000 else 180.0
    if contender.endswith(FREE):
        return 10.0
    return 60.0 if instance.n <= 200 else 240.0


PARTS = {
    "rows": part(
        title="As many features as rows, and many more",
        question="Everybody has the same box on the coefficients, unless it says so.",
        limit=_limit,
        meetings=[(ROWS, ["bestk", *PEERS]), (ROOTS, ["bestk" + FREE])],
    ),
    "growth": part(
        title="How time and memory grow with p",
        question="500 rows, correlation 0.1, alpha = 1, |b| <= 1.5.",
        limit=lambda instance, contender: 240.0 if contender == "bestk" else 60.0,
        meetings=[(GROWTH, ["bestk"]), (GROWTH[:3], ["l0bnb"])],
    ),
    "bounds": part(
        title="Bounds at the root",
        question="What each method proves before any branching, and in what time.",
        limit=60.0,
        meetings=[(ROOTS, ROOT_BOUNDS)],
    ),
}
