"""Tables in one file or many, read in batches of rows and never whole (npz apart)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import numpy as np

from bestk.base.validation import (
    few,
    hint_for,
    nearest,
    pandas_for,
    require_choice,
    require_count,
)
from bestk.readers.coding import Coding
from bestk.readers.files import DataError, File, for_each, is_remote
from bestk.readers.formats.endings import open_source, table_files
from bestk.readers.formats.source import (
    UNNAMED,
    Source,
    columns_of,
    explained,
    naming,
    rows_at_a_time,
)
from bestk.readers.levels import levels_of
from bestk.readers.missing import LeftOut, Missing, require_weights
from bestk.readers.parts import TablePart, cut


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """A matrix, ``values``, that knows the names of its ``columns``."""

    values: np.ndarray
    columns: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def to_frame(self) -> Any:
        """The same as a pandas data frame, to which columns can be added."""
        return pandas_for("to_frame").DataFrame(self.values, columns=list(self.columns))


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
    left_out : LeftOut
        Rows that the latest pass has left out, because values are missing there.
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
    _missing: Missing = field(default=Missing(), repr=False)
    left_out: LeftOut = field(default_factory=LeftOut, repr=False)

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

    @property
    def n_file_rows(self) -> int | None:
        """Rows of all files, those with missing values included; None if files do not tell."""
        groups = [sizes for sizes in self._row_groups if sizes is not None]
        return sum(map(sum, groups)) if len(groups) == len(self.files) else None

    @property
    def drops_missing(self) -> bool:
        """Whether rows with missing values are left out."""
        return self._missing.drop

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        names = columns_of(self.columns, self.target, self.weight)
        features, is_empty = self.features, True
        p = len(features)
        self.left_out.clear()
        for i, file in enumerate(self.files):
            n_rows = 0
            with naming(file) if len(self.files) > 1 else nullcontext(), explained(file):
                source = open_source(file) if i > 0 else self._first
                for chunk in source.chunks(names, self.batch_rows, True, self._coding):
                    self._missing.require(chunk, names, n_rows, len(self.columns))
                    n_rows += len(chunk)
                    wide = self._coding.expanded(self.left_out.complete(chunk, names), names)
                    if len(wide) > 0:
                        is_empty = False
                        require_weights(self.weight, wide[:, p + 1 :])
                        yield NamedColumns(wide[:, :p], features), *wide[:, p:].T
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
        columns |= {"coding": self._coding, "missing": self._missing}
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
        if self.left_out.values:
            (column, _), *_ = self.left_out.values.most_common(1)
            return DataError(
                f"every row of {self.title} has a missing value, most of them in column "
                f"{column!r}; leave such columns out with drop=[{column!r}]"
            )
        return DataError(f"{self.title} has column names but no rows")


def open_data(
    path: str | Path,
    *,
    target: str = "y",
    weight: str | None = None,
    features: Iterable[str] = (),
    drop: Iterable[str] = (),
    numeric: Iterable[str] = (),
    text: Iterable[str] = (),
    missing: Literal["error", "drop"] = "error",
    like: Data | None = None,
    batch_rows: int | None = None,
    encode: bool = True,
    target_option: str = "target",
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
    features : iterable of str
        Columns that are features; all but target and weight if none is given. As on the command
        line, ``"a,b"`` is two names unless a column is called so, and ``"temp_*"`` all names that
        begin so. Other columns are not read, and files need not have them.
    drop : iterable of str
        Columns to leave out, named in the same way.
    numeric, text : iterable of str
        Features to read as numbers, and as text, whatever they look like.
    missing : {"error", "drop"}
        Rows with missing values in columns that are used: an error, or left out and counted in
        :attr:`Data.left_out`.
    like : Data or None
        Another table, such as the rows of a fit: columns, target, weight, levels of text and what
        is done about missing values are then those of that table, and other options have no effect.
    batch_rows : int or None
        Most rows of a batch; None means batches of about 16 MB, more if there are many columns.
    encode : bool
        Whether text becomes indicators. If not, it is an error when the rows are read.
    target_option : str
        The argument that error messages call the target.

    Returns
    -------
    Data

    Raises
    ------
    DataError
        Here, or when the rows are read.
    """
    require_choice("missing", missing, ("error", "drop"))
    if batch_rows is not None:
        require_count("batch_rows", batch_rows, least=1)
    files = table_files(path)
    if like is not None:
        return _alike(path, files, like)
    first = open_source(files[0])
    names = _names(files[0], first)
    others = _headers(files[1:], names)
    everywhere = [*names, *dict.fromkeys(name for header in others for name in header.extra)]
    if names != [target] and len(names) == 1:
        raise DataError(
            f"{target_option}: there is no column {target!r}; {files[0]} has one column, "
            f"{names[0]!r}. Columns of text files are separated by commas, semicolons or tabs"
        )
    require_columns(target_option, [target], names)
    require_columns("weight", [] if weight is None else [weight], names)
    if weight == target:
        raise DataError(
            f"{target_option}={target!r} and weight={target!r} are one column; choose two"
        )
    drop = choose_columns("drop", drop, everywhere)
    features = set(choose_columns("features", features, names))
    unused = {target, weight, *drop}
    columns = tuple(
        name for name in first.names if name not in unused and (not features or name in features)
    )
    if not columns:
        kind = "features" if encode else "states"
        raise DataError(
            f"{files[0]} has no columns besides {target!r} that could be {kind}; name others, or "
            "leave out fewer"
        )
    for name in columns:
        if name.startswith(UNNAMED):
            raise DataError(
                f"a column of {files[0]} has no name, as often for row numbers; "
                f"give it a name, or leave it out with drop=[{name!r}]"
            )
    for header in others:
        ignored = header.extra if features else drop
        _require_alike(header, files[0], columns_of(columns, target, weight), ignored)
    handling = Missing(drop=missing == "drop", is_choice=encode)
    needed = frozenset({target} if weight is None else {target, weight})
    coding = Coding(needed=needed)
    if encode:
        texts = [first.texts, *(header.texts for header in others)]
        coding = _coding(files, columns, texts, list(numeric), list(text), handling)
        coding = replace(coding, needed=needed)
        used = columns_of(columns, target, weight)
        for file, strange in zip(files, (first.strange, *(h.strange for h in others)), strict=True):
            _require_types(file, strange, used, coding)
    return Data(
        path=path if is_remote(path) else Path(path),
        files=files,
        columns=columns,
        target=target,
        weight=weight,
        # Text with one level is a column, and no feature.
        batch_rows=batch_rows or rows_at_a_time(max(len(columns), len(coding.features(columns)))),
        _coding=coding,
        _first=first,
        _row_groups=(first.groups, *(header.groups for header in others)),
        _missing=handling,
    )


