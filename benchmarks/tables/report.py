"""Tables and findings of the study of real tables, made from its rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

import numpy as np

from ..harness.contest import refuted
from ..harness.paper import GAP
from ..harness.tables import Table, markdown_notes, markdown_rows, percent
from ..synthetic.standings import best_known, standing
from .contenders import PROGRAMS, program
from .problems import Problem
from .rows import Row
from .sources import TABLES

BEST = 1e-9
"""A model is the best known one if its objective is above it by less than this share."""
RIVAL = {False: "bestk", True: "bestk in a box"}
"""Who a peer is compared with, by whether it is told a box."""
PICTURE = (
    "![Share of problems proven against time, one line per program](../../docs/_static/tables.svg)"
)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One program on all problems that it was asked."""

    program: str
    rows: list[Row]
    """The best of its formulations on each problem."""
    too_large: list[Problem]
    """Problems beyond what it takes, by its licence or within reason."""

    @property
    def asked(self) -> int:
        return len(self.rows) + len(self.too_large)

    @property
    def proven(self) -> list[Row]:
        return [row for row in self.rows if row.is_closed]

    @property
    def is_boxed(self) -> bool:
        return PROGRAMS[self.program].is_boxed

    @property
    def is_heuristic(self) -> bool:
        return PROGRAMS[self.program].kind == "heuristic"


def standings(rows: Iterable[Row]) -> list[Standing]:
    """Of every program that has rows, in the order of the tables."""
    best: dict[str, dict[Problem, Row]] = {}
    columns: dict[Problem, int] = {}
    for row in rows:
        columns[row.instance] = row.p
        found = best.setdefault(program(row.contender), {})
        found[row.instance] = min(found.get(row.instance, row), row, key=standing)
    return [
        Standing(
            program=name,
            rows=list(best[name].values()),
            too_large=[i for i, p in columns.items() if _is_too_large(name, p)],
        )
        for name in PROGRAMS
        if name in best
    ]


def _is_too_large(name: str, p: int) -> bool:
    return p > (PROGRAMS[name].most_features or p)


# Findings ------------------------------------------------------------------------------------


def findings(rows: list[Row]) -> list[str]:
    """Sentences whose every number comes from the rows."""
    if not rows:
        return ["Nothing has been measured yet: `python -m benchmarks.tables` does it."]
    found = {one.program: one for one in standings(rows)}
    return [
        *(_proven(found[name]) for name in RIVAL.values() if name in found),
        *(
            sentence
            for one in found.values()
            if not one.is_heuristic and one.program not in RIVAL.values()
            for sentence in _against(one, found)
        ),
        *(_found(one, best_known(rows)) for one in found.values() if one.is_heuristic),
        refuted(rows, label),
    ]


def _proven(ours: Standing) -> str:
    quick = sum(row.seconds <= 1.0 for row in ours.proven)
    left = [row.gap for row in ours.rows if not row.is_closed and not row.complaint]
    tables = len({row.table for row in ours.rows})
    text = (
        f"`bestk`{' in a box' if ours.is_boxed else ''} proves {len(ours.proven)} of {ours.asked} "
        f"problems from {tables} tables, {quick} of them within a second"
    )
    if left:
        text += f"; {len(left)} stay open, with a gap of {percent(median(left))} in the median"
        text += f" and {percent(max(left))} at most"
    return text + "."


def _against(peer: Standing, found: dict[str, Standing]) -> list[str]:
    """Who proves what, and how many times as fast, on problems that both were asked."""
    rival = found.get(RIVAL[peer.is_boxed])
    if rival is None:
        return []
    ours = {row.instance: row for row in rival.rows}
    pairs = [(ours[row.instance], row) for row in peer.rows if row.instance in ours]
    if not pairs:
        return []
    alone = sum(a.is_closed and not b.is_closed for a, b in pairs)
    theirs = sum(b.is_closed and not a.is_closed for a, b in pairs)
    ratios = [b.seconds / a.seconds for a, b in pairs if a.is_closed and b.is_closed]
    text = f"{peer.program} proves {len(peer.proven)} of {peer.asked} problems"
    if peer.too_large:
        text += f" ({len(peer.too_large)} are too large for it)"
    text += f"; of the {len(pairs)} that both tried `{rival.program}` alone proves {alone}, "
    text += f"{peer.program} alone {theirs}"
    if ratios:
        text += (
            f", both {len(ratios)}, {peer.program} in {geometric_mean(ratios):.3g} times the time "
            f"in geometric mean ({min(ratios):.2g} to {max(ratios):.2g})"
        )
    return [text + "."]


