"""Which rows count and how they rank: what tables and figures of the synthetic study rest on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..harness.referee import ROUNDING
from .rows import Row
from .studies import CONTENDERS, STUDIES, Instance


def reviewed(rows: Iterable[Row]) -> list[Row]:
    """The last row of each task, with bounds refuted by what others have found."""
    latest = list({(row.instance, row.contender): row for row in rows}.values())
    best = best_known(latest)

    def review(row: Row) -> Row:
        if row.complaint or not row.lower_bound > best[row.instance] + ROUNDING * row.yy:
            return row
        return replace(row, complaint=f"bound {row.lower_bound:.9g} is above another's model")

    return [review(row) for row in latest]


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


def chosen(study: str, rows: Iterable[Row]) -> list[Row]:
    """Rows that belong to a study, in its order."""
    known = {(row.instance, row.contender): row for row in rows}
    keys = [(task.instance, task.contender) for task in STUDIES[study].tasks(full=True)]
    return [known[key] for key in keys if key in known]


def label(instance: Instance) -> str:
    """n, p, rho, and what differs from the usual penalty and k."""
    text = f"{instance.n}, {instance.p}, {instance.rho}"
    return text + ("" if instance.alpha == Instance(1, 1, 0.0).alpha else f", α {instance.alpha:g}")
