"""Linear constraints on coefficients, as arrays or as text, read into lower <= A b <= upper."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint

from bestk.base.validation import hint_for, nearest
from bestk.structure.hierarchy import begins_with_digit

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_RELATION = re.compile(r"<=|>=|==?|≤|≥")
_BLANK = re.compile(r"\s*")
_SIGN = re.compile(r"\s*([+-])")
_TIMES = re.compile(r"\s*\*?(?!\*)\s*")
# What may follow a name, or end a word that is none.
_END = re.compile(r"[\s+\-*<>=≤≥]|$")

_HELP = 'write sums such as "2 a - b <= 1", "a + b = 1" or "0 <= a <= 1"'
# Terms that the words of a constraint list.
_MOST_LISTED = 6


class Band(NamedTuple):
    """lower <= coefficients @ b <= upper; ``where`` begins messages about it."""

    coefficients: np.ndarray
    lower: float
    upper: float
    where: str


def as_constraints(
    constraints: Any, p: int, names: tuple[str, ...] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """(q, p) matrix A, lower and upper (q,) of lower <= A b <= upper, and every row in words.

    ``constraints`` is a scipy.optimize.LinearConstraint, a text such as ``"a + b = 1"``, or a list
    of such. Rows that say nothing are left out, and those with the same coefficients are one.
    """
    columns = names or tuple(f"x{j}" for j in range(p))
    items = constraints if isinstance(constraints, list | tuple) else [constraints]
    merged: dict[bytes, Band] = {}
    for i, item in enumerate(items):
        for band in _bands(f"constraints[{i}]", item, columns):
            if not _says_something(band):
                continue
            key = band.coefficients.tobytes()
            merged[key] = _both(merged[key], band) if key in merged else band
    rows = list(merged.values())
    matrix = np.array([row.coefficients for row in rows], dtype=np.float64).reshape(len(rows), p)
    lower, upper = (np.array([row[side] for row in rows], dtype=np.float64) for side in (1, 2))
    return matrix, lower, upper, tuple(_words(row, columns) for row in rows)


def _bands(where: str, item: Any, columns: tuple[str, ...]) -> Iterator[Band]:
    if isinstance(item, str):
        yield from _Text(where, item, columns).bands()
    elif isinstance(item, LinearConstraint):
        yield from _from_scipy(where, item, len(columns))
    else:
        raise TypeError(
            f"{where} must be a scipy.optimize.LinearConstraint or a text, got {item!r}; {_HELP}"
        )


def _from_scipy(where: str, item: LinearConstraint, p: int) -> Iterator[Band]:
    A = np.asarray(item.A.toarray() if hasattr(item.A, "toarray") else item.A)
    if A.ndim != 2 or A.shape[1] != p:
        raise ValueError(
            f"{where}: A has shape {A.shape}, but there are {p} features; give it a column per "
            "feature, zeros included"
        )
    if A.dtype.kind not in "buif":
        raise TypeError(f"{where}: A has dtype {A.dtype}; convert it to float64 first")
    A = A.astype(np.float64) + 0.0  # no negative zeros: equal rows have equal bytes
    if not np.isfinite(A).all():
        raise ValueError(f"{where}: A contains NaN or infinite values; leave such rows out")
    lower, upper = (np.broadcast_to(side, len(A)) for side in (item.lb, item.ub))
    for i, row in enumerate(A):
        yield Band(row, float(lower[i]), float(upper[i]), f"{where}, row {i}")


def _says_something(band: Band) -> bool:
    """Whether a row restricts coefficients; one that nothing satisfies is an error."""
    coefficients, lower, upper, where = band
    if np.isnan(lower) or np.isnan(upper):
        raise ValueError(f"{where}: a bound is NaN; use -inf and inf for no bound")
    if lower > upper or lower == np.inf or upper == -np.inf:
        raise ValueError(
            f"{where}: no sum is in [{lower:g}, {upper:g}]; the lower bound comes first"
        )
    if not coefficients.any():
        if not lower <= 0 <= upper:
            raise ValueError(
                f"{where}: all its coefficients are zero, so no model can satisfy it; change it or "
                "leave it out"
            )
        return False
    return lower > -np.inf or upper < np.inf


def _both(first: Band, second: Band) -> Band:
    lower, upper = max(first.lower, second.lower), min(first.upper, second.upper)
    if lower > upper:
        where = " and ".join(dict.fromkeys((first.where, second.where)))
        raise ValueError(
            f"{where}: the same sum cannot be at least {lower:g} and at most {upper:g}; change or "
            "leave out one of them"
        )
    return first._replace(lower=lower, upper=upper)


class _Text:
    """A chain of sums with relations in between, read from left to right.

    Names of features may hold blanks and signs, so the longest name that fits is taken where a
    feature can stand.
    """

    def __init__(self, where: str, text: str, columns: tuple[str, ...]) -> None:
        self.where, self.text, self.p, self.place = where, text, len(columns), 0
        self.positions: dict[str, list[int]] = {}
        for j, name in enumerate(columns):
            if not _NUMBER.fullmatch(name):  # a number is a number
                self.positions.setdefault(name, []).append(j)

    def bands(self) -> list[Band]:
        sums, relations = [self._sum()], []
        while self.place < len(self.text):
            relations.append(self._take(_RELATION))
            if not relations[-1]:
                raise self._unreadable()
            sums.append(self._sum())
        if not relations:
            raise ValueError(f"{self.where}: {self.text!r} has no <=, >= or =; {_HELP}")
        return [self._band(*part) for part in zip(sums, relations, sums[1:], strict=False)]

    def _band(
        self, left: tuple[np.ndarray, float], relation: str, right: tuple[np.ndarray, float]
    ) -> Band:
        """left relation right, with all features on one side, the left if it has any."""
        if not left[0].any():
            turned = {"<=": ">=", "≤": ">=", ">=": "<=", "≥": "<="}
            left, relation, right = right, turned.get(relation, relation), left
        coefficients, limit = left[0] - right[0] + 0.0, right[1] - left[1]
        if not np.isfinite(coefficients).all():
            raise ValueError(f"{self.where}: {self.text!r} has an infinite coefficient; lower it")
        lower = -np.inf if relation in ("<=", "≤") else limit
        upper = np.inf if relation in (">=", "≥") else limit
        return Band(coefficients, lower, upper, f"{self.where}, {self.text!r}")

    def _sum(self) -> tuple[np.ndarray, float]:
        """(coefficients, constant) up to the next relation."""
        coefficients, constant = np.zeros(self.p), 0.0
        sign = self._take(_SIGN) or "+"
        while sign:
            factor = -1.0 if sign == "-" else 1.0
            self._take(_BLANK)
            feature = self._name()
            if feature is None:
                number = self._take(_NUMBER)
                if not number:
                    raise self._unreadable()
                factor *= float(number)
                after = self.place
                self._take(_TIMES)
                feature = self._name()
                if feature is None:
                    self.place = after
                    self._require_no_word()
            if feature is None:
                constant += factor
            else:
                coefficients[feature] += factor
            sign = self._take(_SIGN)
        self._take(_BLANK)
        return coefficients, constant

    def _take(self, pattern: re.Pattern[str]) -> str:
        """What matches here, without blanks; nothing is taken where nothing does."""
        match = pattern.match(self.text, self.place)
        self.place = match.end() if match else self.place
        return match[0].strip() if match else ""

    def _name(self) -> int | None:
        """The feature with the longest name that stands here."""
        fits = [
            name
            for name in self.positions
            if self.text.startswith(name, self.place)
            and _END.match(self.text, self.place + len(name))
        ]
        if not fits:
            return None
        name = max(fits, key=len)
        if len(self.positions[name]) > 1:
            raise ValueError(
                f"{self.where}: there are several features {name!r}; use a LinearConstraint instead"
            )
        self.place += len(name)
        return self.positions[name][0]

    def _require_no_word(self) -> None:
        rest = self.text[self.place :].lstrip(" \t*")
        if rest and not re.match(r"[+\-<>=≤≥]", rest):
            raise self._unreadable()

    def _unreadable(self) -> ValueError:
        rest = self.text[self.place :].strip()
        start = rest.lstrip("* ")
        word = start[: _END.search(start).start()]  # type: ignore[union-attr]  # the end matches
        if re.match(r"[^\W\d]", word) and word not in self.positions:
            hint = nearest(word, self.positions) or f"{hint_for(word, self.positions)}; {_HELP}"
            return ValueError(f"{self.where}: in {self.text!r}, there is no feature {word!r}{hint}")
        what = f"from {rest!r} on" if rest else "to its end: a sum is missing"
        return ValueError(f"{self.where}: cannot read {self.text!r} {what}; {_HELP}")


def _words(band: Band, columns: tuple[str, ...]) -> str:
    """lower <= sum <= upper, with what is there of it."""
    sum_ = _sum_in_words(band.coefficients, columns)
    if band.lower == band.upper:
        return f"{sum_} = {band.lower:g}"
    left = f"{band.lower:g} <= " if band.lower > -np.inf else ""
    right = f" <= {band.upper:g}" if band.upper < np.inf else ""
    return left + sum_ + right


def _sum_in_words(coefficients: np.ndarray, columns: tuple[str, ...]) -> str:
    features = np.flatnonzero(coefficients)
    text = ""
    for j in features[:_MOST_LISTED].tolist():
        value = float(coefficients[j])
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        times = " * " if begins_with_digit(columns[j]) else " "
        size = "" if abs(value) == 1 else f"{abs(value):g}{times}"
        text += f"{sign}{size}{columns[j]}"
    more = f" + ... ({len(features)} terms)" if len(features) > _MOST_LISTED else ""
    return text + more
