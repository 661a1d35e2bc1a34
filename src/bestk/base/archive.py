"""Arrays in npz files, whoever wrote them: sizes are looked at before anything is unpacked.

A small file may unpack to gigabytes, and what it says of itself may be false. So the directory of
the archive and the header of each array are compared with each other and with a limit, no more
bytes are read than they announce, and nothing is ever unpickled.
"""

import json
import math
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from tokenize import TokenError
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from bestk.base.validation import require_number

MOST_BYTES = 4 << 30
"""Bytes of all arrays of a file, unless the user says otherwise: more than any proof has had."""
VARIABLE = "BESTK_MAX_BYTES"
"""The environment variable that replaces this limit."""
_ENLARGED = 4
"""Of a file that is larger than the limit itself, arrays may have this many times its size."""
_MOST_ENTRIES = 1 << 17
"""Arrays of a file: a table may have one for each column."""
_DEFLATED = 1032
"""Bytes that one byte of a deflated stream can stand for, at most."""
_HEADER_BYTES = 1 << 16
"""The header of one array, at most."""
_TEXT_BYTES = 256 << 20
"""A text of our own files, 4 bytes a character: as Python's values it takes several times that."""
_MOST_ROWS = 1 << 22
"""Rows that lie end to end in one array: each becomes an array of some 100 bytes."""
_BLOCK = 1 << 20
# What NumPy's reader of such headers raises: it parses them as Python literals.
_BAD_HEADER = (
    ValueError, TypeError, KeyError, AttributeError, SyntaxError, RecursionError, MemoryError,
    OverflowError, IndexError, TokenError,
)  # fmt: skip
_MISSING: Any = object()
_OTHER = "give another file, or write this one again"


class TooLarge(ValueError):
    """The arrays of a file take more memory than is allowed."""


class Arrays(dict[str, np.ndarray]):
    """Arrays by name; one that is missing makes the file a broken one."""

    def __missing__(self, name: str) -> np.ndarray:
        raise ValueError(f"the file is broken: it has no array {name!r}")

    def of_part(self, prefix: str) -> "Arrays":
        """Those whose names begin so, without the beginning."""
        return Arrays({n.removeprefix(prefix): a for n, a in self.items() if n.startswith(prefix)})

    def require_few_rows(self) -> None:
        """All rows that lie end to end, of all parts, become arrays of their own; see `cut`."""
        count = sum(array.size for name, array in self.items() if name.endswith(".ends"))
        if count > _MOST_ROWS:
            raise TooLarge(f"the file has {count} rows that lie end to end, too many")


class _Entry(NamedTuple):
    name: str
    info: ZipInfo


class _Header(NamedTuple):
    """What an array says of itself; its numbers begin at ``start``."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype
    start: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def naming(path: Any) -> Iterator[None]:
    """Whatever is wrong with the content of a file is an error that names the file."""
    try:
        yield
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def arrays_in(path: str | Path, max_bytes: int | None = None) -> Arrays:
    """All arrays of a file of ours, or an error that says what is wrong with it.

    `max_bytes`: of all arrays together. By default 4 GiB (or ``BESTK_MAX_BYTES``), and for larger
    files four times their size.
    """
    require_file(path)
    with open(path, "rb") as file:
        arrays = read_arrays(file, path, max_bytes)
    return Arrays({name: _plain(path, name, array) for name, array in arrays.items()})


def require_file(path: str | Path) -> None:
    """Devices and pipes may never end, and what a name leads to may be one."""
    kind = os.stat(path).st_mode
    if not (S_ISREG(kind) or S_ISDIR(kind)):  # to open a folder is an error that says so
        raise ValueError(f"{path} is a device or a pipe; copy its content to a file first")


def read_arrays(file: Any, path: Any, max_bytes: int | None = None) -> dict[str, np.ndarray]:
    """The arrays of any npz file that is open; no Python objects."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        with ZipFile(file) as archive:
            entries = _entries(archive, path)
            _require_small(path, entries, size, max_bytes)
            headers = [_header(archive, path, entry) for entry in entries]
            pairs = zip(entries, headers, strict=True)
            return {e.name: _array(archive, path, e, header) for e, header in pairs}
    except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path} is no npz file, or a broken one ({error}); {_OTHER}") from error
    except (UnicodeDecodeError, OverflowError, IndexError) as error:  # of a directory that lies
        raise ValueError(f"{path} is no npz file, or a broken one; {_OTHER}") from error


