"""The page of the study of structure, made from its rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from statistics import geometric_mean

from ..harness.contest import by_task
from ..harness.tables import Table, markdown_notes, markdown_rows, met_or_missed, percent
from .measuring import BESTK, PEERS
from .problems import HIERARCHIES, PARTS, Problem
from .rows import Row

FACTOR_SECONDS = 5.0
EQUATION_SECONDS = 10.0
SAME = 1e-6
"""A model is the best known one if its objective is within this share of it."""
TITLES = {
    "hierarchy": "Hierarchies: products only together with their factors",
    "factors": "Factors as groups: k counts factors",
    "constraints": "Constraints on equations",
}
NOTES = {
    "hierarchy": (
        "diabetes, all products of two features, standardised (442 x 65), with an intercept; "
        "weak: a product needs one of its factors, strong: all of them; ratio: seconds over those "
        "without rules, measured in turns in one process"
    ),
    "factors": (
        "30 factors of 2 to 6 levels, 90 columns, 10 factors matter, SNR 1, with an intercept; "
        "correlated: neighbouring factors are cut from variables with correlation 0.9; the number "
        "is that of rows; abess and the group lasso (skglm) prove nothing; grpsel and grpreg are "
        "packages of R and are left out"
    ),
    "constraints": (
        "Lorenz equations, 2000 rows, monomials up to the degree that is named; within: the first "
        "equation, coefficients of x0 and x1 sum up to 0; across: all equations, energy-preserving "
        "quadratic terms (10 constraints), k terms in all, where the truth has 7; MIOSR is told a "
        "MIPGap that amounts to the goal, and what it misses are tolerances of Gurobi"
    ),
}
BOXES = (
    "Gurobi and sparse-lm (which runs Gurobi) have one binary per group and are told a box of "
    "twice our largest coefficient, within which alone their bounds hold"
)
COMMON = (
    "seconds: from (X, y) to the answer, medians of up to 5 runs after a warm-up; gap: relative to "
    "the objective, recomputed from claimed bound and data, goal 1e-4; the clock of peers starts "
    "at centred data",
    "verify: seconds to verify the certificate; open: stopped by the limit, and not verified",
)
TREES = (
    "Problems without structure are no part of this page: `benchmarks/trees.py` compares nodes, "
    "objectives, supports and every array of their certificates between two versions."
)


def findings(rows: list[Row]) -> Iterator[str]:
    """Sentences, every number from the rows."""
    ours = [row for row in rows if row.contender == BESTK]
    yield from _hierarchy(ours)
    yield from _factors(ours)
    yield from _constraints(ours)
    yield from _verification(ours)
    for name, peer in PEERS.items():
        both = _both(rows, name)
        if both and peer.is_heuristic:
            yield _heuristic(rows, name, both)
        elif both:
            yield _certified(name, both)
    wrong = [row for row in rows if row.complaint]
    yield f"Answers that cannot be accepted: {_places(wrong)}."
    yield TREES


def _hierarchy(ours: list[Row]) -> Iterator[str]:
    known = by_task(ours)
    for row in ours:
        plain = known.get((row.instance._replace(structure="none"), BESTK))
        if row.structure == "strong" and row.k == 10 and plain is not None:
            ratio = row.seconds / plain.seconds
            yield (
                f"Strong hierarchy, k = 10: {ratio:.2f} times the seconds without rules; target: "
                f"no slower {met_or_missed(ratio <= 1.0 and row.is_closed)}."
            )


def _factors(ours: list[Row]) -> Iterator[str]:
    rows = [row for row in ours if row.part == "factors" and row.k == 8 and row.n == 2000]
    if rows:
        slowest = max(row.seconds for row in rows)
        met = slowest < FACTOR_SECONDS and all(row.is_closed for row in rows)
        yield (
            f"8 of 30 factors, 2000 rows: proven in at most {slowest:.3g} s; target: "
            f"{FACTOR_SECONDS:g} s {met_or_missed(met)}."
            if all(row.is_closed for row in rows)
            else f"8 of 30 factors, 2000 rows: not all proven; target {met_or_missed(met)}."
        )


def _constraints(ours: list[Row]) -> Iterator[str]:
    rows = [row for row in ours if row.part == "constraints"]
    if rows:
        closed = [row for row in rows if row.is_closed]
        slowest = max((row.seconds for row in closed), default=float("nan"))
        met = len(closed) == len(rows) and slowest < EQUATION_SECONDS
        left = [row for row in rows if not row.is_closed]
        yield (
            f"Constraints: {len(closed)} of {len(rows)} problems proven, in {slowest:.3g} s at "
            f"most; target: all in seconds {met_or_missed(met)}"
            + (f"; open: {_places(left)}." if left else ".")
        )


def _verification(ours: list[Row]) -> Iterator[str]:
    for part in PARTS:
        asked = [row for row in ours if row.part == part and row.verified]
        if asked:
            ratios = [row.verify / row.seconds for row in asked]
            refused = [row for row in asked if row.verified != "yes"]
            yield (
                f"Certificates, {part}: verified {len(asked) - len(refused)} of {len(asked)}, in "
                f"{geometric_mean(ratios):.2g} times the seconds of solving (geometric mean; "
                f"{min(ratios):.2g} to {max(ratios):.2g})."
            )


def _both(rows: list[Row], name: str) -> list[tuple[Row, Row]]:
    """(ours, theirs) of the problems that a peer was asked."""
    known = by_task(rows)
    return [(known[row.instance, BESTK], row) for row in rows if row.contender == name]


def _heuristic(rows: list[Row], name: str, both: list[tuple[Row, Row]]) -> str:
    best = best_known(rows)
    above = [
        theirs.objective / best[theirs.instance] - 1.0 for _, theirs in both if not theirs.complaint
    ]
    found = sum(excess <= SAME for excess in above)
    worst = percent(max(above)) if above else "-"
    return (
        f"{name}, which proves nothing, finds the best known model of {found} of {len(both)} "
        f"problems; at worst its model is {worst} above."
    )


def _certified(name: str, both: list[tuple[Row, Row]]) -> str:
    pairs = [(ours, theirs) for ours, theirs in both if ours.is_closed and theirs.is_closed]
    ratios = [theirs.seconds / ours.seconds for ours, theirs in pairs]
    mean = f", in {geometric_mean(ratios):.3g} times the time of `bestk`" if ratios else ""
    alone = sum(ours.is_closed and not theirs.is_closed for ours, theirs in both)
    other = sum(theirs.is_closed and not ours.is_closed for ours, theirs in both)
    return (
        f"{name}: of {len(both)} problems both prove {len(pairs)}{mean} (geometric mean); `bestk` "
        f"alone proves {alone}, {name} alone {other}."
    )


def best_known(rows: Iterable[Row]) -> dict[Problem, float]:
    """The least objective of an acceptable model."""
    best: dict[Problem, float] = {}
    for row in rows:
        if not row.complaint:
            best[row.instance] = min(row.objective, best.get(row.instance, float("inf")))
    return best


def _places(rows: list[Row]) -> str:
    told = [f"{row.contender} on {row.instance}" for row in rows[:3]]
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return ("; ".join(told) or "none") + more


# Tables -----------------------------------------------------------------------------------------


def tables(rows: list[Row]) -> Iterator[str]:
    for part in PARTS:
        chosen = [row for row in rows if row.part == part]
        if not chosen:
            continue
        yield from (f"## {TITLES[part]}", "")
        yield from markdown_rows(_ours(chosen))
        beside = _peers(chosen)
        if beside.rows:
            yield from ("**Beside peers**", "", *markdown_rows(beside))
        boxes = [BOXES] if any(not isnan(row.box) for row in chosen) else []
        yield from markdown_notes(Table(columns=(), notes=[NOTES[part], *boxes, *COMMON]))


def _ours(rows: list[Row]) -> Table:
    """What bestk does on every problem of a part."""
    columns = [
        *("data", "structure", "k", "alpha", "seconds", "ratio", "nodes", "gap", "used"),
        *("verify s", "verify / solve", "verified", "remarks"),
    ]
    ours = [row for row in rows if row.contender == BESTK]
    known = by_task(ours)
    if not any(row.structure in HIERARCHIES for row in ours):
        columns.remove("ratio")
    table = Table(columns=columns)
    for row in ours:
        plain = known.get((row.instance._replace(structure="none"), BESTK))
        ratio = "-" if plain is None else f"{row.seconds / plain.seconds:.2f}"
        table.rows.append(
            [
                *(row.data, row.structure, str(row.k), f"{row.alpha:g}", _seconds(row.seconds)),
                *([ratio] if "ratio" in columns else []),
                *(str(row.nodes), _gap(row), str(row.size), _seconds(row.verify)),
                "-" if isnan(row.verify) else f"{row.verify / row.seconds:.2f}",
                *(row.verified or "open", row.complaint),
            ]
        )
    return table


def _peers(rows: list[Row]) -> Table:
    """Everybody's answer to problems that peers were asked."""
    columns = [
        *("data", "structure", "k", "alpha", "program", "seconds", "times bestk", "nodes", "gap"),
        *("above the best", "violation", "remarks"),
    ]
    if not any(row.violation > 0.0 for row in rows):
        columns.remove("violation")
    table = Table(columns=columns)
    best, known = best_known(rows), by_task(rows)
    for problem in dict.fromkeys(row.instance for row in rows):
        met = [name for name in PEERS if (problem, name) in known]
        for name in [BESTK, *met] if met else ():
            row, ours = known[problem, name], known[problem, BESTK]
            above = row.objective / best.get(problem, float("nan")) - 1.0
            table.rows.append(
                [
                    *(problem.data, problem.structure, str(problem.k), f"{problem.alpha:g}", name),
                    *(_seconds(row.seconds), _number(row.seconds / ours.seconds)),
                    *("-" if isnan(row.lower_bound) else str(row.nodes), _gap(row)),
                    "-" if isnan(above) else "0" if above <= SAME else percent(above),
                    *([_number(row.violation)] if "violation" in columns else []),
                    row.complaint[:120],
                ]
            )
    return table


def _seconds(value: float) -> str:
    return "-" if isnan(value) else f"{value:.4f}" if value < 1.0 else f"{value:.2f}"


def _number(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2g}" if value < 10.0 else f"{value:.0f}"


def _gap(row: Row) -> str:
    return "-" if isnan(row.gap) else percent(row.gap)
