"""Is an answer what was asked for? Objective, groups, rules and constraints, all recomputed here.

A claim names the features of its model and their coefficients. A group counts if one of its
features is named, and a hierarchy is about groups that are named: a coefficient may be zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..harness.referee import Verdict, judge
from .problems import Data, Problem

FEASIBLE = 1e-6
"""|C b - d| may be this share of |C| |b| + |d|: the tolerance of MIP solvers."""


class Judgement(NamedTuple):
    """A verdict whose size is the number of groups, and the largest |C b - d|."""

    verdict: Verdict
    violation: float
    largest: float
    """The largest coefficient in absolute value."""


def judged(problem: Problem, data: Data, claim: dict[str, Any]) -> Judgement:
    X, y = data.stacked()
    verdict = judge(X, y, k=X.shape[1], alpha=problem.alpha, claim=claim)
    if "error" in claim:
        return Judgement(verdict, np.nan, np.nan)
    support = np.array(claim["support"], dtype=int)
    b = np.zeros(X.shape[1])
    b[support] = claim["coef"]
    chosen = set(data.groups[support].tolist())
    complaints = [verdict.complaint] if verdict.complaint else []
    if len(chosen) > problem.k:
        complaints.append(f"{len(chosen)} groups")
    complaints += broken(problem.structure, data, chosen)
    violation = 0.0
    if len(data.lhs):
        excess = np.abs(data.lhs @ b - data.rhs)
        scale = np.abs(data.lhs) @ np.abs(b) + np.abs(data.rhs)
        violation = float(excess.max())
        if (excess > FEASIBLE * np.maximum(scale, 1.0)).any():
            complaints.append(f"a constraint is violated by {violation:.3g}")
    fields = {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}
    fields |= {"size": len(chosen), "complaint": "; ".join(complaints)}
    return Judgement(Verdict(**fields), violation, float(np.abs(b).max(initial=0.0)))


def broken(kind: str, data: Data, chosen: set[int]) -> list[str]:
    """Terms that are chosen without the parents that the hierarchy asks for."""
    test = {"strong": all, "weak": any}.get(kind)
    if test is None:
        return []
    return [
        f"{data.names[child]} without its parents"
        for child in sorted(chosen)
        if data.parents[child] and not test(parent in chosen for parent in data.parents[child])
    ]
