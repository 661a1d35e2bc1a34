"""Columns as numbers: text becomes indicators of its levels, or numbers where users say so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestk.readers.files import DataError

BOOLEANS = {"true": 1.0, "false": 0.0}
# Words for a missing value; among levels, "none" is one like any other.
_MISSING = {"", "na", "n/a", "nan", "null", "?"}
_MISSING_NUMBERS = _MISSING | {"none"}


@dataclass(frozen=True, kw_only=True)
class Coding:
    """Levels of columns of text. A file is read with the number of the level in every row, which
    then becomes an indicator, 0 or 1, for each level but the first.

    Attributes
    ----------
    levels : mapping
        {column: {level: number}}, for the columns of text.
    undecided : frozenset of str
        Columns of which a user could still say that they are text.
    needed : frozenset of str
        Columns that cannot be left out, such as the target.
    """

    levels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()

    def numbers(self, column: str, texts: Sequence[str], places: Any) -> np.ndarray:
        """The numbers of ``texts[places]``, each of which is a level; NaN where it is missing."""
        known = self.levels[column]
        try:
            values = [known[word] if (word := _word(text)) else np.nan for text in texts]
        except KeyError as error:
            raise DataError(
                f"column {column!r} has a level {error} that was not there when levels were "
                "read; open all files together, or open the table again if it has changed"
            ) from None
        return np.array(values, dtype=np.float64)[places]

    def names(self, column: str) -> list[str]:
        """Names of the features that a column gives: itself, or its indicators."""
        if column not in self.levels:
            return [column]
        return [f"{column}={level}" for level in list(self.levels[column])[1:]]

    def features(self, columns: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for column in columns for name in self.names(column))

    def starts(self, columns: Sequence[str]) -> list[int]:
        """Place of the first feature of every column, and the number of features."""
        return np.cumsum([0, *(len(self.names(column)) for column in columns)]).tolist()

    def expanded(self, chunk: np.ndarray, columns: Sequence[str]) -> np.ndarray:
        """Indicators instead of the numbers of levels."""
        if self.levels.keys().isdisjoint(columns):
            return chunk
        starts = self.starts(columns)
        wide = np.empty((len(chunk), starts[-1]), order="F")
        for j, (column, start) in enumerate(zip(columns, starts, strict=False)):
            if column not in self.levels:
                wide[:, start] = chunk[:, j]
                continue
            for i in range(1, len(self.levels[column])):
                wide[:, start + i - 1] = chunk[:, j] == i
        return wide

    def no_numbers(self, column: str, what: str) -> DataError:
        """The error of a column that should hold numbers."""
        ways = f"turn it into numbers first, or leave it out with drop=[{column!r}]"
        if column in self.needed:
            ways = "it must hold numbers, so turn it into numbers first, or choose another column"
        elif column in self.undecided:
            ways = f"turn it into numbers, take it as text with text=[{column!r}], or leave it "
            ways += f"out with drop=[{column!r}]"
        return DataError(f"column {column!r} holds {what}; {ways}")

    def of_type(self, column: str, kind: str) -> DataError:
        """The error of a column whose type is neither numbers nor text."""
        return self.no_numbers(column, f"values of type {kind}")

    def parsed(self, column: str, texts: Iterable[str], rows: Iterable[int]) -> np.ndarray:
        """Numbers of a column in which not everything looks like one."""
        values = []
        for row, text in zip(rows, texts, strict=False):
            word = text.strip().lower()
            try:
                values.append(BOOLEANS[word] if word in BOOLEANS else float(word))
            except ValueError:
                if word not in _MISSING_NUMBERS:
                    raise self.no_numbers(column, f"text ({text!r} in row {row})") from None
                values.append(np.nan)
        return np.array(values)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_text(text: str) -> bool | None:
    """Whether a column with this first entry is text; None if the entry is missing."""
    word = text.strip().lower()
    if word in _MISSING:
        return None
    return word not in BOOLEANS and not is_number(word)


def _word(text: str) -> str:
    """The level that a text stands for; nothing if it is missing."""
    word = text.strip()
    return "" if word.lower() in _MISSING else word
