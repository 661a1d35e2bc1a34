"""How much memory a file may take, whoever wrote it: sizes it declares are looked at beforehand.

Rows are read a few at a time, so large files are fine. What is refused is a small file that unpacks
to gigabytes at once, or one whose single row does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bestk.base.archive import VARIABLE, most_bytes
from bestk.readers.files import DataError, File

MOST_COLUMNS = 1 << 22
"""Each column has a name, and is an array of its own."""
_ENLARGED = 20
"""Pages of numbers and text rarely shrink to less than one in so many parts."""
_MOST_TEXT = 1 << 26
"""Characters of one row of text: some million columns of numbers."""


def require_room(file: File, n_bytes: float, what: str, way: str) -> None:
    """What is in memory at once is within the limit, or in proportion to the file itself."""
    most = max(most_bytes(), _ENLARGED * _size(file))
    if n_bytes > most:
        raise DataError(
            f"{what} of {file} takes {n_bytes:.3g} bytes of memory, and {most:.3g} are allowed; "
            f"{way}, or, if you trust the file, raise the environment variable {VARIABLE}"
        )


def _size(file: File) -> int:
    if isinstance(file, Path):
        return file.stat().st_size
    return int(file.system.size(file.path) or 0)


class LimitedLines:
    """Lines of a file of text. An error if one row, which may have several lines, has too many
    characters; ``n_characters`` counts all that were read.
    """

    def __init__(self, path: File, file: Any) -> None:
        self._path, self._file = path, file
        self.n_characters = self._of_row = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.read()
        if not line:
            raise StopIteration
        return line

    def read(self) -> str:
        """The next line; empty at the end."""
        line = self._file.readline(_MOST_TEXT + 1)
        self.n_characters += len(line)
        self._of_row += len(line)
        if self._of_row > _MOST_TEXT:
            raise DataError(
                f"a row of {self._path} has more than {_MOST_TEXT:,} characters, so it is no table"
            )
        return line

    def row_ends(self) -> None:
        self._of_row = 0
