"""What the record batches of an Arrow file unpack to, as their buffers declare it.

Each message of such a file has a table of buffers (a flatbuffer, see Message.fbs and
Schema.fbs of Apache Arrow). If they are compressed, each begins with the number of bytes that it
unpacks to. A batch is unpacked as a whole, so this is looked at before.
"""

import struct
from typing import Any

# Numbers of fields in the tables of the format.
_HEADER_TYPE, _HEADER = 1, 2
_BATCH_BUFFERS, _BATCH_COMPRESSION, _DICTIONARY_DATA = 2, 3, 1
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def largest_batch(source: Any) -> int:
    """Bytes that the largest batch, or dictionary, of an open file unpacks to."""
    import pyarrow as pa

    # The layout with a table of contents is that of streams behind eight bytes.
    is_file = bytes(source.read(6)) == b"ARROW1"
    source.seek(8 if is_file else 0)
    largest = 0
    try:
        for message in pa.ipc.MessageReader.open_stream(source):
            largest = max(largest, _unpacked(message.metadata, message.body))
    except (struct.error, IndexError, pa.ArrowException, OSError):
        pass  # what is broken is for the reader to say
    source.seek(0)
    return largest


def _unpacked(metadata: Any, body: Any) -> int:
    meta = memoryview(metadata)
    message = _offset(meta, 0)
    kind = _field(meta, message, _HEADER_TYPE)
    header = _field(meta, message, _HEADER)
    if kind is None or header is None or body is None:
        return 0
    batch: int | None = _offset(meta, header)
    if meta[kind] == _DICTIONARY_BATCH and batch is not None:
        data = _field(meta, batch, _DICTIONARY_DATA)
        batch = None if data is None else _offset(meta, data)
    elif meta[kind] != _RECORD_BATCH:
        return 0
    buffers = None if batch is None else _field(meta, batch, _BATCH_BUFFERS)
    if batch is None or buffers is None or _field(meta, batch, _BATCH_COMPRESSION) is None:
        return body.size
    vector = _offset(meta, buffers)
    (count,) = struct.unpack_from("<I", meta, vector)
    content, total = memoryview(body), 0
    for i in range(count):
        start, length = struct.unpack_from("<qq", meta, vector + 4 + 16 * i)
        if length >= 8:
            (unpacked,) = struct.unpack_from("<q", content, start)
            total += length if unpacked < 0 else unpacked  # -1: this one is not compressed
    return total


def _offset(meta: memoryview, place: int) -> int:
    """Where a table or vector begins that `place` refers to."""
    return place + struct.unpack_from("<I", meta, place)[0]


def _field(meta: memoryview, table: int, number: int) -> int | None:
    """Where a field of a table is; None if the table does not have it."""
    vtable = table - struct.unpack_from("<i", meta, table)[0]
    (size,) = struct.unpack_from("<H", meta, vtable)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", meta, vtable + 4 + 2 * number)
    return table + offset if offset else None
