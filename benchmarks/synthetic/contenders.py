"""Who takes part in the synthetic study: solvers, their formulations, and variants of bestk."""

from __future__ import annotations

from itertools import product
from typing import Any

from ..harness.arena import Contender

FORMULATIONS = ("sos1", "bigM 50", "bigM 20", "bigM 5", "perspective", "eigen-perspective")


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
