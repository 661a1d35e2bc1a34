"""What the record batches of an Arrow file unpack to, as their buffers declare it.

Each message of such a file has a table of buffers (a flatbuffer, see Message.fbs and
Schema.fbs of Apache Arrow). If they are compressed, each begins with the number of bytes that it
unpacks to. A batch is unpacked as a whole, and dictionaries stay in memory, so this is looked at
before.
"""

import struct
from typing import Any

# Numbers of fields in the tables of the format.
_HEADER_TYPE, _HEADER = 1, 2
_BATCH_BUFFERS, _BATCH_COMPRESSION = 2, 3
_DICTIONARY_ID, _DICTIONARY_DATA, _IS_DELTA = 0, 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def to_messages(source: Any) -> None:
    """Go to the first message of an open file.

    The layout with a table of contents is that of streams behind eight bytes. It is read as one:
    the table of contents could name other messages than those that were looked at.
    """
    source.seek(0)
    source.seek(8 if bytes(source.read(6)) == b"ARROW1" else 0)


def most_unpacked(source: Any) -> int:
    """Bytes that a batch of an open file and all dictionaries before it unpack to, at most."""
    import pyarrow as pa

    most = held = 0
    dictionaries: dict[int, int] = {}
    to_messages(source)
    try:
        for message in pa.ipc.MessageReader.open_stream(source):
            own, more = _sizes(memoryview(message.metadata), message.body, dictionaries)
            held += more
            most = max(most, own + held)
    except (struct.error, IndexError, pa.ArrowException, OSError):
        pass  # what is broken is for the reader to say
    source.seek(0)
    return most


def _sizes(meta: memoryview, body: Any, dictionaries: dict[int, int]) -> tuple[int, int]:
    """(bytes of the batch in a message, bytes by which it makes `dictionaries` larger)"""
    message = _offset(meta, 0)
    kind, header = (_field(meta, message, number) for number in (_HEADER_TYPE, _HEADER))
    if kind is None or header is None or body is None:
        return 0, 0
    table = _offset(meta, header)
    if meta[kind] == _RECORD_BATCH:
        return _unpacked(meta, table, body), 0
    if meta[kind] != _DICTIONARY_BATCH:
        return 0, 0
    name, data = (_field(meta, table, number) for number in (_DICTIONARY_ID, _DICTIONARY_DATA))
    delta = _field(meta, table, _IS_DELTA)
    key = 0 if name is None else struct.unpack_from("<q", meta, name)[0]
    before = dictionaries.get(key, 0)
    own = 0 if data is None else _unpacked(meta, _offset(meta, data), body)
    dictionaries[key] = own + (before if delta is not None and meta[delta] else 0)
    return 0, dictionaries[key] - before


def _unpacked(meta: memoryview, batch: int, body: Any) -> int:
    buffers = _field(meta, batch, _BATCH_BUFFERS)
    if buffers is None or _field(meta, batch, _BATCH_COMPRESSION) is None:
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
