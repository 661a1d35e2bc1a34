"""Formats by the endings of names, and the files of one table, which share a format."""

from collections.abc import Callable
from pathlib import Path

from bestk.readers.files import DataError, File, list_files
from bestk.readers.formats.arrow import arrow_rows, arrow_source, parquet_source
from bestk.readers.formats.npz import npz_source
from bestk.readers.formats.source import Source, explained
from bestk.readers.formats.text import text_source

_FORMATS: dict[str, Callable[[File], Source]] = {
    ".csv": text_source,
    ".tsv": text_source,
    ".parquet": parquet_source,
    ".arrow": arrow_source,
    ".feather": arrow_source,
    ".npz": npz_source,
}
_KNOWN = f"names must end in one of {', '.join(_FORMATS)}, .csv.gz, .tsv.gz"


def open_source(file: File) -> Source:
    """What a file has to offer: its header is read."""
    kind = _kind(file)
    if not kind:
        raise DataError(f"{file} has no ending that is known; {_KNOWN}")
    with explained(file):
        return _FORMATS[kind.removesuffix(".gz")](file)


def known_rows(file: File) -> int | None:
    """How many rows a file has, if that can be told without reading them."""
    if _FORMATS[_kind(file).removesuffix(".gz")] is not arrow_source:
        return None
    with explained(file):
        return arrow_rows(file)


def table_files(path: str | Path) -> tuple[File, ...]:
    """Files that a path stands for; those of a folder or a pattern have one format."""
    files, folder, is_deep = list_files(path)
    if folder is None:
        return tuple(files)
    kinds = sorted({_kind(file) for file in files} - {""})
    if not kinds:
        raise DataError(f"{path} has no files that could be read; {_KNOWN}")
    if len(kinds) > 1:
        pattern = f"{folder}/{'**/' * is_deep}*{kinds[0]}"
        raise DataError(
            f"{path} has files of several formats, {', '.join(kinds)}; "
            f"choose those of one with a pattern such as {pattern!r}"
        )
    return tuple(file for file in files if _kind(file) == kinds[0])


def _kind(file: File) -> str:
    """The ending that tells the format, ``.gz`` included; empty if there is no such format."""
    name = file.name.lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if not name.endswith(".gz"):
        return ending if ending in _FORMATS else ""
    return f"{ending}.gz" if _FORMATS.get(ending) is text_source else ""
