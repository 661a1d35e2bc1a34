"""Tables of the flows study, made from its rows alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from statistics import median

from ..harness.tables import Table, markdown_rows, percent
from .rows import Row

METHODS = ("bestk", "MIOSR", "STLSQ", "SSR")
CRITERIA = {
    "bestk, AICc": "AICc",
    "bestk, rows worth": "AICc, rows counted as what they are worth",
    "bestk, BIC": "BIC",
    "bestk": "EBIC",
}
"""What chose among the models of bestk, by the method of the row."""
# Runner-up and model differ by less than this where the data hardly tell them apart.
CLOSE = 1.01


def one_line(rows: list[Row]) -> str:
    """What was found in one system, for the terminal."""
    counts = []
    for method in METHODS:
        chosen = [row for row in rows if row.method == method]
        if chosen:
            found = sum(row.recovered for row in chosen)
            seconds = sum({row.noise: row.seconds for row in chosen}.values())
            counts.append(f"{method} {found} of {len(chosen)} in {seconds:.1f} s")
    return f"{rows[0].system}: {', '.join(counts)}"


def findings(rows: list[Row]) -> list[str]:
    """Sentences, every number from the rows."""
    ours = [row for row in rows if row.method == "bestk"]
    solves, proven, perfect = (_sum(ours, name) for name in ("solves", "proven", "perfect"))
    times = list(_seconds(ours).values())
    systems, noises = len({row.system for row in rows}), len({row.noise for row in rows})
    unproven = [row for row in ours if row.is_open]
    return [
        f"{systems} systems, {len(ours)} equations with all levels of noise ({noises}).",
        f"`bestk` solved {solves} problems: {percent(proven / solves)} with gap exactly 0, "
        f"{percent(perfect / solves)} with one of many perfect fits, the others not to the end. Of "
        f"the equations it chose, {len(unproven)} are not proven.",
        f"`bestk` takes {median(times):.2g} s a system (median), {max(times):.2g} s at most.",
        *(f"{row.system}: {row.method} failed, {row.remark}" for row in rows if row.remark),
    ]


def tables(rows: list[Row]) -> Iterator[str]:
    small = [row for row in rows if row.states == 3]
    large = [row for row in rows if row.states != 3]
    for title, table in (
        ("Three states", _recovery(small)),
        ("Four and more states", _recovery(large)),
        ("Equations of bestk by other criteria", _criteria(rows)),
        ("How unique the equations of bestk are", _runners_up(rows)),
        ("Equations with solves that were not proven", _unproven(rows)),
    ):
        if table.rows:
            yield from (f"**{title}**", "", *markdown_rows(table))


def _recovery(rows: list[Row]) -> Table:
    table = Table(
        columns=[
            *("noise", "method", "systems", "recovered", "equations", "recovered"),
            *("offered", "median s"),
        ],
    )
    for noise in sorted({row.noise for row in rows}):
        for method in METHODS:
            chosen = [row for row in rows if (row.noise, row.method) == (noise, method)]
            if not chosen:
                continue
            systems: dict[str, bool] = {}
            for row in chosen:
                systems[row.system] = systems.get(row.system, True) and row.recovered
            table.rows.append(
                [
                    *(percent(noise), method, str(len(systems))),
                    *(_share(systems.values()), str(len(chosen))),
                    _share(row.recovered for row in chosen),
                    _share(row.offered for row in chosen),
                    f"{median(_seconds(chosen).values()):.2g}",
                ]
            )
    return table


def _criteria(rows: list[Row]) -> Table:
    """Shares of equations that are recovered, by what chose among the same models."""
    noises = sorted({row.noise for row in rows})
    table = Table(columns=["criterion", *(f"noise {percent(noise)}" for noise in noises)])
    for method, name in CRITERIA.items():
        chosen = [row for row in rows if row.method == method]
        if chosen:
            cells = [_share(row.recovered for row in chosen if row.noise == n) for n in noises]
            table.rows.append([name, *cells])
    return table


def _runners_up(rows: list[Row]) -> Table:
    """Does a close runner-up warn of a wrong equation?"""
    columns = ["noise", "equation", "equations", "median ratio", f"ratio above {CLOSE}"]
    table = Table(columns=columns)
    ours = [row for row in rows if row.method == "bestk" and not isnan(row.ratio)]
    for noise in sorted({row.noise for row in ours}):
        for right, name in ((True, "right"), (False, "wrong")):
            ratios = [row.ratio for row in ours if row.noise == noise and row.recovered == right]
            if ratios:
                above = _share(ratio > CLOSE for ratio in ratios)
                cells = [str(len(ratios)), f"{median(ratios):.4g}", above]
                table.rows.append([percent(noise), name, *cells])
    return table


def _unproven(rows: list[Row]) -> Table:
    columns = ["system", "noise", "equation", "proven", "slowest s", "at k", "gap of the chosen"]
    table = Table(columns=columns)
    for row in rows:
        if row.method == "bestk" and _closed(row) < row.solves:
            table.rows.append(
                [
                    *(row.system, percent(row.noise), str(row.equation)),
                    f"{_closed(row)} of {row.solves}",
                    *(f"{row.slowest:.6g}", str(row.slowest_k), percent(row.gap)),
                ]
            )
    return table


def _closed(row: Row) -> int:
    return row.proven + row.perfect


def _seconds(rows: list[Row]) -> dict[tuple[str, float], float]:
    """Of each system and level of noise, once for all its equations."""
    return {(row.system, row.noise): row.seconds for row in rows}


def _sum(rows: list[Row], column: str) -> int:
    return sum(getattr(row, column) for row in rows)


def _share(answers: Iterable[bool]) -> str:
    answers = list(answers)
    return f"{100 * sum(answers) / len(answers):.0f}%"
