"""What every format offers, and what is wrong with a file."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

UNNAMED = "unnamed_column_"
"""Names of columns that have none begin so."""


class Source(NamedTuple):
    """What a format has to offer."""

    names: list[str]
    """Columns that are features unless the user says otherwise."""
    chunks: Callable[[list[str], int], Iterator[np.ndarray]]
    """One pass: matrices of these columns, of at most the given number of rows."""
    others: tuple[str, ...] = ()
    """Columns that can only be target or weight."""


class DataError(ValueError):
    """What is wrong with a file, and what its owner can do about it."""


def not_numeric(name: str, what: str) -> DataError:
    return DataError(
        f"column {name!r} holds {what}; encode it as numbers or leave it out with --drop {name}"
    )
