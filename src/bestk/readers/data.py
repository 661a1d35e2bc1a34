"""Tables in one file or many, read in batches of rows and never whole (npz apart)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from bestk.base.validation import nearest
from bestk.readers.coding import Coding
from bestk.readers.files import DataError, File, for_each, is_remote
from bestk.readers.formats import open_source, table_files
from bestk.readers.levels import levels_of
from bestk.readers.parts import TablePart, cut
from bestk.readers.source import (
    UNNAMED,
    Source,
    columns_of,
    explained,
    naming,
    require_finite,
    rows_at_a_time,
)


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """A matrix that knows the names of its columns."""

    values: np.ndarray
    columns: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)


@dataclass(frozen=True, kw_only=True)
class Data:
    """A table as an iterable of batches (X, y) or (X, y, weight); each iteration is one pass.

    Attributes
    ----------
    path : Path or str
        What was opened: a file, a folder, a pattern, or the address of one.
    files : tuple of Path or RemoteFile
        The files, in the order of the rows.
    columns : tuple of str
        The columns of the files that are features.
    target, weight : str, str or None
        Names of the columns y and, if there is one, weight.
    batch_rows : int
        Most rows of a batch.
    """

    path: Path | str
    files: tuple[File, ...]
    columns: tuple[str, ...]
    target: str
    weight: str | None
    batch_rows: int
    _coding: Coding = field(repr=False)
    _first: Source = field(repr=False)
    _row_groups: tuple[tuple[int, ...] | None, ...] = field(repr=False)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of X: ``column=level`` for the levels of columns of text."""
        return self._coding.features(self.columns)

    @property
    def groups(self) -> dict[str, list[str]]:
        """{column of text: its features}, which a model has all together or not at all."""
        names = {column: self._coding.names(column) for column in self._coding.levels}
        return {column: own for column, own in names.items() if own}

    @property
    def baseline(self) -> dict[str, str]:
        """{column of text: the level that has no feature}: the first in sorted order."""
        levels = self._coding.levels.items()
        return {column: next(iter(own)) for column, own in levels if own}

    @property
    def title(self) -> str:
        """The path, with the number of files if there are several."""
        n = len(self.files)
        return str(self.files[0]) if n == 1 else f"{self.path} ({n:,} files)"

    @property
    def name(self) -> str:
        """The last part of the title, for where there is little room."""
        n = len(self.files)
        last = PurePosixPath(str(self.path)).name
        return self.files[0].name if n == 1 else f"{last} ({n:,} files)"

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        names = columns_of(self.columns, self.target, self.weight)
        features, is_empty = self.features, True
        p = len(features)
        for i, file in enumerate(self.files):
            n_rows = 0
            with naming(file) if len(self.files) > 1 else nullcontext(), explained(file):
                source = open_source(file) if i > 0 else self._first
                for chunk in source.chunks(names, self.batch_rows, True, self._coding):
                    require_finite(chunk, names, n_rows)
                    n_rows += len(chunk)
                    wide = self._coding.expanded(chunk, names)
                    yield NamedColumns(wide[:, :p], features), *wide[:, p:].T
            is_empty &= n_rows == 0
        if is_empty:
            raise self._no_rows

    def parts(self) -> list[TablePart]:
        """The table in parts, in order, which any process reads on its own.

        Row groups of Parquet files are joined up to about 128 MB of float64. Any other file is one
        part. What has no rows is left out, as far as that is known without reading.
        """
        # Another process may be in another folder.
        files = [file.absolute() if isinstance(file, Path) else file for file in self.files]
        columns: Any = {"features": self.columns, "target": self.target, "weight": self.weight}
        columns |= {"coding": self._coding}
        parts = [
            part
            for file, groups in zip(files, self._row_groups, strict=True)
            for part in cut(TablePart(file=file, **columns), groups)
        ]
        if not parts:
            raise self._no_rows
        return parts

    @property
    def _no_rows(self) -> DataError:
        return DataError(f"{self.title} has column names but no rows")


