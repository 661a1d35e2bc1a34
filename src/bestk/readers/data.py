"""Files of named columns, read in batches of rows and never whole (npz apart)."""

import csv
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.tuning import tuning
from bestk.base.validation import nearest
from bestk.readers.arrow import arrow_source, parquet_source
from bestk.readers.npz import npz_source
from bestk.readers.source import UNNAMED, DataError, Source
from bestk.readers.text import text_source

_FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": text_source,
    ".tsv": text_source,
    ".parquet": parquet_source,
    ".arrow": arrow_source,
    ".feather": arrow_source,
    ".npz": npz_source,
}


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """A matrix that knows the names of its columns."""

    values: np.ndarray
    columns: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)


@dataclass(frozen=True, kw_only=True)
class Data:
    """A file as an iterable of batches (X, y) or (X, y, weight); each iteration is one pass.

    Attributes
    ----------
    path : Path
        The file.
    features : tuple of str
        Names of the columns of X.
    target, weight : str, str or None
        Names of the columns y and, if there is one, weight.
    batch_rows : int
        Most rows of a batch.
    """

    path: Path
    features: tuple[str, ...]
    target: str
    weight: str | None
    batch_rows: int
    _source: Source = field(repr=False)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        wanted = [*self.features, self.target] + ([self.weight] if self.weight else [])
        p, n_rows = len(self.features), 0
        with _explained(self.path):
            for chunk in self._source.chunks(wanted, self.batch_rows):
                _require_finite(chunk, wanted, n_rows)
                n_rows += len(chunk)
                yield NamedColumns(chunk[:, :p], self.features), *chunk[:, p:].T
        if n_rows == 0:
            raise DataError(f"{self.path} has column names but no rows")


def open_data(
    path: str | Path,
    *,
    target: str = "y",
    weight: str | None = None,
    drop: Iterable[str] = (),
    batch_rows: int | None = None,
    target_option: str = "--target",
) -> Data:
    """Data of a file; the header is read now, the rows batch by batch when iterated over.

    Parameters
    ----------
    path : str or Path
        .csv, .tsv (also .csv.gz, .tsv.gz), .parquet, .arrow, .feather or .npz. An npz file holds
        one array per column, or a matrix ``X`` with, if wanted, its ``feature_names``.
    target, weight : str, str or None
        Columns of y and of the weights of the squared residuals.
    drop : iterable of str
        Columns to leave out; all others are features. As on the command line, ``"a,b"`` is two
        names unless a column is called so.
    batch_rows : int or None
        Most rows of a batch; None means batches of about 16 MB, more if there are many columns.
    target_option : str
        What error messages call the target.

    Returns
    -------
    Data

    Raises
    ------
    DataError
        Here, or when the rows are read.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    with _explained(path):
        source = _format(path)(path)
    names = [*source.names, *source.others]
    _require_distinct(path, names)
    require_columns(target_option, [target], names)
    require_columns("--weight", [weight] if weight else [], names)
    drop = choose_columns("--drop", drop, names)
    features = tuple(name for name in source.names if name not in {target, weight, *drop})
    if not features:
        raise DataError(f"{path} has no columns besides {target!r} that could be features")
    for name in features:
        if name.startswith(UNNAMED):
            raise DataError(
                f"a column of {path} has no name, as row numbers often have; "
                f"give it one or leave it out with --drop {name}"
            )
    if batch_rows is None:
        # The Gram matrix has p rows, and adding to it costs as much as to multiply a few rows.
        p = len(features)
        batch_rows = max(tuning().batch_bytes // (8 * p), p // 4, 1)
    return Data(
        path=path,
        features=features,
        target=target,
        weight=weight,
        batch_rows=batch_rows,
        _source=source,
    )


def read_trajectory(
    path: str | Path, *, time: str, states: Iterable[str] = (), drop: Iterable[str] = ()
) -> tuple[NamedColumns, np.ndarray]:
    """(states, times) of a file, read whole; all columns but the time are states unless named."""
    data = open_data(path, target=time, drop=drop, target_option="--time")
    chosen = choose_columns("--states", states, data.features) or data.features
    batches = list(replace(data, features=tuple(chosen)))
    x = np.concatenate([np.asarray(batch[0]) for batch in batches])
    return NamedColumns(x, tuple(chosen)), np.concatenate([batch[1] for batch in batches])


def require_columns(option: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    """All wanted names are known, or an error that names the most similar ones."""
    known = list(known)
    for name in wanted:
        if name not in known:
            hint = nearest(name, known) or f"; there are {_listed(known)}"
            raise DataError(f"{option}: there is no column {name!r}{hint}")


def choose_columns(option: str, texts: Iterable[str], known: Iterable[str]) -> list[str]:
    """Known names from texts that are names, or names joined by commas."""
    known = list(known)
    chosen = []
    for text in texts:
        chosen += [text] if text in known else [name.strip() for name in text.split(",")]
    require_columns(option, chosen, known)
    return chosen


def _format(path: Path) -> Callable[[Path], Source]:
    suffix = Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()
    if suffix not in _FORMATS or (
        path.suffix.lower() == ".gz" and _FORMATS[suffix] is not text_source
    ):
        raise DataError(f"{path} is none of {', '.join(_FORMATS)}; .csv.gz and .tsv.gz work too")
    return _FORMATS[suffix]


def _require_distinct(path: Path, names: list[str]) -> None:
    if not names:
        raise DataError(f"{path} is empty")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{path} has more than one column named {_listed(twice)}; rename them")


def _require_finite(chunk: np.ndarray, names: list[str], n_before: int) -> None:
    finite = np.isfinite(chunk)
    if finite.all():
        return
    row, column = np.argwhere(~finite)[0]
    kind = "a missing" if np.isnan(chunk[row, column]) else "an infinite"
    raise DataError(
        f"column {names[column]!r} has {kind} value in row {n_before + row + 1}; "
        f"drop or fill such rows first, or leave the column out with --drop {names[column]}"
    )


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of readers in words for the owner of the file."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:  # damaged files too, by Arrow and gzip
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text; convert it first") from error
    except (ValueError, EOFError, csv.Error, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read {path}: {error}") from error
