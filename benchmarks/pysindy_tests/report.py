"""The page of the study: how many tests pass, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterator

from ..harness.tables import Table, markdown_rows
from .explanations import EXPLANATIONS, explain
from .rows import Row
from .told import LIMIT, TOLD

WHERE = {
    "default": "SINDy without an optimizer",
    "STLSQ": "tests that name STLSQ",
    "MIOSR": "tests that name MIOSR",
}


def findings(rows: list[Row]) -> Iterator[str]:
    ours, counts = [row for row in rows if row.is_ours], _counts(rows, "before")
    yield (
        f"As they are, {counts['passed']} of {len(rows)} tests pass, {counts['failed']} fail and "
        f"{counts['skipped']} are skipped."
    )
    passed = [row for row in ours if row.before == "passed"]
    lost, explained = [row for row in passed if row.is_lost], explain(rows)
    unexplained = [row for row in explained.unexplained if row.is_ours]
    others = "all explained below" if not unexplained else f"{len(unexplained)} are unexplained"
    yield (
        f"OKRidge takes part in {len(ours)} tests. {len(passed)} of them pass as they are, and "
        f"{len(passed) - len(lost)} of these also with OKRidge. {len(lost)} do not: {others}."
    )
    equations, proven = (
        sum(getattr(row, word) for row in ours) for word in ("equations", "proven")
    )
    open_rows = [row for row in ours if row.proven < row.equations]
    rest = f" The limit ended the others, in {_names(open_rows)}." if open_rows else ""
    yield (
        f"OKRidge was fitted to {equations} equations in these tests. {proven} were proven "
        f"within the limit of {LIMIT:g} s.{rest}"
    )
    gained = [row for row in rows if row.before == "failed" and row.after == "passed"]
    if gained:
        yield f"Fail as they are and pass with OKRidge: {_names(gained)}."
    changed = [row for row in rows if not row.is_ours and row.before != row.after]
    if changed:
        yield f"Change although OKRidge takes no part in them: {_names(changed)}."
    for failure in explained.outdated:
        yield (
            f"Outdated explanation: no test `{failure.test}` fails with `{failure.words}` any more."
        )


def tables(rows: list[Row]) -> Iterator[str]:
    yield from ("## How many pass", "")
    yield (
        f"A plain `OKRidge(time_limit={LIMIT:g})` stands wherever a test names STLSQ or MIOSR, and "
        "wherever SINDy chooses its default, which is STLSQ. Parameters that OKRidge has, too, are "
        "passed on (`target_sparsity` of MIOSR as `k` and `total_k`), others are left out."
    )
    told = ", ".join(
        f"`{test}` ({', '.join(f'{name} = {value}' for name, value in options.items())})"
        for test, options in TOLD.items()
    )
    yield (
        "Where a test checks which terms are left, OKRidge is told how many, and to fit them again "
        f"without alpha, which is STLSQ's default, if alpha is large for the data: {told}."
    )
    yield ""
    yield from markdown_rows(_by_place(rows))
    explained = explain(rows)
    yield from ("## Why the others cannot", "")
    for one in EXPLANATIONS:
        found = explained.rows[one.title]
        if found:
            yield from (f"**{one.title}** ({len(found)}). {one.why}", "")
            yield from markdown_rows(_failures(found))
    if explained.unexplained:
        yield from ("## Unexplained", "", *markdown_rows(_failures(explained.unexplained)))
    failing = [row for row in rows if row.before == "failed"]
    if failing:
        yield from ("## Fail as they are", "", *markdown_rows(_failures(failing)))


def _by_place(rows: list[Row]) -> Table:
    """A test that names an optimizer and also leaves the choice to SINDy counts for the former."""
    table = Table(columns=["OKRidge stands in", "tests", "pass as they are", "pass with OKRidge"])

    def line(words: str, chosen: list[Row]) -> list[str]:
        passed = [row for row in chosen if row.before == "passed"]
        still = sum(not row.is_lost for row in passed)
        return [words, str(len(chosen)), str(len(passed)), str(still)]

    for label, words in WHERE.items():
        chosen = [row for row in rows if _place(row) == label]
        table.rows.append(line(words, chosen))
    table.rows.append(line("all of these", [row for row in rows if row.is_ours]))
    table.rows.append(line("nowhere", [row for row in rows if not row.is_ours]))
    return table


def _place(row: Row) -> str:
    named = [label for label in reversed(WHERE) if label in row.uses.split()]
    return named[0] if named else ""


def _failures(rows: list[Row]) -> Table:
    return Table(
        columns=["test", "error"],
        rows=[[f"`{row.test.removeprefix('test/')}`", f"`{_short(row.reason)}`"] for row in rows],
    )


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " ..."


def _counts(rows: list[Row], word: str) -> dict[str, int]:
    outcomes = [getattr(row, word) for row in rows]
    return {outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "skipped")}


def _names(rows: list[Row]) -> str:
    return ", ".join(f"`{row.test}`" for row in rows)
