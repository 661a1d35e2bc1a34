"""Values that no model can use: an error that names the first one, or rows that are left out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bestk.readers.files import DataError


@dataclass(frozen=True)
class Missing:
    """Whether rows with missing values are left out; if not, and for infinite ones, an error."""

    drop: bool = False
    is_choice: bool = True
    """Whether the user could have asked for it: rows of a trajectory are not left out."""

    def first(self, chunk: np.ndarray) -> tuple[int, int] | None:
        """(row, column) of the first value that is an error."""
        wrong = np.isinf(chunk) if self.drop else ~np.isfinite(chunk)
        if not wrong.any():
            return None
        row, column = np.argwhere(wrong)[0].tolist()
        return row, column

    def require(
        self, chunk: np.ndarray, names: Sequence[str], n_before: int, n_features: int
    ) -> None:
        """No value is an error. There are `n_before` rows before; the first names are features."""
        place = self.first(chunk)
        if place is not None:
            row, column = place
            is_feature = column < n_features
            raise self.error(names[column], chunk[place], n_before + row, is_feature)

    def error(self, name: str, value: float, row: int, is_feature: bool) -> DataError:
        kind, ways = "an infinite", ["replace such values first"]
        if np.isnan(value):
            kind, ways = "a missing", ["fill such values first"]
            if self.is_choice:
                ways.append("leave such rows out with missing='drop'")
        if is_feature:
            ways.append(f"leave the column out with drop=[{name!r}]")
        out = ", or ".join(ways)
        return DataError(f"column {name!r} has {kind} value in row {row + 1}; {out}")


def require_weights(name: str | None, values: np.ndarray) -> None:
    """Weights are not negative; `values` are empty if there are none."""
    if values.size and values.min() < 0.0:
        raise DataError(
            f"weight={name!r} has negative values, such as {values.min():g}; weights are "
            "at least 0, and 0 leaves a row out"
        )


@dataclass
class LeftOut:
    """Rows that a pass has left out, because values are missing there.

    Attributes
    ----------
    n_rows : int or None
        How many rows; None before the first pass, and if other processes read the rows.
    values : Counter
        {column: how many of its values are missing}.
    """

    n_rows: int | None = None
    values: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        self.n_rows = 0
        self.values.clear()

    def complete(self, chunk: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """The rows in which nothing is missing; the others are counted."""
        missing = np.isnan(chunk)
        if not missing.any():
            return chunk
        whole = ~missing.any(axis=1)
        self.n_rows = (self.n_rows or 0) + len(whole) - int(whole.sum())
        counts = missing.sum(axis=0)
        self.values.update({names[j]: int(counts[j]) for j in np.flatnonzero(counts).tolist()})
        return chunk[whole]
