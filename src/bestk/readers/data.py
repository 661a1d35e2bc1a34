"""Files of named columns, read in batches of rows and never whole (npz apart)."""

import csv
import gzip
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bestk.base.validation import nearest

# Rows are read so many bytes at a time, as float64 or as text; Python's strings take far more.
BATCH_BYTES = 2**24
_TEXT_BYTES = 2**22
_PLAIN_VALUES = 2**19
_PARQUET_BUFFER = 2**18
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
_BOOLEANS = {"true": 1.0, "false": 0.0}
_DELIMITERS = (",", ";", "\t")


class Source(NamedTuple):
    """What a format has to offer."""

    names: list[str]
    """Columns that are features unless the user says otherwise."""
    blocks: Callable[[list[str], int], Iterator[np.ndarray]]
    """One pass: matrices of these columns, of at most so many rows."""
    others: tuple[str, ...] = ()
    """Columns that can only be target or weight."""


class DataError(ValueError):
    """What is wrong with a file, and what its owner can do about it."""


@dataclass(frozen=True, eq=False)
class Block:
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
            for block in self._source.blocks(wanted, self.batch_rows):
                _require_finite(block, wanted, n_rows)
                n_rows += len(block)
                yield Block(block[:, :p], self.features), *block[:, p:].T
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
        if name.startswith(_UNNAMED):
            raise DataError(
                f"a column of {path} has no name, as row numbers often have; "
                f"give it one or leave it out with --drop {name}"
            )
    if batch_rows is None:
        # The Gram matrix has p rows, and adding to it costs as much as to multiply a few rows.
        p = len(features)
        batch_rows = max(BATCH_BYTES // (8 * p), p // 4, 1)
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
) -> tuple[Block, np.ndarray]:
    """(states, times) of a file, read whole; all columns but the time are states unless named."""
    data = open_data(path, target=time, drop=drop, target_option="--time")
    chosen = choose_columns("--states", states, data.features) or data.features
    batches = list(replace(data, features=tuple(chosen)))
    x = np.concatenate([np.asarray(batch[0]) for batch in batches])
    return Block(x, tuple(chosen)), np.concatenate([batch[1] for batch in batches])


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
    if suffix not in _FORMATS or (path.suffix.lower() == ".gz" and _FORMATS[suffix] is not _text):
        raise DataError(f"{path} is none of {', '.join(_FORMATS)}; .csv.gz and .tsv.gz work too")
    return _FORMATS[suffix]


def _require_distinct(path: Path, names: list[str]) -> None:
    if not names:
        raise DataError(f"{path} is empty")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{path} has more than one column named {_listed(twice)}; rename them")


def _require_finite(block: np.ndarray, names: list[str], n_before: int) -> None:
    finite = np.isfinite(block)
    if finite.all():
        return
    row, column = np.argwhere(~finite)[0]
    kind = "a missing" if np.isnan(block[row, column]) else "an infinite"
    raise DataError(
        f"column {names[column]!r} has {kind} value in row {n_before + row + 1}; "
        f"drop or fill such rows first, or leave the column out with --drop {names[column]}"
    )


