"""How values and places are put in messages."""

import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Names, or other words, that a message lists.
MOST_NAMED = 5
MEND = "drop or impute such values first"
KINDS = {"O": "objects", "U": "text", "S": "text", "T": "text", "M": "dates", "m": "durations"}
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlong = 40


def shown(value: Any) -> str:
    """A value in a message, shortened: it may be a whole table."""
    return _SHORT.repr(value)


def place_of(place: tuple[int, ...], names: tuple[str, ...] | None = None) -> str:
    """The row and the column of an entry, in words."""
    row = f"row {place[0]}"
    if len(place) == 2:
        row += f", column {place[1]}" if names is None else f", column {names[place[1]]!r}"
    return f"{row} (counted from 0)"


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the most similar known words, or nothing."""
    known = list(known)
    # Capital letters and blanks at the ends do not count.
    same = [other for other in known if other.strip().casefold() == word.strip().casefold()]
    close = same or get_close_matches(word, known, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def hint_for(word: str, known: Iterable[str]) -> str:
    """A hint for a word that is not known: the most similar ones, or the first of all."""
    known = list(known)
    return nearest(word, known) or f"; there are {few(map(repr, known)) or 'none'}"


def few(texts: Iterable[str]) -> str:
    """The first of some texts, and how many more there are."""
    texts = list(texts)
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more
