"""Parquet, Arrow and Feather files; pyarrow is imported by the first one."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.archive import most_bytes
from bestk.base.tuning import tuning
from bestk.readers.coding import Coding
from bestk.readers.files import DataError, File, opened
from bestk.readers.formats.packed import most_unpacked, to_messages
from bestk.readers.formats.source import Block, Source
from bestk.readers.limits import require_room


def parquet_source(path: File) -> Source:
    _require_pyarrow(path)
    with _parquet_file(path) as file:
        return Source(
            names=file.schema_arrow.names,
            chunks=partial(_parquet_chunks, path),
            groups=_group_rows(file),
            texts=_texts(file.schema_arrow),
            strange=_strange(file.schema_arrow),
        )


def _parquet_chunks(
    path: File, wanted: list[str], rows: int, use_threads: bool, coding: Coding
) -> Iterator[np.ndarray]:
    with _parquet_file(path) as file:
        _require_small_groups(path, file, wanted, range(file.num_row_groups))
        n_before = 0
        for groups in _at_a_time(path, range(file.num_row_groups)):
            batches = file.iter_batches(rows, groups, wanted, use_threads=use_threads)
            for chunk in arrow_chunks(batches, wanted, rows, coding, n_before):
                yield chunk
                n_before += len(chunk)


def parquet_blocks(
    path: File,
    wanted: list[str],
    groups: Sequence[int],
    n_rows: int,
    coding: Coding,
    n_before: int,
) -> Iterator[Block]:
    """Some row groups, which have `n_rows` rows and `n_before` before them, by one thread.

    Files that are here are read a few columns at a time, because pages of all columns that are read
    together are in memory. From afar more columns are fewer requests.
    """
    width = tuning().part_columns if isinstance(path, Path) else len(wanted)
    rows = max(tuning().block_bytes // (8 * width), 1)
    with _parquet_file(path) as file:
        sizes = _group_rows(file)
        if max(groups) >= len(sizes) or sum(sizes[group] for group in groups) != n_rows:
            raise DataError(f"{path} has changed since it was opened; open it again")
        _require_small_groups(path, file, wanted, groups)
        first = 0
        for some in _at_a_time(path, groups):
            for column in range(0, len(wanted), width):
                names, row = wanted[column : column + width], first
                batches = file.iter_batches(rows, some, names, use_threads=False)
                for chunk in arrow_chunks(batches, names, rows, coding, n_before + first):
                    yield Block(row, column, chunk)
                    row += len(chunk)
            first += sum(sizes[group] for group in some)


@contextmanager
def _parquet_file(path: File) -> Iterator[Any]:
    """A small buffer keeps whole row groups, which may be the whole file, out of memory.

    A request for each buffer would take long, so those of a row group are made at once from afar.
    Text is read as the numbers of entries of its dictionary: a long one may stand in every row.
    """
    from pyarrow import parquet

    here = isinstance(path, Path)
    how = {"pre_buffer": not here, "buffer_size": tuning().parquet_buffer if here else 0}
    with opened(path) as source:
        with parquet.ParquetFile(source, **how) as file:
            texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
            if not texts:
                yield file
                return
            known = file.metadata
        with parquet.ParquetFile(source, metadata=known, read_dictionary=texts, **how) as file:
            yield file


def _group_rows(file: Any) -> tuple[int, ...]:
    return tuple(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))


def _require_small_groups(path: File, file: Any, wanted: list[str], groups: Sequence[int]) -> None:
    """A page, which may be all of a column in a row group, is unpacked as a whole."""
    names = set(wanted)
    for group in groups:
        about = file.metadata.row_group(group)
        if about.total_byte_size <= most_bytes():
            continue
        columns = [about.column(j) for j in range(about.num_columns)]
        used = [one for one in columns if one.path_in_schema in names]
        n_bytes = sum(one.total_uncompressed_size for one in used)
        way = "leave columns out, write smaller row groups"
        require_room(path, n_bytes, f"row group {group}", way)


def _at_a_time(path: File, groups: Sequence[int]) -> list[Sequence[int]]:
    """Row groups that are asked for together: one from afar, which comes into memory whole."""
    return [groups] if isinstance(path, Path) else [[group] for group in groups]


def arrow_source(path: File) -> Source:
    _require_pyarrow(path)

    def chunks(
        wanted: list[str], rows: int, use_threads: bool, coding: Coding
    ) -> Iterator[np.ndarray]:
        with _arrow_bytes(path) as source:
            if isinstance(path, Path):  # from afar, it would have to come twice
                require_room(path, most_unpacked(source), "a batch", "write smaller batches")
            yield from arrow_chunks(_arrow_batches(source, use_threads), wanted, rows, coding)

    with _arrow_bytes(path) as source:
        schema = _arrow_batches(source).schema
        return Source(schema.names, chunks, texts=_texts(schema), strange=_strange(schema))


def arrow_rows(path: File) -> int | None:
    """Rows of an Arrow file, from its table of contents; None if it has none, as streams have."""
    import pyarrow as pa
    from pyarrow import dataset

    with _arrow_bytes(path) as source:
        try:
            return dataset.IpcFileFormat().make_fragment(source).count_rows()
        except pa.ArrowInvalid:
            return None


def _arrow_bytes(path: File) -> Any:
    import pyarrow as pa

    return pa.memory_map(str(path)) if isinstance(path, Path) else path.open()


def _arrow_batches(source: Any, use_threads: bool = True) -> Any:
    """The rows, batch by batch, with the ``schema``: names and types of columns."""
    import pyarrow as pa

    to_messages(source)
    return pa.ipc.open_stream(source, options=pa.ipc.IpcReadOptions(use_threads=use_threads))


def arrow_chunks(
    batches: Iterable[Any], wanted: list[str], rows: int, coding: Coding, n_before: int = 0
) -> Iterator[np.ndarray]:
    for batch in batches:
        for start in range(0, len(batch), rows):
            part = batch.slice(start, rows)
            chunk = np.empty((len(part), len(wanted)), order="F")
            rows_of_file = np.arange(n_before + 1, n_before + len(part) + 1)
            for j, name in enumerate(wanted):
                chunk[:, j] = _arrow_column(name, part.column(name), coding, rows_of_file)
            yield chunk
            n_before += len(part)


def _arrow_column(name: str, column: Any, coding: Coding, rows: np.ndarray) -> np.ndarray:
    """Numbers of a column; `rows` are those of the file, for messages."""
    import pyarrow as pa

    # Offsets of a broken file may point anywhere; Arrow itself does not look.
    column.validate(full=not _is_numeric(column.type))
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _dictionary_column(name, column, coding, rows)
    other = coding.of_type(name, str(kind))
    if name in coding.levels:
        try:
            encoded = column.cast(pa.large_string()).fill_null("").dictionary_encode()
        except pa.ArrowNotImplementedError:
            raise other from None
        return coding.numbers(name, encoded.dictionary.to_pylist(), encoded.indices.to_numpy())
    if not (_is_text(kind) or _is_numeric(kind)):
        raise other
    try:
        # Nulls become NaN.
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # text that is not plainly a number
        return coding.parsed(name, column.fill_null("").to_pylist(), rows)


def _dictionary_column(name: str, column: Any, coding: Coding, rows: np.ndarray) -> np.ndarray:
    """Numbers of the entries that are used, in the order of their first rows; then of all rows."""
    import pyarrow as pa

    places = column.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    used, first, entry = np.unique(places, return_index=True, return_inverse=True)
    numbers = np.full(len(used), np.nan)
    order = np.argsort(first)
    order = order[used[order] >= 0]
    entries = column.dictionary.take(pa.array(used[order]))
    numbers[order] = _arrow_column(name, entries, coding, rows[first[order]])
    return numbers[entry]


def _texts(schema: Any) -> dict[str, bool]:
    """Which columns are text; files without rows may have columns without a type."""
    import pyarrow as pa

    return {
        field.name: _is_text(field.type) or pa.types.is_dictionary(field.type)
        for field in schema
        if not pa.types.is_null(field.type)
    }


def _strange(schema: Any) -> dict[str, str]:
    """Types of columns that are neither numbers nor text."""
    import pyarrow as pa

    return {
        field.name: str(field.type)
        for field in schema
        if not (_is_text(field.type) or _is_numeric(field.type))
        and not pa.types.is_dictionary(field.type)
    }


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(is_kind(kind) for is_kind in (*kinds, pa.types.is_null))


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _require_pyarrow(path: File) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(
            f'reading {path} needs pyarrow, which is not installed: pip install "bestk[io]"'
        ) from error