def _not_numeric(name: str, what: str) -> DataError:
    return DataError(
        f"column {name!r} holds {what}; encode it as numbers or leave it out with --drop {name}"
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


# Text ---------------------------------------------------------------------------------------

_UNNAMED = "unnamed_column_"


def _text(path: Path) -> Source:
    with _opened(path) as file:
        header = file.readline()
        if not header.strip():
            raise DataError(f"{path} has no column names in its first line")
        delimiter = max(_DELIMITERS, key=header.count)
        file.seek(0)
        names = [name.strip() for name in next(csv.reader(file, delimiter=delimiter))]
    names = [name or f"{_UNNAMED}{i}" for i, name in enumerate(names, start=1)]

    def blocks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        n_rows = 0
        try:
            import pyarrow
        except ImportError:
            pass
        else:
            # Arrow is several times faster, but knows less about what people put into files: where
            # it gives up, the plain reader goes on, or says in which row and column the trouble is.
            try:
                for block in _arrow_csv(path, delimiter, names, wanted, rows):
                    n_rows += len(block)
                    yield block
                return
            except pyarrow.ArrowInvalid:
                pass
        yield from _plain_csv(path, delimiter, names, wanted, rows, n_rows)

    return Source(names, blocks)


def _opened(path: Path) -> Any:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _plain_csv(
    path: Path, delimiter: str, names: list[str], wanted: list[str], rows: int, skip: int
) -> Iterator[np.ndarray]:
    pick = itemgetter(*(names.index(name) for name in wanted))
    rows = max(min(rows, _PLAIN_VALUES // len(names)), 1)
    with _opened(path) as file:
        lines = csv.reader(file, delimiter=delimiter)
        next(lines)
        full = islice((line for line in lines if line), skip, None)
        while batch := list(islice(full, rows)):
            for i, line in enumerate(batch):
                if len(line) != len(names):
                    raise DataError(
                        f"row {skip + i + 1} of {path} has {len(line)} values, "
                        f"but there are {len(names)} columns"
                    )
            chosen = [pick(line) for line in batch]
            try:
                values = np.fromiter(map(float, chain.from_iterable(chosen)), float)
                block = values.reshape(len(batch), len(wanted))
            except ValueError:
                columns = zip(wanted, zip(*chosen, strict=True), strict=True)
                block = np.column_stack([_parsed(name, texts, skip) for name, texts in columns])
            yield block
            skip += len(batch)


def _parsed(name: str, texts: Iterable[str], n_before: int) -> np.ndarray:
    """Numbers of a column in which not everything looks like one."""
    values = []
    for row, text in enumerate(texts, start=n_before + 1):
        word = text.strip().lower()
        try:
            values.append(_BOOLEANS[word] if word in _BOOLEANS else float(word))
        except ValueError:
            if word not in _MISSING:
                raise _not_numeric(name, f"text ({text!r} in row {row})") from None
            values.append(np.nan)
    return np.array(values)


def _arrow_csv(
    path: Path, delimiter: str, names: list[str], wanted: list[str], rows: int
) -> Iterator[np.ndarray]:
    """Blocks by Arrow; ArrowInvalid wherever something is not plainly a number."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with _opened(path) as file:
        first = next(islice(csv.reader(file, delimiter=delimiter), 1, 2), [])
    switches = {n for n, text in zip(names, first, strict=False) if text.lower() in _BOOLEANS}
    reader = arrow_csv.open_csv(
        path,
        # The header is skipped, because it was read already and its names may have been mended.
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=1, block_size=_TEXT_BYTES),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=wanted,
            # Types from the first rows would be wrong where a decimal point comes later.
            column_types={n: pa.bool_() if n in switches else pa.float64() for n in wanted},
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
            null_values=[],
        ),
    )
    with reader:
        yield from _arrow_blocks(reader, wanted, rows)


# Arrow ---------------------------------------------------------------------------------------


def _parquet(path: Path) -> Source:
    _require_pyarrow(path)
    from pyarrow import parquet

    def blocks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        # A small buffer keeps whole row groups, which may be the whole file, out of memory.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=_PARQUET_BUFFER) as file:
            batches = file.iter_batches(batch_size=rows, columns=wanted)
            yield from _arrow_blocks(batches, wanted, rows)

    with parquet.ParquetFile(path) as file:
        return Source(file.schema_arrow.names, blocks)


def _arrow(path: Path) -> Source:
    _require_pyarrow(path)
    import pyarrow as pa

    def opened(source: Any) -> tuple[list[str], Iterable[Any]]:
        try:
            file = pa.ipc.open_file(source)
        except pa.ArrowInvalid:  # the other of the two layouts of this format
            source.seek(0)
            stream = pa.ipc.open_stream(source)
            return stream.schema.names, stream
        return file.schema.names, map(file.get_batch, range(file.num_record_batches))

    def blocks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        with pa.memory_map(str(path)) as source:
            yield from _arrow_blocks(opened(source)[1], wanted, rows)

    with pa.memory_map(str(path)) as source:
        return Source(opened(source)[0], blocks)


def _arrow_blocks(batches: Iterable[Any], wanted: list[str], rows: int) -> Iterator[np.ndarray]:
    for batch in batches:
        for start in range(0, len(batch), rows):
            part = batch.slice(start, rows)
            block = np.empty((len(part), len(wanted)), order="F")
            for j, name in enumerate(wanted):
                block[:, j] = _arrow_numbers(name, part.column(name))
            yield block


def _arrow_numbers(name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if not any(is_kind(kind) for is_kind in (*numeric, pa.types.is_decimal, pa.types.is_null)):
        raise _not_numeric(name, f"values of type {kind}")
    # Nulls become NaN.
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _require_pyarrow(path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(
            f'reading {path} needs pyarrow, which is not installed: pip install "bestk[io]"'
        ) from error


# NumPy ---------------------------------------------------------------------------------------


def _npz(path: Path) -> Source:
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path} is not an npz file; write one with numpy.savez")
    with np.load(path) as file:
        arrays = {name: _array(path, file, name) for name in file.files}
    others: tuple[str, ...] = ()
    if "X" in arrays and arrays["X"].ndim == 2:
        X = arrays.pop("X")
        names = arrays.pop("feature_names", [f"x{j}" for j in range(X.shape[1])])
        names = [str(name) for name in names]
        if len(names) != X.shape[1]:
            raise DataError(f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X")
        others = tuple(arrays)
        arrays |= zip(names, X.T, strict=True)
    else:
        names = list(arrays)

    def blocks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        for name in wanted:
            if arrays[name].ndim != 1 or arrays[name].dtype.kind not in "buif":
                what = f"{arrays[name].dtype} in the shape {arrays[name].shape}"
                raise DataError(f"array {name!r} of {path} is {what}, not a vector of numbers")
        lengths = {len(arrays[name]) for name in wanted}
        if len(lengths) > 1:
            raise DataError(f"the arrays of {path} have different lengths: {sorted(lengths)}")
        for start in range(0, lengths.pop(), rows):
            part = slice(start, start + rows)
            yield np.column_stack([arrays[name][part].astype(np.float64) for name in wanted])

    return Source(names, blocks, others)


def _array(path: Path, file: Any, name: str) -> np.ndarray:
    try:
        return file[name]
    except ValueError as error:  # NumPy refuses to unpickle
        raise DataError(
            f"array {name!r} of {path} holds Python objects; save it as numbers, or as str"
        ) from error


_FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": _text,
    ".tsv": _text,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".npz": _npz,
}
