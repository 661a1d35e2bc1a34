"""Parts of a table: plain descriptions that any process can read on its own."""

from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from bestk.base.tuning import tuning
from bestk.readers.coding import Coding
from bestk.readers.files import DataError, File
from bestk.readers.formats.arrow import parquet_blocks
from bestk.readers.formats.endings import known_rows, open_source
from bestk.readers.formats.source import columns_of, explained, naming, rows_at_a_time
from bestk.readers.limits import require_room
from bestk.readers.missing import LeftOut, Missing, require_weights


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """Rows that are read together: those of a file, or of neighbouring row groups of Parquet.

    Attributes
    ----------
    file : Path or RemoteFile
        The file.
    features : tuple of str
        Columns of the file that are features; those of text give X several columns.
    target, weight : str, str or None
        Names of the columns y and, if there is one, weight.
    n_rows : int or None
        How many rows; None for text, npz and Arrow streams, of which rows must be read to tell, and
        where rows with missing values are left out.
    first_row : int
        How many rows of the file are before these.
    groups : tuple of int, or None
        Row groups of a Parquet file.
    coding : Coding
        Levels of the columns of text.
    missing : Missing
        Whether rows with missing values are left out.
    """

    file: File
    features: tuple[str, ...]
    target: str
    weight: str | None = None
    n_rows: int | None = None
    first_row: int = 0
    groups: tuple[int, ...] | None = None
    coding: Coding = field(default=Coding(), repr=False)
    missing: Missing = field(default=Missing(), repr=False)

    def read(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """(X, y, weight) as float64, X (n, p) row by row; weight is None if there is none.

        One thread reads, since there may be a worker for every core. Raises DataError where
        iterating over :class:`Data` would.
        """
        with naming(self.file), explained(self.file):
            X, others = self._read_rows() if self.groups is None else self._read_groups()
            if self.n_rows not in (None, len(X)):
                raise DataError(f"{self.file} has changed since it was opened; open it again")
            require_weights(self.weight, others[:, 1:])
        y, *weight = np.ascontiguousarray(others.T)
        return X, y, weight[0] if weight else None

    def count(self) -> int:
        """How many rows; one column is read where that is not known."""
        if self.n_rows is not None:
            return self.n_rows
        if self.missing.drop:
            return len(self.read()[1])
        with naming(self.file), explained(self.file):
            chunks = open_source(self.file).chunks(
                [self.target], rows_at_a_time(1), False, self.coding
            )
            return sum(map(len, chunks))

    @property
    def _columns(self) -> list[str]:
        return columns_of(self.features, self.target, self.weight)

    @property
    def _n_features(self) -> int:
        return self.coding.starts(self.features)[-1]

    def _read_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Arrays grow in place, so that rows are never in memory twice."""
        p, names, n_read = self._n_features, self._columns, 0
        X, others = np.empty((0, p)), np.empty((0, len(names) - len(self.features)))
        rows = rows_at_a_time(max(p, len(names)))
        chunks = open_source(self.file).chunks(names, rows, False, self.coding)
        for chunk in chunks:
            n = len(X)
            self.missing.require(chunk, names, n_read, len(self.features))
            n_read += len(chunk)
            wide = self.coding.expanded(LeftOut().complete(chunk, names), names)
            self._require_room(n + len(wide))
            for array, values in ((X, wide[:, :p]), (others, wide[:, p:])):
                array.resize((n + len(wide), array.shape[1]), refcheck=False)
                array[n:] = values
        return X, others

    def _read_groups(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.groups is not None
        n_rows = self.n_rows if self.n_rows is not None else self._rows_of_groups()
        p, names, starts = self._n_features, self._columns, self.coding.starts(self._columns)
        self._require_room(n_rows)
        X, others = np.empty((n_rows, p)), np.empty((n_rows, starts[-1] - p))
        is_whole = np.ones(n_rows, dtype=bool)
        wrong: list[tuple[int, int, float]] = []
        for row, column, codes in parquet_blocks(
            self.file, names, self.groups, n_rows, self.coding, self.first_row
        ):
            if place := self.missing.first(codes):
                wrong.append((row + place[0], column + place[1], float(codes[place])))
            values = self.coding.expanded(codes, names[column : column + codes.shape[1]])
            rows = slice(row, row + len(values))
            is_whole[rows] &= ~np.isnan(codes).any(axis=1)
            column = starts[column]
            end, split = column + values.shape[1], p - column
            X[rows, column:end] = values[:, : max(split, 0)]
            others[rows, max(-split, 0) : max(end - p, 0)] = values[:, max(split, 0) :]
        if wrong:  # named is the first row that has such a value, in any column
            row, column, value = min(wrong)
            is_feature = column < len(self.features)
            raise self.missing.error(names[column], value, self.first_row + row, is_feature)
        return (X, others) if is_whole.all() else (X[is_whole], others[is_whole])

    def _require_room(self, n_rows: int) -> None:
        """A part is in memory as a whole."""
        n_bytes = 8 * n_rows * self.coding.starts(self._columns)[-1]
        what = "the table" if self.groups is None else f"row group {self.groups[0]}"
        way = "write smaller files or row groups, read them without workers"
        require_room(self.file, n_bytes, what, way)

    def _rows_of_groups(self) -> int:
        assert self.groups is not None
        sizes = open_source(self.file).groups or ()
        return sum(sizes[group] for group in self.groups if group < len(sizes))


def cut(whole: TablePart, groups: tuple[int, ...] | None) -> list[TablePart]:
    """The parts of a file that have rows; `groups` are the sizes of its row groups, if any."""
    drops = whole.missing.drop
    if groups is None:
        n_rows = known_rows(whole.file)
        return [] if n_rows == 0 else [replace(whole, n_rows=None if drops else n_rows)]
    most = tuning().part_bytes // (8 * whole.coding.starts(whole._columns)[-1])
    runs: list[list[int]] = []
    sizes: list[int] = []
    for group, rows in enumerate(groups):
        if runs and sizes[-1] + rows <= most:
            runs[-1].append(group)
            sizes[-1] += rows
        else:
            runs.append([group])
            sizes.append(rows)
    firsts = accumulate(sizes, initial=0)
    return [
        replace(whole, n_rows=None if drops else n, first_row=first, groups=tuple(run))
        for run, n, first in zip(runs, sizes, firsts, strict=False)
        if n > 0
    ]