def _found(heuristic: Standing, best: dict[Problem, float]) -> str:
    text = (
        f"{heuristic.program}, which proves nothing, finds the best known model of "
        f"{hits(heuristic, best)} of {heuristic.asked} problems"
    )
    above = [excess(row, best) for row in heuristic.rows if not row.complaint]
    if above:
        text += f"; at worst its model is {percent(max(above))} above"
    return text + "."


def hits(one: Standing, best: dict[Problem, float]) -> int:
    """How often a program finds the best known model, proven or not."""
    return sum(excess(row, best) < BEST for row in one.rows if not row.complaint)


def excess(row: Row, best: dict[Problem, float]) -> float:
    """By what share the objective is above the best known one."""
    return row.objective / best[row.instance] - 1.0


# Tables --------------------------------------------------------------------------------------


def tables(rows: list[Row]) -> Iterator[str]:
    """The picture and a summary, then every table of the study."""
    if rows:
        yield from (PICTURE, "", *_lines(summary(rows)))
    yield from ("<!-- details -->", "")
    best = best_known(rows)
    for table in TABLES:
        mine = [row for row in rows if row.table == table]
        if mine:
            yield from (f"## {table[0].upper()}{table[1:]}", "")
            yield from (f"{TABLES[table].about}. From {TABLES[table].package}.", "")
        for degree in sorted({row.degree for row in mine}):
            yield from _lines(results([row for row in mine if row.degree == degree], best))
    wrong = [row for row in rows if row.complaint]
    if wrong:
        yield from ("## What went wrong", "", *_lines(complaints(wrong)))


def _lines(table: Table) -> Iterator[str]:
    yield from (f"**{table.name}**", "") if table.name else ()
    yield from markdown_rows(table)
    yield from markdown_notes(table) if table.notes else ()


def summary(rows: Sequence[Row]) -> Table:
    """One line per program."""
    limits = " or ".join(f"{limit:g}" for limit in sorted({row.limit for row in rows}))
    best = best_known(rows)
    table = Table(
        columns=["program", "asked", "proven", "open", "median gap of these", "too large",
                 "failed", "refuted", "best known model found"],
        notes=[
            f"proven: a gap of at most {GAP:g} relative to the whole objective, within {limits} s; "
            "in a box: the proof holds for coefficients up to 1.2 times the largest of a first "
            "model",
            "too large: more features than the program's licence takes, or than can be hoped for; "
            "failed: no answer, or one that is no model with k features; refuted: a claimed bound "
            "above a model's objective. All of these count as asked, and as not proven",
        ],
    )  # fmt: skip
    for one in standings(rows):
        sound = [row for row in one.rows if not row.complaint]
        left = [row.gap for row in sound if not row.is_closed and not np.isnan(row.gap)]
        words = [row.failure for row in one.rows]
        table.rows.append(
            [
                one.program,
                str(one.asked),
                "-" if one.is_heuristic else str(len(one.proven)),
                "-" if one.is_heuristic else str(len(sound) - len(one.proven)),
                percent(median(left)) if left else "-",
                *map(str, (len(one.too_large), words.count("failed"), words.count("refuted"))),
                str(hits(one, best)),
            ]
        )
    return table


def results(rows: Sequence[Row], best: dict[Problem, float]) -> Table:
    """Of one table with terms of one degree: sizes against programs."""
    everyone = standings(rows)
    first = rows[0]
    terms = "features as they are" if first.degree == 1 else f"terms up to degree {first.degree}"
    table = Table(
        name=f"{first.n} rows, {first.p} {terms}",
        columns=["k", "α", *(one.program for one in everyone)],
    )
    known = {(row.instance, one.program): row for one in everyone for row in one.rows}
    for i in dict.fromkeys(row.instance for row in rows):
        cells = [
            cell(known[i, one.program], best)
            if (i, one.program) in known
            else ("too large" if i in one.too_large else "-")
            for one in everyone
        ]
        table.rows.append([str(i.k), f"{i.alpha:g}", *cells])
    return table


def cell(row: Row, best: dict[Problem, float]) -> str:
    """Seconds if proven, else the gap; for heuristics how far the model is above the best known."""
    if row.failure:
        return row.failure
    if row.is_heuristic:
        above = excess(row, best)
        return "best" if above < BEST else f"+{percent(above)}"
    if row.is_closed:
        return f"{row.seconds:.2g} s"
    return "no bound" if np.isnan(row.gap) else percent(row.gap)


def complaints(rows: Iterable[Row]) -> Table:
    """Each reason once, with the number of problems."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.contender, row.complaint[:120]), []).append(row)
    table = Table(columns=["contender", "reason", "problems", "the first of them"])
    for (contender, reason), mine in found.items():
        table.rows.append([contender, reason, str(len(mine)), label(mine[0].instance)])
    return table


def label(problem: Problem) -> str:
    text = f"{problem.table}, degree {problem.degree}, k = {problem.k}"
    return text if problem.alpha else f"{text}, α = 0"