def _entries(archive: ZipFile, path: Any) -> list[_Entry]:
    infos = archive.infolist()
    if len(infos) > _MOST_ENTRIES:
        raise TooLarge(f"{path} has {len(infos)} arrays, more than {_MOST_ENTRIES}")
    entries = [_Entry(info.filename.removesuffix(".npy"), info) for info in infos]
    for name, info in entries:
        if not info.filename.endswith(".npy"):
            raise ValueError(f"{path} is no npz file: {info.filename!r} is no array")
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{path} is broken: array {name!r} is packed in an unknown way")
        if info.file_size > _DEFLATED * info.compress_size + 64:
            raise ValueError(f"{path} is broken: array {name!r} claims more bytes than it can hold")
    if len({entry.name for entry in entries}) < len(entries):
        raise ValueError(f"{path} is broken: an array is there twice")
    return entries


def _require_small(path: Any, entries: list[_Entry], size: int, max_bytes: int | None) -> None:
    if max_bytes is not None:
        require_number("max_bytes", max_bytes, least=0.0, finite=False)
    total = sum(entry.info.file_size for entry in entries)
    most = max(most_bytes(), _ENLARGED * size) if max_bytes is None else max_bytes
    if total > most:
        raise TooLarge(
            f"the arrays of {path} take {total:.3g} bytes, and {most:.3g} are allowed; if you "
            f"trust the file, raise max_bytes= or the environment variable {VARIABLE}"
        )


