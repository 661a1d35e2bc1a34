"""What every format offers, and what is wrong with a file."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from bestk.base.tuning import tuning
from bestk.readers.coding import Coding
from bestk.readers.files import DataError, File

UNNAMED = "unnamed_column_"
"""Names of columns that have none begin so."""
_MOST_BATCH = 1 << 30
"""Bytes of a batch, as float64: a limit from 23,000 columns on."""


class Source(NamedTuple):
    """What a format has to offer."""

    names: list[str]
    """Columns that are features unless the user says otherwise."""
    chunks: Callable[[list[str], int, bool, Coding], Iterator[np.ndarray]]
    """One pass: matrices of these columns, of at most the given number of rows, by several threads
    or by one; text as the numbers of its levels."""
    others: tuple[str, ...] = ()
    """Columns that can only be target or weight."""
    groups: tuple[int, ...] | None = None
    """Rows of each row group, where groups can be read one by one."""
    texts: Mapping[str, bool] = MappingProxyType({})
    """Whether a column is text, where the types of columns or the first row tell."""
    strange: Mapping[str, str] = MappingProxyType({})
    """Types of columns that are neither numbers nor text."""


class Block(NamedTuple):
    """Some rows of some columns, from these on."""

    row: int
    column: int
    values: np.ndarray


def columns_of(features: Iterable[str], target: str, weight: str | None) -> list[str]:
    """Names of the columns of (X, y) or (X, y, weight)."""
    return [*features, target] + ([weight] if weight else [])


def rows_at_a_time(p: int) -> int:
    """Rows of a batch; adding to a Gram matrix costs as much as to multiply a few rows.

    A small file may have many rows of very many columns, all alike: no batch takes gigabytes.
    """
    return max(tuning().batch_bytes // (8 * p), min(p // 4, _MOST_BATCH // (8 * p)), 1)


@contextmanager
def explained(file: File) -> Iterator[None]:
    """Errors of readers in words for the owner of the file."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:  # damaged files too, by Arrow and gzip
        raise DataError(f"cannot read {file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not text in UTF-8; save it with this encoding first") from error
    except (ValueError, EOFError, csv.Error, zipfile.BadZipFile, zlib.error, MemoryError) as error:
        raise DataError(f"cannot read {file}: {str(error) or 'too little memory'}") from error
    except Exception as error:
        if isinstance(file, Path):
            raise
        # Every package for remote files has errors of its own.
        raise DataError(f"cannot read {file}: {error}") from error


@contextmanager
def naming(file: File) -> Iterator[None]:
    """Errors say which file they are about, where there are several."""
    try:
        yield
    except DataError as error:
        if str(file) in str(error):
            raise
        raise DataError(f"{file}: {error}") from error