def _alike(path: str | Path, files: tuple[File, ...], like: Data) -> Data:
    """The same columns of other files, in the same order and with the same levels."""
    wanted = columns_of(like.columns, like.target, like.weight)
    first, *others = _headers(files, wanted)
    for header in (first, *others):
        _require_alike(header, like.files[0], wanted, header.extra)
    return replace(
        like,
        path=path if is_remote(path) else Path(path),
        files=files,
        left_out=LeftOut(),
        _first=open_source(files[0]),
        _row_groups=tuple(header.groups for header in (first, *others)),
    )


def read_trajectory(
    path: str | Path, *, time: str, states: Iterable[str] = (), drop: Iterable[str] = ()
) -> tuple[NamedColumns, np.ndarray]:
    """(states, times) of a file, read whole; all columns but the time are states unless named."""
    data = open_data(path, target=time, drop=drop, encode=False, target_option="time")
    if len(data.files) > 1:
        raise DataError(
            f"{data.title} is not one trajectory; give the file of each trajectory by itself"
        )
    chosen = choose_columns("states", states, data.features) or data.features
    batches = list(replace(data, columns=tuple(chosen)))
    x, times = (np.concatenate([np.asarray(batch[i]) for batch in batches]) for i in (0, 1))
    back = np.flatnonzero(np.diff(times) <= 0.0)
    if len(back):
        row = int(back[0]) + 1
        raise DataError(
            f"{data.title}: times (time={time!r}) must increase, but {times[row]:g} in row "
            f"{row + 1} comes after {times[row - 1]:g}; sort the rows, leave out repeated times, "
            "and give each trajectory a file of its own"
        )
    return NamedColumns(x, tuple(chosen)), times


