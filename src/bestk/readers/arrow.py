"""Parquet, Arrow and Feather files; pyarrow is imported by the first one."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.tuning import tuning
from bestk.readers.source import DataError, Source, not_numeric


def parquet_source(path: Path) -> Source:
    _require_pyarrow(path)
    from pyarrow import parquet

    def chunks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        # A small buffer keeps whole row groups, which may be the whole file, out of memory.
        with parquet.ParquetFile(
            path, pre_buffer=False, buffer_size=tuning().parquet_buffer
        ) as file:
            batches = file.iter_batches(batch_size=rows, columns=wanted)
            yield from arrow_chunks(batches, wanted, rows)

    with parquet.ParquetFile(path) as file:
        return Source(file.schema_arrow.names, chunks)


def arrow_source(path: Path) -> Source:
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

    def chunks(wanted: list[str], rows: int) -> Iterator[np.ndarray]:
        with pa.memory_map(str(path)) as source:
            yield from arrow_chunks(opened(source)[1], wanted, rows)

    with pa.memory_map(str(path)) as source:
        return Source(opened(source)[0], chunks)


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


def _require_pyarrow(path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(
            f'reading {path} needs pyarrow, which is not installed: pip install "bestk[io]"'
        ) from error
