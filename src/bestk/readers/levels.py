"""Levels of columns of text: all those of a table, found in one pass over these columns."""

import re
from collections.abc import Collection
from contextlib import nullcontext

from bestk.readers.coding import Coding, is_number
from bestk.readers.files import DataError, File, for_each
from bestk.readers.formats.endings import open_source
from bestk.readers.formats.source import explained, naming, rows_at_a_time
from bestk.readers.missing import Missing

MOST_LEVELS = 200
"""More levels than this are a mistake more often than a category."""

# In fewer rows, levels may all differ by chance.
_FEW_ROWS = 20
# Rows read at a time: a column in which each is another level is noticed soon.
_ROWS = 2**16
_DATE = re.compile(r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})([T ].*)?")

# Such as 1,5 or 12% or $1,200.
_LIKE_A_NUMBER = re.compile(r"[+-]?[^\w\s]?\s?\d[\d.,']*\s?[^\w\s]?")


class _Seen(dict[str, float]):
    """Levels, numbered as they come."""

    def __missing__(self, level: str) -> float:
        self[level] = float(len(self))
        return self[level]


def levels_of(
    files: tuple[File, ...], columns: list[str], sure: Collection[str], missing: Missing
) -> dict[str, dict[str, float]]:
    """{column: {level: number}}, levels in sorted order; `sure` are text whatever they look like.

    The levels of all files together: each of them has the same columns then.
    """

    def read(file: File) -> tuple[dict[str, _Seen], int]:
        seen = {column: _Seen() for column in columns}
        n_rows = 0
        with naming(file) if len(files) > 1 else nullcontext(), explained(file):
            source = open_source(file)
            for chunk in source.chunks(columns, rows, True, Coding(levels=seen)):
                missing.require(chunk, columns, n_rows, len(columns))
                n_rows += len(chunk)
                require_few(seen)
        return seen, n_rows

    def require_few(seen: dict[str, _Seen]) -> None:
        for column, levels in seen.items():
            if len(levels) > MOST_LEVELS:
                _require_text(column, list(levels), column in sure)
                raise _too_many(column, list(levels))

    if not columns:
        return {}
    total = {column: _Seen() for column in columns}
    rows, n_rows = min(_ROWS, rows_at_a_time(len(columns))), 0
    for seen, n_own in for_each(files, read):
        n_rows += n_own
        for column in columns:
            total[column] |= seen[column]
        require_few(total)
    for column in columns:
        _require_text(column, list(total[column]), column in sure)
        if _FEW_ROWS < len(total[column]) == n_rows and column not in sure:
            raise DataError(
                f"column {column!r} is text that differs in all {n_rows} rows, as identifiers do; "
                f"leave it out with drop=[{column!r}], or take it as levels with text=[{column!r}]"
            )
    return {
        column: {level: float(i) for i, level in enumerate(sorted(total[column]))}
        for column in columns
    }


def _require_text(column: str, levels: list[str], is_sure: bool) -> None:
    """Most levels are words, not dates or numbers."""
    if is_sure or not levels:
        return
    ways = f"take it as text with text=[{column!r}], or leave it out with drop=[{column!r}]"
    if all(_DATE.fullmatch(level) for level in levels):
        raise DataError(
            f"column {column!r} holds dates, such as {levels[0]!r}; turn it into numbers, {ways}"
        )
    alike = [level for level in levels if is_number(level) or _LIKE_A_NUMBER.fullmatch(level)]
    if 2 * len(alike) > len(levels):
        odd = [level for level in levels if not is_number(level)]
        if odd:
            raise DataError(
                f"column {column!r} holds numbers, but {odd[0]!r} cannot be read as one; write "
                f"numbers with a decimal point and no other signs, as 1234.5, {ways}"
            )
        raise DataError(
            f"column {column!r} holds numbers written as text; read it as numbers with "
            f"numeric=[{column!r}], {ways}"
        )


def _too_many(column: str, levels: list[str]) -> DataError:
    return DataError(
        f"column {column!r} is text with {len(levels):,} levels or more, such as {levels[0]!r} and "
        f"{levels[-1]!r}, and at most {MOST_LEVELS} become indicators; leave it out with "
        f"drop=[{column!r}], or read it as numbers with numeric=[{column!r}]"
    )
