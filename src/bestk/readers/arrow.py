"""Parquet, Arrow and Feather files; pyarrow is imported by the first one."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.tuning import tuning
from bestk.readers.files import DataError, File, opened
from bestk.readers.source import Block, Source, not_numeric


def parquet_source(path: File) -> Source:
    _require_pyarrow(path)
    with _parquet_file(path) as file:
        return Source(
            file.schema_arrow.names, partial(_parquet_chunks, path), (), _group_rows(file)
        )


def _parquet_chunks(
    path: File, wanted: list[str], rows: int, use_threads: bool
) -> Iterator[np.ndarray]:
    with _parquet_file(path) as file:
        for groups in _at_a_time(path, range(file.num_row_groups)):
            yield from _decoded(file, groups, wanted, rows, use_threads)


def parquet_blocks(
    path: File, wanted: list[str], groups: Sequence[int], n_rows: int
) -> Iterator[Block]:
    """Some row groups, which have `n_rows` rows, by one thread.

    Files that are here are read a few columns at a time, because pages of all columns that are read
    together are in memory. From afar more columns are fewer requests.
    """
    width = tuning().part_columns if isinstance(path, Path) else len(wanted)
    rows = max(tuning().block_bytes // (8 * width), 1)
    with _parquet_file(path) as file:
        sizes = _group_rows(file)
        if max(groups) >= len(sizes) or sum(sizes[group] for group in groups) != n_rows:
            raise DataError(f"{path} has changed since it was opened; open it again")
        first = 0
        for some in _at_a_time(path, groups):
            for column in range(0, len(wanted), width):
                names, row = wanted[column : column + width], first
                for chunk in _decoded(file, some, names, rows, use_threads=False):
                    yield Block(row, column, chunk)
                    row += len(chunk)
            first += sum(sizes[group] for group in some)


@contextmanager
def _parquet_file(path: File) -> Iterator[Any]:
    """A small buffer keeps whole row groups, which may be the whole file, out of memory.

    A request for each buffer would take long, so those of a row group are made at once from afar.
    """
    from pyarrow import parquet

    here = isinstance(path, Path)
    buffer = tuning().parquet_buffer if here else 0
    with (
        opened(path) as source,
        parquet.ParquetFile(source, pre_buffer=not here, buffer_size=buffer) as file,
    ):
        yield file


def _group_rows(file: Any) -> tuple[int, ...]:
    return tuple(file.metadata.row_group(i).num_rows for i in range(file.num_row_groups))


def _at_a_time(path: File, groups: Sequence[int]) -> list[Sequence[int]]:
    """Row groups that are asked for together: one from afar, which comes into memory whole."""
    return [groups] if isinstance(path, Path) else [[group] for group in groups]


def _decoded(
    file: Any, groups: Sequence[int], wanted: list[str], rows: int, use_threads: bool
) -> Iterator[np.ndarray]:
    batches = file.iter_batches(rows, groups, wanted, use_threads=use_threads)
    return arrow_chunks(batches, wanted, rows)


def arrow_source(path: File) -> Source:
    _require_pyarrow(path)

    def chunks(wanted: list[str], rows: int, use_threads: bool) -> Iterator[np.ndarray]:
        with _arrow_bytes(path) as source:
            yield from arrow_chunks(_arrow_batches(source, use_threads)[1], wanted, rows)

    with _arrow_bytes(path) as source:
        return Source(_arrow_batches(source)[0], chunks)


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


def _arrow_batches(source: Any, use_threads: bool = True) -> tuple[list[str], Iterable[Any]]:
    """Names of columns, and the rows."""
    import pyarrow as pa

    options = pa.ipc.IpcReadOptions(use_threads=use_threads)
    try:
        file = pa.ipc.open_file(source, options=options)
    except pa.ArrowInvalid:  # the other of the two layouts of this format
        source.seek(0)
        stream = pa.ipc.open_stream(source, options=options)
        return stream.schema.names, stream
    return file.schema.names, map(file.get_batch, range(file.num_record_batches))


def arrow_chunks(batches: Iterable[Any], wanted: list[str], rows: int) -> Iterator[np.ndarray]:
    for batch in batches:
        for start in range(0, len(batch), rows):
            part = batch.slice(start, rows)
            chunk = np.empty((len(part), len(wanted)), order="F")
            for j, name in enumerate(wanted):
                chunk[:, j] = _arrow_numbers(name, part.column(name))
            yield chunk


def _arrow_numbers(name: str, column: Any) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if not any(is_kind(kind) for is_kind in (*numeric, pa.types.is_decimal, pa.types.is_null)):
        raise not_numeric(name, f"values of type {kind}")
    # Nulls become NaN.
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _require_pyarrow(path: File) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(
            f'reading {path} needs pyarrow, which is not installed: pip install "bestk[io]"'
        ) from error
