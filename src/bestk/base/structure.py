"""What a model may look like beyond its size: groups, rules on their choice, linear constraints.

Plain data, as a certificate keeps them. What users write down is read in ``bestk.structure``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from bestk.base.archive import Arrays, cut


class Row(NamedTuple):
    """#chosen among ``plus`` - #chosen among ``minus`` <= ``limit``, over numbers of groups.

    ``rule`` is the place of the user's rule that it belongs to.
    """

    plus: np.ndarray
    minus: np.ndarray
    limit: int
    rule: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Structure:
    """Groups of features, rules on which of them are chosen, and constraints on coefficients.

    Feature j belongs to group ``groups[j]``; groups are numbered in the order of their first
    feature. A group is chosen or not: features of groups that are not chosen have coefficient
    zero, those of chosen ones are free to have any. Chosen groups satisfy all ``rows`` (theory:
    rules), coefficients ``lower <= matrix @ b <= upper``. ``words`` are the rules and
    ``constraint_words`` the constraints as users read them.
    """

    groups: np.ndarray
    group_names: tuple[str, ...] = field(repr=False)
    rows: tuple[Row, ...] = ()
    words: tuple[str, ...] = ()
    matrix: np.ndarray = field(repr=False)
    lower: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)
    constraint_words: tuple[str, ...] = ()

    @property
    def n_groups(self) -> int:
        return len(self.group_names)

    @property
    def has_groups(self) -> bool:
        """Whether some group has more than one feature."""
        return self.n_groups < len(self.groups)

    def members(self, group: int) -> np.ndarray:
        """The features of a group."""
        return np.flatnonzero(self.groups == group)

    def features_of(self, chosen: np.ndarray) -> np.ndarray:
        """The features of some groups."""
        return np.flatnonzero(np.isin(self.groups, chosen))

    def groups_of(self, features: np.ndarray) -> np.ndarray:
        """The groups of some features, each once."""
        return np.unique(self.groups[features]).astype(np.intp)

    def broken(self, chosen: np.ndarray) -> list[int]:
        """Places of the rows that a choice of groups breaks."""
        is_chosen = np.zeros(self.n_groups, dtype=bool)
        is_chosen[chosen] = True
        return [
            i
            for i, row in enumerate(self.rows)
            if int(is_chosen[row.plus].sum()) - int(is_chosen[row.minus].sum()) > row.limit
        ]

    def identity(self) -> list[str]:
        """What tells it from others: everything but names and words."""

        def numbers(values: np.ndarray) -> str:
            return " ".join(str(int(j)) for j in values)

        sides = np.concatenate([np.ravel(self.matrix), self.lower, self.upper]) + 0.0  # no -0.0
        return [
            f"groups {numbers(self.groups)}",
            *(f"{numbers(r.plus)} - {numbers(r.minus)} <= {int(r.limit)}" for r in self.rows),
            f"constraints {len(self.lower)} {sha256(sides.tobytes()).hexdigest()}",
        ]

    def without(self, choices: Sequence[np.ndarray]) -> "Structure":
        """The same where nothing may contain all groups of one of these choices."""
        nothing = np.zeros(0, dtype=np.intp)
        own = len(self.words)
        rows = [Row(np.asarray(c, dtype=np.intp), nothing, len(c) - 1, own) for c in choices]
        words = (*self.words, f"none of {len(choices)} known choices")
        return replace(self, rows=(*self.rows, *rows), words=words)

    def require_sound(self) -> None:
        """ValueError unless its numbers are those of its own features and groups."""
        groups, m, p = self.groups, self.n_groups, len(self.groups)
        if groups.ndim != 1 or groups.dtype.kind not in "iu":
            raise ValueError("structure.groups must number the group of every feature")
        numbers, first = np.unique(groups, return_index=True)
        if not (np.array_equal(numbers, np.arange(m)) and (np.diff(first) > 0).all()):
            raise ValueError("structure.groups must be numbered in the order of first features")
        for row in self.rows:
            sides = np.concatenate([row.plus, row.minus])
            if sides.size and not (
                sides.dtype.kind in "iu" and 0 <= sides.min() <= sides.max() < m
            ):
                raise ValueError("structure.sides must number groups")
            if abs(row.limit) > 2**31 or not 0 <= row.rule < len(self.words):
                raise ValueError("structure.limits and structure.rules must be those of rules")
        q = len(self.constraint_words)
        for name, shape in (("matrix", (q, p)), ("lower", (q,)), ("upper", (q,))):
            array = getattr(self, name)
            if array.shape != shape or array.dtype != np.float64 or np.isnan(array).any():
                raise ValueError(f"structure.{name} must have numbers, {q} constraints of them")
        if not np.isfinite(self.matrix).all():
            raise ValueError("structure.matrix must be finite")

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Named plain arrays; :meth:`from_arrays` reads them back."""
        sides = [side for row in self.rows for side in (row.plus, row.minus)]
        return {
            "structure.groups": self.groups,
            "structure.group_names": _texts(self.group_names),
            "structure.ends": np.cumsum([len(side) for side in sides], dtype=np.int64),
            "structure.sides": np.concatenate([np.zeros(0, np.int64), *sides]).astype(np.int64),
            "structure.limits": np.array([row.limit for row in self.rows], dtype=np.int64),
            "structure.rules": np.array([row.rule for row in self.rows], dtype=np.int64),
            "structure.words": _texts(self.words),
            "structure.matrix": self.matrix,
            "structure.lower": self.lower,
            "structure.upper": self.upper,
            "structure.constraint_words": _texts(self.constraint_words),
        }

    @classmethod
    def from_arrays(cls, arrays: Any) -> "Structure | None":
        """The structure in arrays made by :meth:`to_arrays`; None if there is none."""
        if "structure.groups" not in arrays:
            return None
        arrays = Arrays(arrays)
        sides = cut(arrays["structure.sides"], arrays["structure.ends"])
        limits, rules = (_whole(arrays[f"structure.{name}"]) for name in ("limits", "rules"))
        if not len(sides) == 2 * len(limits) == 2 * len(rules):
            raise ValueError("the rules of the structure are incomplete")
        return cls(
            groups=arrays["structure.groups"],
            group_names=_read(arrays["structure.group_names"]),
            rows=tuple(
                Row(sides[2 * i], sides[2 * i + 1], limits[i], rules[i]) for i in range(len(limits))
            ),
            words=_read(arrays["structure.words"]),
            matrix=arrays["structure.matrix"],
            lower=arrays["structure.lower"],
            upper=arrays["structure.upper"],
            constraint_words=_read(arrays["structure.constraint_words"]),
        )


def _texts(texts: tuple[str, ...]) -> np.ndarray:
    return np.array(texts, dtype=np.str_) if texts else np.zeros(0, dtype="U1")


def _read(texts: np.ndarray) -> tuple[str, ...]:
    if texts.ndim != 1 or texts.dtype.kind != "U":
        raise ValueError("the names and words of the structure are no texts")
    return tuple(texts.tolist())


def _whole(numbers: np.ndarray) -> list[int]:
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError("the rules of the structure are no whole numbers")
    return numbers.tolist()
