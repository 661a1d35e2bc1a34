"""Tables of the flows study, made from its rows alone."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median
from typing import Any

from ..harness import machine
from ..harness.tables import Table, markdown_rows, percent, read_csv

METHODS = ("bestk", "MIOSR", "STLSQ", "SSR")
# Runner-up and model differ by less than this where the data hardly tell them apart.
CLOSE = 1.01

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("# ")))


def write(path: Path) -> None:
    """The page beside the rows; the documentation includes its parts."""
    rows = read(path)
    page = path.with_suffix(".md")
    page.write_text("\n".join(_page(rows, read_csv(path).notes)).rstrip() + "\n")
    print(f"written to {page.relative_to(machine.ROOT)}")


def one_line(rows: list[Any]) -> str:
    """What was found in one system, for the terminal."""
    counts = []
    for method in METHODS:
        chosen = [row for row in rows if row.method == method]
        if chosen:
            found = sum(row.recovered for row in chosen)
            seconds = sum({row.noise: row.seconds for row in chosen}.values())
            counts.append(f"{method} {found} of {len(chosen)} in {seconds:.1f} s")
    return f"{rows[0].system}: {', '.join(counts)}"


def _page(rows: list[Row], notes: list[str]) -> list[str]:
    text = [
        "# Flows of dysts",
        "",
        "<!-- findings -->",
        "",
        *_findings(rows),
        "",
        "<!-- tables -->",
    ]
    small = [row for row in rows if row["states"] == "3"]
    large = [row for row in rows if row["states"] != "3"]
    for title, chosen in (("Three states", small), ("Four and more states", large)):
        if chosen:
            text += ["", f"**{title}**", "", *markdown_rows(_recovery(chosen))]
    text += ["", "**How unique the equations of bestk are**", "", *markdown_rows(_runners_up(rows))]
    slow = _unproven(rows)
    if slow.rows:
        text += ["", "**Equations with solves that were not proven**", "", *markdown_rows(slow)]
    return [*text, "", "<!-- machine -->", "", *(f"- {note}" for note in notes)]


def _findings(rows: list[Row]) -> list[str]:
    """Sentences, every number from the rows."""
    ours = [row for row in rows if row["method"] == "bestk"]
    solves, proven, perfect = (_sum(ours, name) for name in ("solves", "proven", "perfect"))
    times = list(_seconds(ours).values())
    systems, noises = len({row["system"] for row in rows}), len({row["noise"] for row in rows})
    unproven = [row for row in ours if _yes(row, "is_open")]
    return [
        f"- {systems} systems, {len(ours)} equations with all levels of noise ({noises}).",
        f"- `bestk` solved {solves} problems: {percent(proven / solves)} with gap exactly 0, "
        f"{percent(perfect / solves)} with one of many perfect fits, the others not to the end. Of "
        f"the equations it chose, {len(unproven)} are not proven.",
        f"- `bestk` takes {median(times):.2g} s a system (median), {max(times):.2g} s at most.",
        *(
            f"- {row['system']}: {row['method']} failed, {row['remark']}"
            for row in rows
            if row["remark"]
        ),
    ]


def _recovery(rows: list[Row]) -> Table:
    table = Table(
        name="recovery",
        columns=[
            *("noise", "method", "systems", "recovered", "equations", "recovered"),
            *("offered", "median s"),
        ],
    )
    for noise in sorted({row["noise"] for row in rows}, key=float):
        for method in METHODS:
            chosen = [row for row in rows if (row["noise"], row["method"]) == (noise, method)]
            if not chosen:
                continue
            systems: dict[str, bool] = {}
            for row in chosen:
                systems[row["system"]] = systems.get(row["system"], True) and _yes(row, "recovered")
            table.rows.append(
                [
                    *(percent(float(noise)), method, str(len(systems))),
                    *(_share(systems.values()), str(len(chosen))),
                    _share(_yes(row, "recovered") for row in chosen),
                    _share(_yes(row, "offered") for row in chosen),
                    f"{median(_seconds(chosen).values()):.2g}",
                ]
            )
    return table


def _runners_up(rows: list[Row]) -> Table:
    """Does a close runner-up warn of a wrong equation?"""
    table = Table(
        name="runners-up",
        columns=[
            *("noise", "equation", "equations", "median ratio", f"ratio above {CLOSE}"),
        ],
    )
    ours = [row for row in rows if row["method"] == "bestk" and row["ratio"]]
    for noise in sorted({row["noise"] for row in ours}, key=float):
        for right, name in ((True, "right"), (False, "wrong")):
            ratios = [
                float(row["ratio"])
                for row in ours
                if row["noise"] == noise and _yes(row, "recovered") == right
            ]
            if ratios:
                above = _share(ratio > CLOSE for ratio in ratios)
                cells = [str(len(ratios)), f"{median(ratios):.4g}", above]
                table.rows.append([percent(float(noise)), name, *cells])
    return table


def _unproven(rows: list[Row]) -> Table:
    columns = ["system", "noise", "equation", "proven", "slowest s", "at k", "gap of the chosen"]
    table = Table(name="unproven", columns=columns)
    for row in rows:
        if row["method"] == "bestk" and _closed(row) < int(row["solves"]):
            table.rows.append(
                [
                    *(row["system"], percent(float(row["noise"])), row["equation"]),
                    f"{_closed(row)} of {row['solves']}",
                    *(row["slowest"], row["slowest_k"], percent(float(row["gap"]))),
                ]
            )
    return table


def _closed(row: Row) -> int:
    return int(row["proven"]) + int(row["perfect"])


def _seconds(rows: list[Row]) -> dict[tuple[str, str], float]:
    """Of each system and level of noise, once for all its equations."""
    return {(row["system"], row["noise"]): float(row["seconds"]) for row in rows}


def _yes(row: Row, column: str) -> bool:
    return row[column] == "1"


def _sum(rows: list[Row], column: str) -> int:
    return sum(int(row[column]) for row in rows)


def _share(answers) -> str:
    answers = list(answers)
    return f"{100 * sum(answers) / len(answers):.0f}%"
