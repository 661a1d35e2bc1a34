"""Which rows count and how they rank: what tables and figures of the synthetic study rest on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..harness.arena import Instance
from ..harness.contest import Row
from ..harness.paper import ALPHA
from .contenders import CONTENDERS


def best_known(rows: Iterable[Row]) -> dict[Instance, float]:
    best: dict[Instance, float] = {}
    for row in rows:
        if row.size <= row.k and not np.isnan(row.objective):
            best[row.instance] = min(best.get(row.instance, np.inf), row.objective)
    return best


def standing(row: Row) -> tuple[bool, float]:
    """Closed runs by time before open ones by gap; what cannot be accepted comes last."""
    if row.is_closed:
        return False, row.seconds
    return True, np.inf if row.complaint or np.isnan(row.gap) else row.gap


def family(contender: str) -> str:
    """Formulations and numbers of threads of one program: the best of them counts."""
    return contender.split()[0].rstrip(",")


def certified(rows: Iterable[Row]) -> dict[Instance, dict[str, Row]]:
    """For every instance the best run of each certified program."""
    best: dict[Instance, dict[str, Row]] = {}
    for row in rows:
        if CONTENDERS[row.contender].kind == "certified":
            runs = best.setdefault(row.instance, {})
            name = family(row.contender)
            runs[name] = min(runs.get(name, row), row, key=standing)
    return {instance: runs for instance, runs in best.items() if "bestk" in runs}


def label(instance: Instance) -> str:
    """n, p, rho, and what differs from the usual penalty and k."""
    text = f"{instance.n}, {instance.p}, {instance.rho}"
    return text + ("" if instance.alpha == ALPHA else f", α {instance.alpha:g}")
