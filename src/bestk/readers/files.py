"""Which files a path stands for: itself, those of a folder, or those that match a pattern.

Paths with ``://`` are those of fsspec, which is imported by the first one.
"""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar

from bestk.base.tuning import tuning

_WILDCARD = re.compile(r"[*?\[]")
_HIDDEN = (".", "_")

T = TypeVar("T")


class DataError(ValueError):
    """What is wrong with a file, and what its owner can do about it."""


@dataclass(frozen=True)
class RemoteFile:
    """A file that fsspec opens. It can be pickled: its file system is known by its settings."""

    system: Any
    path: str

    @property
    def name(self) -> str:
        """The last part of the path, without what may follow it in a web address."""
        return self.path.rpartition("/")[2].partition("?")[0]

    def open(self, mode: str = "rb", **options: Any) -> AbstractContextManager[Any]:
        """The file, decompressed if its name says that it is compressed."""
        from fsspec.core import OpenFile

        compression = "gzip" if self.name.lower().endswith(".gz") else None
        return OpenFile(self.system, self.path, mode, compression, **options)

    def __str__(self) -> str:
        return self.system.unstrip_protocol(self.path)


File = Path | RemoteFile


def opened(file: File) -> AbstractContextManager[Any]:
    """What pyarrow reads: the path of a file that is here, else a file object."""
    return nullcontext(file) if isinstance(file, Path) else file.open()


def for_each(files: Iterable[File], read: Callable[[File], T]) -> Iterator[T]:
    """What is read of each file; several at a time where that means waiting for a network."""
    files = list(files)
    if all(isinstance(file, Path) for file in files):
        yield from map(read, files)
        return
    with ThreadPoolExecutor(tuning().remote_files) as threads:
        yield from threads.map(read, files)


def is_remote(path: str | Path) -> bool:
    return isinstance(path, str) and "://" in path


class Listing(NamedTuple):
    """Files that a path stands for, in order."""

    files: list[File]
    folder: File | None = None
    """The folder that was searched; None if the path is that of a file."""
    is_deep: bool = False
    """Whether some of them are in folders of that folder."""


def list_files(path: str | Path) -> Listing:
    """The file itself, all files below a folder, or those that match a pattern.

    Names that start with a dot or an underscore are passed over, unless the pattern asks for such
    names. Files come in the order of their paths, part by part.
    """
    if not str(path):
        raise DataError("the name of the file is empty; give one")
    with _reached(path):
        place, text = _place(path)
        if place.is_file(text):
            return Listing([place.file(text)])
        if place.is_folder(text):
            folder, pattern, found = text, "", place.below(text)
        elif wildcard := _WILDCARD.search(text):
            above = text[: wildcard.start()].rpartition("/")
            folder, pattern = above[0] or above[1] or ".", text[len(above[0]) :]
            found = place.matching(text)
        else:
            if isinstance(place, _Here) and Path(text).exists():
                raise DataError(f"{path} is not a plain file; write the data to a file first")
            raise DataError(f"there is no file {path}")
    parts = {file: PurePosixPath(file).relative_to(folder).parts for file in found}
    hidden = tuple(mark for mark in _HIDDEN if f"/{mark}" not in f"/{pattern}")
    seen = [file for file in parts if not any(part.startswith(hidden) for part in parts[file])]
    if pattern and not seen:
        raise DataError(f"no file matches {path}")
    return Listing(
        files=[place.file(file) for file in sorted(seen, key=parts.__getitem__)],
        folder=place.file(folder),
        is_deep=any(len(parts[file]) > 1 for file in seen),
    )


def _walk(folder: Path) -> Iterator[Path]:
    """All names below a folder but hidden ones; an error where a folder cannot be read."""

    def fail(error: OSError) -> None:
        raise error

    for root, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        yield from (Path(root, name) for name in names)


class _Here:
    """The files of this machine."""

    def file(self, path: str) -> Path:
        return Path(path)

    def is_file(self, path: str) -> bool:
        return Path(path).is_file()

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()

    def below(self, folder: str) -> list[str]:
        return [file.as_posix() for file in _walk(Path(folder)) if file.is_file()]

    def matching(self, pattern: str) -> list[str]:
        hits = map(Path, glob.glob(pattern, recursive=True))
        return [hit.as_posix() for hit in hits if hit.is_file()]


class _Remote:
    """The files of a file system of fsspec."""

    def __init__(self, system: Any) -> None:
        self.system = system

    def file(self, path: str) -> RemoteFile:
        return RemoteFile(self.system, path)

    def is_file(self, path: str) -> bool:
        return self.system.isfile(path)

    def is_folder(self, path: str) -> bool:
        return self.system.isdir(path)

    def below(self, folder: str) -> list[str]:
        return self.system.find(folder)

    def matching(self, pattern: str) -> list[str]:
        hits = self.system.glob(pattern, detail=True)
        return [hit for hit, about in hits.items() if about["type"] == "file"]


def _place(path: str | Path) -> tuple[_Here | _Remote, str]:
    """Where a path leads, and what it is called there."""
    if not is_remote(path):
        return _Here(), Path(path).as_posix()
    from fsspec.core import url_to_fs

    system, text = url_to_fs(path)
    return _Remote(system), text


@contextmanager
def _reached(path: str | Path) -> Iterator[None]:
    """What keeps a remote file away, in words."""
    try:
        yield
    except DataError:
        raise
    except ImportError as error:
        # fsspec says what it lacks by the error that made it give up.
        missing = getattr(error.__cause__, "name", None) or error.name or "fsspec"
        package = missing.partition(".")[0]
        raise DataError(
            f"reading {path} needs {package}, which is not installed: pip install {package}"
        ) from error
    except Exception as error:
        if not is_remote(path):
            raise
        # Every package for remote files has errors of its own.
        raise DataError(f"cannot read {path}: {error}") from error
