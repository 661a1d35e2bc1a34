"""Levels of columns of text: all those of a table, found in one pass over these columns."""

import math
import re
from collections.abc import Collection
from contextlib import nullcontext

from bestk.readers.coding import Coding, is_number
from bestk.readers.files import DataError, File, for_each
from bestk.readers.formats import open_source
from bestk.readers.source import explained, naming, require_finite

MOST_LEVELS = 200
"""More levels than this are a mistake more often than a category."""

# Rows read at a time: a column in which each is another level is noticed soon.
_ROWS = 2**16
_DATE = re.compile(r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4})([T ].*)?")

# Such as 1,5 or 12% or $1,200.
_LIKE_A_NUMBER = re.compile(r"[+-]?[^\w\s]?\s?\d[\d.,']*\s?[^\w\s]?")


class _Seen(dict[str, float]):
    """Levels, numbered as they come; what is missing is not a number."""

    def __missing__(self, level: str) -> float:
        if not level:
            return math.nan
        self[level] = float(len(self))
        return self[level]


def levels_of(
    files: tuple[File, ...], columns: list[str], sure: Collection[str]
) -> dict[str, dict[str, float]]:
    """{column: {level: number}}, levels in sorted order; `sure` are text whatever they look like.

    The levels of all files together: each of them has the same columns then.
    """

    def read(file: File) -> dict[str, _Seen]:
        seen = {column: _Seen() for column in columns}
        n_rows = 0
        with naming(file) if len(files) > 1 else nullcontext(), explained(file):
            source = open_source(file)
            for chunk in source.chunks(columns, _ROWS, True, Coding(levels=seen)):
                require_finite(chunk, columns, n_rows)
                n_rows += len(chunk)
                require_few(seen)
        return seen

    def require_few(seen: dict[str, _Seen]) -> None:
        for column, levels in seen.items():
            if len(levels) > MOST_LEVELS:
                _require_text(column, list(levels), column in sure)
                raise _too_many(column, list(levels))

    if not columns:
        return {}
    total = {column: _Seen() for column in columns}
    for seen in for_each(files, read):
        for column in columns:
            total[column] |= seen[column]
        require_few(total)
    for column in columns:
        _require_text(column, list(total[column]), column in sure)
    return {
        column: {level: float(i) for i, level in enumerate(sorted(total[column]))}
        for column in columns
    }


def _require_text(column: str, levels: list[str], is_sure: bool) -> None:
    """Most levels are words, not dates or numbers."""
    if is_sure or not levels:
        return
    ways = f"take it as text with --text {column}, or leave it out with --drop {column}"
    if all(_DATE.fullmatch(level) for level in levels):
        raise DataError(
            f"column {column!r} holds dates, such as {levels[0]!r}; turn it into numbers, {ways}"
        )
    alike = [level for level in levels if is_number(level) or _LIKE_A_NUMBER.fullmatch(level)]
    if 2 * len(alike) > len(levels):
        odd = [level for level in levels if not is_number(level)]
        but = f", but {odd[0]!r} is none" if odd else " written as text"
        raise DataError(
            f"column {column!r} holds numbers{but}; read it as numbers with --numeric {column}, "
            f"{ways}"
        )


def _too_many(column: str, levels: list[str]) -> DataError:
    return DataError(
        f"column {column!r} is text with {len(levels):,} levels or more, such as {levels[0]!r} and "
        f"{levels[-1]!r}, and at most {MOST_LEVELS} become indicators; leave it out with --drop "
        f"{column}, or read it as numbers with --numeric {column}"
    )
