"""Files of named columns, read in batches of rows and never whole (npz apart)."""

import csv
import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from bestk.validation import nearest

# Rows are read so many bytes at a time, as float64.
BATCH_BYTES = 2**26
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
_BOOLEANS = {"true": 1.0, "false": 0.0}
_DELIMITERS = (",", ";", "\t")

# Matrices of so many rows (at most) with these columns; called anew for each pass.
Blocks = Callable[[list[str], int], Iterator[np.ndarray]]


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
    _blocks: Blocks = field(repr=False)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        wanted = [*self.features, self.target] + ([self.weight] if self.weight else [])
        p, n_rows = len(self.features), 0
        for block in self._blocks(wanted, self.batch_rows):
            if len(block) == 0:
                continue
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
        Columns to leave out; all others are features.
    batch_rows : int or None
        Most rows of a batch; None means batches of about 64 MB.

    Returns
    -------
    Data

    Raises
    ------
    DataError
        Here, or when the rows are read.
    """
    path, drop = Path(path), set(drop)
    with _explained(path):
        names, blocks = _format(path)(path)
    _require_distinct(path, names)
    for option, wanted in (("--target", [target]), ("--weight", [weight] if weight else [])):
        require_columns(option, wanted, names)
    require_columns("--drop", drop, names)
    features = tuple(name for name in names if name not in {target, weight, *drop})
    if not features:
        raise DataError(f"{path} has no columns besides {target!r} that could be features")
    for name in features:
        if name.startswith(_UNNAMED):
            raise DataError(
                f"a column of {path} has no name, as row numbers often have; "
                f"give it one or leave it out with --drop {name}"
            )
    if batch_rows is None:
        batch_rows = max(BATCH_BYTES // (8 * len(names)), 1)
    return Data(
        path=path,
        features=features,
        target=target,
        weight=weight,
        batch_rows=batch_rows,
        _blocks=lambda wanted, rows: _explained_blocks(path, blocks(wanted, rows)),
    )


def require_columns(option: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    """All wanted names are known, or an error that names the most similar ones."""
    known = list(known)
    for name in wanted:
        if name not in known:
            hint = nearest(name, known) or f"; there are {_listed(known)}"
            raise DataError(f"{option}: there is no column {name!r}{hint}")


def _format(path: Path) -> Callable[[Path], tuple[list[str], Blocks]]:
    suffix = Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()
    if suffix not in _FORMATS or (path.suffix.lower() == ".gz" and _FORMATS[suffix] is not _text):
        raise DataError(f"{path} is none of {', '.join(_FORMATS)}; .csv.gz and .tsv.gz work too")
    return _FORMATS[suffix]


def _require_distinct(path: Path, names: list[str]) -> None:
    if not names:
        raise DataError(f"{path} is empty")
    twice = sorted({name for name in names if names.count(name) > 1})
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


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Errors of readers in words for the owner of the file."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}") from error
    except OSError as error:
        # Arrow and gzip report damaged files this way too.
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text; convert it first") from error
    except (ValueError, EOFError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def _explained_blocks(path: Path, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    with _explained(path):
        yield from blocks


# Text ---------------------------------------------------------------------------------------

_UNNAMED = "unnamed_column_"


def _text(path: Path) -> tuple[list[str], Blocks]:
    with _opened(path) as file:
        header = file.readline()
        if not header.strip():
            raise DataError(f"{path} is empty" if not file.read(1) else f"{path} has no header")
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

    return names, blocks


def _opened(path: Path) -> Any:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _plain_csv(
    path: Path, delimiter: str, names: list[str], wanted: list[str], rows: int, skip: int
) -> Iterator[np.ndarray]:
    pick = itemgetter(*(names.index(name) for name in wanted))
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
            flat = chain.from_iterable(chosen)
            try:
                values = np.fromiter(map(float, flat), float, len(batch) * len(wanted))
                yield values.reshape(len(batch), len(wanted))
            except ValueError:
                columns = zip(wanted, zip(*chosen, strict=True), strict=True)
                yield np.column_stack([_parsed(name, texts, skip) for name, texts in columns])
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
        first = next(islice((line for line in csv.reader(file, delimiter=delimiter) if line), 1, 2))
    switches = {n for n, text in zip(names, first, strict=False) if text.lower() in _BOOLEANS}
    reader = arrow_csv.open_csv(
        path,
        # The header is skipped, because it was read already and its names may have been mended.
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=1),
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


def _parquet(path: Path) -> tuple[list[str], Blocks]:
    _require_pyarrow(path)
    from pyarrow import parquet

    def blocks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        with parquet.ParquetFile(path) as file:
            batches = file.iter_batches(batch_size=rows, columns=wanted)
            yield from _arrow_blocks(batches, wanted, rows)

    with parquet.ParquetFile(path) as file:
        return file.schema_arrow.names, blocks


def _arrow(path: Path) -> tuple[list[str], Blocks]:
    _require_pyarrow(path)
    import pyarrow as pa

    @contextmanager
    def opened() -> Iterator[tuple[list[str], Iterator[Any]]]:
        with pa.memory_map(str(path)) as source:
            try:
                file = pa.ipc.open_file(source)
                number = file.num_record_batches
                yield file.schema.names, (file.get_batch(i) for i in range(number))
            except pa.ArrowInvalid:  # the other of the two layouts of this format
                source.seek(0)
                stream = pa.ipc.open_stream(source)
                yield stream.schema.names, stream

    def blocks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        with opened() as (_, batches):
            yield from _arrow_blocks(batches, wanted, rows)

    with opened() as (names, _):
        return names, blocks


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


def _npz(path: Path) -> tuple[list[str], Blocks]:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    if "X" in arrays and arrays["X"].ndim == 2:
        X = arrays.pop("X")
        names = arrays.pop("feature_names", np.array([f"x{j}" for j in range(X.shape[1])]))
        if len(names) != X.shape[1]:
            raise DataError(f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X")
        columns = dict(zip(map(str, names), X.T, strict=True))
        if len(columns) < len(names) or columns.keys() & arrays.keys():
            raise DataError(f"{path} uses a name for more than one column; rename them")
        columns |= arrays
    else:
        columns = arrays

    def blocks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        for name in wanted:
            if columns[name].ndim != 1 or columns[name].dtype.kind not in "buif":
                shape = f"{columns[name].dtype} values in shape {columns[name].shape}"
                raise _not_numeric(name, shape)
        lengths = {len(columns[name]) for name in wanted}
        if len(lengths) > 1:
            raise DataError(f"the arrays of {path} have different lengths: {sorted(lengths)}")
        for start in range(0, lengths.pop(), rows):
            part = slice(start, start + rows)
            yield np.column_stack([columns[name][part].astype(np.float64) for name in wanted])

    return list(columns), blocks


_FORMATS: dict[str, Callable[[Path], tuple[list[str], Blocks]]] = {
    ".csv": _text,
    ".tsv": _text,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".npz": _npz,
}