def require_columns(argument: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    """All wanted names are known, or an error that names the most similar ones."""
    known = dict.fromkeys(known)
    for name in wanted:
        if name not in known:
            raise DataError(f"{argument}: there is no column {name!r}{hint_for(name, known)}")


def choose_columns(argument: str, texts: Iterable[str], known: Iterable[str]) -> list[str]:
    """Known names from texts that are names or patterns (``temp_*``), also joined by commas."""
    known = dict.fromkeys(known)  # a table may have a hundred thousand columns
    chosen: list[str] = []
    for text in texts:
        pieces = text.split(",")
        while pieces:
            # A name may have commas, too: it is as long as it can be.
            ends = range(len(pieces), 0, -1)
            names = {end: ",".join(pieces[:end]).strip() for end in ends}
            end = next((end for end in ends if names[end] in known), 1)
            chosen += _matching(names[end], known)
            del pieces[:end]
    require_columns(argument, chosen, known)
    return chosen


def _matching(name: str, known: Iterable[str]) -> list[str]:
    """The names that a pattern stands for, or the name itself."""
    if name in known:
        return [name]
    return [other for other in known if fnmatchcase(other, name)] or [name]


def _coding(
    files: tuple[File, ...],
    columns: tuple[str, ...],
    texts: list[Mapping[str, bool]],
    numeric: list[str],
    text: list[str],
    missing: Missing,
) -> Coding:
    """Which columns are text, and their levels; the first file that can tell decides."""
    numeric = choose_columns("numeric", numeric, columns)
    text = choose_columns("text", text, columns)
    for name in numeric:
        if name in text:
            raise DataError(
                f"numeric=[{name!r}] and text=[{name!r}] are one column; choose one of them"
            )
    is_text = {name: kind for known in reversed(texts) for name, kind in known.items()}
    is_text |= dict.fromkeys(numeric, False) | dict.fromkeys(text, True)
    encoded = [name for name in columns if is_text.get(name)]
    coding = Coding(
        levels=levels_of(files, encoded, text, missing),
        undecided=frozenset(columns).difference(numeric),
    )
    features = coding.features(columns)
    twice = [name for name, times in Counter(features).items() if times > 1]
    if twice:
        raise DataError(
            f"{twice[0]!r} is the name of a column, and of a level of another column; rename the "
            "column"
        )
    if not features:
        raise DataError(
            f"column {columns[0]!r} has one value in all rows, and there are no other columns that "
            "could be features; name others"
        )
    return coding


class _Header(NamedTuple):
    """What the header of a further file says, beside that of the first one."""

    file: File
    lacks: frozenset[str]
    extra: list[str]
    groups: tuple[int, ...] | None
    texts: Mapping[str, bool]
    strange: Mapping[str, str]


def _headers(files: tuple[File, ...], names: list[str]) -> list[_Header]:
    def read(file: File) -> _Header:
        source = open_source(file)
        own = set(_names(file, source))
        extra = [name for name in source.names if name not in known]
        return _Header(file, known - own, extra, source.groups, source.texts, source.strange)

    known = frozenset(names)
    return list(for_each(files, read))


def _require_alike(header: _Header, first: File, wanted: list[str], drop: list[str]) -> None:
    """A further file has the wanted columns of the first one, and no others."""
    lacking = [name for name in wanted if name in header.lacks]
    ignored = set(drop)
    extra = [name for name in header.extra if name not in ignored]
    if lacking:
        hint = nearest(lacking[0], extra) or "; all files of a table need the same columns"
        raise DataError(f"{header.file} has no column {lacking[0]!r}, as {first} has{hint}")
    if extra:
        raise DataError(
            f"{header.file} has a column {extra[0]!r} that {first} does not have; "
            f"leave it out with drop=[{extra[0]!r}]"
        )


def _require_types(file: File, strange: Mapping[str, str], used: list[str], coding: Coding) -> None:
    """Types that no row can mend are found before any row is read."""
    for name in used:
        if name in strange and name not in coding.levels:
            with naming(file):
                raise coding.of_type(name, strange[name])


def _names(file: File, source: Source) -> list[str]:
    """All columns of a file, which has each of them once."""
    names = [*source.names, *source.others]
    if not names:
        raise DataError(f"{file} is empty; it needs a line of column names, and rows")
    twice = [repr(name) for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{file} has more than one column named {few(twice)}; rename them")
    return names