def open_data(
    path: str | Path,
    *,
    target: str = "y",
    weight: str | None = None,
    drop: Iterable[str] = (),
    numeric: Iterable[str] = (),
    text: Iterable[str] = (),
    batch_rows: int | None = None,
    encode: bool = True,
    target_option: str = "--target",
) -> Data:
    """Data of a table; headers are read now, the rows batch by batch when iterated over.

    A feature that is text becomes indicators of its levels, named ``column=level``, without the
    first level in sorted order. Such columns are read now, for their levels; there may be 200 of
    them. Types of columns tell what is text; of CSV, TSV and the like the first row does.

    Parameters
    ----------
    path : str or Path
        A file: .csv, .tsv (also .csv.gz, .tsv.gz), .parquet, .arrow, .feather or .npz. An npz file
        holds one array per column, or a matrix ``X`` with, if wanted, its ``feature_names``.
        Or several files of one format with the same columns: a folder, with all folders in it, or
        a pattern such as ``data/*.parquet`` or ``data/**/*.csv``. They are one table, in the order
        of their paths. Names that start with a dot or an underscore are passed over, and so are
        endings that are not known. Any of these may be remote, as ``s3://bucket/data/*.parquet``:
        what has ``://`` is opened by fsspec.
    target, weight : str, str or None
        Columns of y and of the weights of the squared residuals.
    drop : iterable of str
        Columns to leave out; all others are features. As on the command line, ``"a,b"`` is two
        names unless a column is called so.
    numeric, text : iterable of str
        Features to read as numbers, and as text, whatever they look like.
    batch_rows : int or None
        Most rows of a batch; None means batches of about 16 MB, more if there are many columns.
    encode : bool
        Whether text becomes indicators. If not, it is an error when the rows are read.
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
    files = table_files(path)
    first = open_source(files[0])
    names = _names(files[0], first)
    others = _headers(files[1:], names)
    everywhere = [*names, *dict.fromkeys(name for header in others for name in header.extra)]
    require_columns(target_option, [target], names)
    require_columns("--weight", [weight] if weight else [], names)
    drop = choose_columns("--drop", drop, everywhere)
    columns = tuple(name for name in first.names if name not in {target, weight, *drop})
    if not columns:
        raise DataError(f"{files[0]} has no columns besides {target!r} that could be features")
    for name in columns:
        if name.startswith(UNNAMED):
            raise DataError(
                f"a column of {files[0]} has no name, as row numbers often have; "
                f"give it one or leave it out with --drop {name}"
            )
    for header in others:
        _require_alike(header, files[0], columns_of(columns, target, weight), drop)
    coding = Coding()
    if encode:
        texts = [first.texts, *(header.texts for header in others)]
        coding = _coding(files, columns, texts, list(numeric), list(text))
    return Data(
        path=path if is_remote(path) else Path(path),
        files=files,
        columns=columns,
        target=target,
        weight=weight,
        batch_rows=batch_rows or rows_at_a_time(len(coding.features(columns))),
        _coding=coding,
        _first=first,
        _row_groups=(first.groups, *(header.groups for header in others)),
    )


def read_trajectory(
    path: str | Path, *, time: str, states: Iterable[str] = (), drop: Iterable[str] = ()
) -> tuple[NamedColumns, np.ndarray]:
    """(states, times) of a file, read whole; all columns but the time are states unless named."""
    data = open_data(path, target=time, drop=drop, encode=False, target_option="--time")
    if len(data.files) > 1:
        raise DataError(f"{data.title} is not one trajectory; name each file for itself")
    chosen = choose_columns("--states", states, data.features) or data.features
    batches = list(replace(data, columns=tuple(chosen)))
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
        pieces = text.split(",")
        while pieces:
            # A name may have commas, too: it is as long as it can be.
            ends = range(len(pieces), 0, -1)
            names = {end: ",".join(pieces[:end]).strip() for end in ends}
            end = next((end for end in ends if names[end] in known), 1)
            chosen.append(names[end])
            del pieces[:end]
    require_columns(option, chosen, known)
    return chosen


def _coding(
    files: tuple[File, ...],
    columns: tuple[str, ...],
    texts: list[Mapping[str, bool]],
    numeric: list[str],
    text: list[str],
) -> Coding:
    """Which columns are text, and their levels; the first file that can tell decides."""
    numeric = choose_columns("--numeric", numeric, columns)
    text = choose_columns("--text", text, columns)
    for name in numeric:
        if name in text:
            raise DataError(f"--numeric and --text both name {name!r}; choose one of them")
    is_text = {name: kind for known in reversed(texts) for name, kind in known.items()}
    is_text |= dict.fromkeys(numeric, False) | dict.fromkeys(text, True)
    encoded = [name for name in columns if is_text.get(name)]
    coding = Coding(
        levels=levels_of(files, encoded, text),
        undecided=frozenset(columns).difference(numeric),
    )
    features = coding.features(columns)
    twice = [name for name, times in Counter(features).items() if times > 1]
    if twice:
        raise DataError(f"{twice[0]!r} is a column, and a level of another one; rename the column")
    if not features:
        raise DataError(f"{columns[0]!r} has one level at most, and there are no other columns")
    return coding


class _Header(NamedTuple):
    """What the header of a further file says, beside that of the first one."""

    file: File
    lacks: frozenset[str]
    extra: list[str]
    groups: tuple[int, ...] | None
    texts: Mapping[str, bool]


def _headers(files: tuple[File, ...], names: list[str]) -> list[_Header]:
    def read(file: File) -> _Header:
        source = open_source(file)
        own = set(_names(file, source))
        extra = [name for name in source.names if name not in known]
        return _Header(file, known - own, extra, source.groups, source.texts)

    known = frozenset(names)
    return list(for_each(files, read))


def _require_alike(header: _Header, first: File, wanted: list[str], drop: list[str]) -> None:
    """A further file has the wanted columns of the first one, and no others."""
    lacking = [name for name in wanted if name in header.lacks]
    extra = [name for name in header.extra if name not in drop]
    if lacking:
        hint = nearest(lacking[0], extra) or "; all files of a table need the same columns"
        raise DataError(f"{header.file} has no column {lacking[0]!r}, as {first} has{hint}")
    if extra:
        raise DataError(
            f"{header.file} has a column {extra[0]!r} that {first} does not have; "
            f"leave it out with --drop {extra[0]}"
        )


def _names(file: File, source: Source) -> list[str]:
    """All columns of a file, which has each of them once."""
    names = [*source.names, *source.others]
    if not names:
        raise DataError(f"{file} is empty; it needs a line of column names and rows")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{file} has more than one column named {_listed(twice)}; rename them")
    return names


def _listed(names: list[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")