def most_bytes() -> int:
    """The limit that the user has set, or ours."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return MOST_BYTES
    try:
        return int(float(given))
    except (ValueError, OverflowError):
        raise ValueError(f"{VARIABLE} must be a number of bytes, got {given!r}") from None


def _header(archive: ZipFile, path: Any, entry: _Entry) -> _Header:
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with archive.open(entry.info) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a header may be thousands of lines of them
            read = readers[np.lib.format.read_magic(file)]
            shape, is_fortran, dtype = read(file, max_header_size=_HEADER_BYTES)
            start = file.tell()
    except _BAD_HEADER as error:
        raise ValueError(f"array {entry.name!r} of {path} is broken") from error
    if dtype.hasobject:
        raise ValueError(
            f"array {entry.name!r} of {path} holds Python objects; save it as numbers, or as str"
        )
    header = _Header(shape, is_fortran, dtype, start)
    if any(length < 0 for length in shape) or start + header.nbytes != entry.info.file_size:
        raise ValueError(f"array {entry.name!r} of {path} is broken: its size is not what it says")
    # Empty arrays, and those of empty items, take no bytes whatever their shapes.
    if math.prod(max(length, 1) for length in shape) > max(entry.info.file_size, _MOST_ROWS):
        raise ValueError(f"array {entry.name!r} of {path} is broken: it has the shape {shape}")
    return header


def _array(archive: ZipFile, path: Any, entry: _Entry, header: _Header) -> np.ndarray:
    """No more bytes than were announced; a checksum is compared behind the last one."""
    content = np.empty(header.nbytes, dtype=np.uint8)
    with archive.open(entry.info) as file:
        if len(file.read(header.start)) < header.start:
            raise EOFError
        done = 0
        while part := file.read(min(_BLOCK, header.nbytes - done) or 1):
            if done + len(part) > header.nbytes:
                raise EOFError
            content[done : done + len(part)] = np.frombuffer(part, dtype=np.uint8)
            done += len(part)
    if done < header.nbytes:
        raise ValueError(f"array {entry.name!r} of {path} is broken: it ends too early")
    if header.dtype == np.bool_ and content.max(initial=0) > 1:
        raise ValueError(f"array {entry.name!r} of {path} is broken: it is not true or false")
    if header.dtype.kind == "U":
        code = content.view(np.dtype(np.uint32).newbyteorder(header.dtype.byteorder))
        if code.max(initial=0) > 0x10FFFF or ((code >= 0xD800) & (code < 0xE000)).any():
            raise ValueError(f"array {entry.name!r} of {path} is broken: it is no text")
    try:
        array: np.ndarray = np.ndarray(
            header.shape, header.dtype, content.data if content.size else None,
            order="F" if header.is_fortran else "C",
        )  # fmt: skip
    except (ValueError, TypeError) as error:
        raise ValueError(f"array {entry.name!r} of {path} is broken") from error
    return array


def _plain(path: Any, name: str, array: np.ndarray) -> np.ndarray:
    """In the order and the types that our files have: numbers of this machine, or text."""
    parts = array.dtype.fields
    kinds = [array.dtype] if parts is None else [part[0] for part in parts.values()]
    for dtype in kinds:
        is_number = dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize in (4, 8))
        if not is_number and dtype.kind != "U":
            raise ValueError(f"{path} is broken: array {name!r} is of the type {array.dtype}")
    if array.dtype.kind == "U" and array.nbytes > _TEXT_BYTES:
        raise TooLarge(f"the text {name!r} of {path} takes {array.nbytes} bytes, too many")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        if array.size and array.max() >= 2**63:
            raise ValueError(f"{path} is broken: array {name!r} has numbers beyond 2^63")
        array = array.astype(np.int64)
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)


# Headers --------------------------------------------------------------------------------------


def header_in(arrays: Mapping[str, np.ndarray], name: str) -> dict[str, Any]:
    """The JSON object that an entry holds; empty if there is no such entry, or something else."""
    text = arrays.get(name)
    if text is None or text.dtype.kind != "U" or text.size != 1 or text.nbytes > _TEXT_BYTES:
        return {}
    try:
        header = json.loads(str(text.item()))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the file is broken: its entry {name!r} is no JSON text") from error
    return header if isinstance(header, dict) else {}


def value_in(header: Mapping[str, Any], name: str, *kinds: type, default: Any = _MISSING) -> Any:
    """A value of a header, of one of these types (None: ``type(None)``); others are ignored."""
    value = header.get(name, default)
    if value is _MISSING:
        raise ValueError(f"the file is broken: its header has no {name!r}")
    if value is default:
        return value
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        is_right = abs(value) < 2**1000
    elif int in kinds and type(value) is int:
        is_right = abs(value) < 2**62
    else:
        is_right = isinstance(value, kinds) and (
            kinds in ((bool,), (object,)) or not isinstance(value, bool)
        )
    if not is_right:
        raise ValueError(f"the file is broken: {name!r} in its header is {str(value)[:40]!r}")
    return value


def version_in(header: Mapping[str, Any]) -> int:
    return value_in(header, "version", int)


# Rows of different lengths lie end to end in one array ------------------------------------------


def cut(array: np.ndarray, ends: np.ndarray, most: int = _MOST_ROWS) -> list[np.ndarray]:
    """The rows; ValueError where `ends` do not divide the array into rows."""
    if ends.ndim != 1 or array.ndim != 1 or (ends.size and ends.dtype.kind not in "iu"):
        raise ValueError("the file is broken: rows that lie end to end are not vectors")
    if len(ends) > most:
        raise TooLarge(f"the file has {len(ends)} rows that lie end to end, too many")
    lengths = np.diff(ends.astype(np.int64), prepend=0)
    if (lengths < 0).any() or (int(ends[-1]) if len(ends) else 0) != len(array):
        raise ValueError("the file is broken: rows that lie end to end have the wrong lengths")
    return np.split(array, ends[:-1]) if len(ends) else []
