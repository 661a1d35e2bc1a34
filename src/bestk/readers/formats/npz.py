"""Arrays in npz files."""

import zipfile
from collections.abc import Iterator
from itertools import count

import numpy as np

from bestk.base.archive import TooLarge, read_arrays
from bestk.base.validation import counted
from bestk.readers.coding import Coding
from bestk.readers.files import DataError, File
from bestk.readers.formats.source import Source
from bestk.readers.limits import MOST_COLUMNS


def npz_source(path: File) -> Source:
    with path.open("rb") as source:
        if not zipfile.is_zipfile(source):
            raise DataError(f"{path} is not an npz file; write one with numpy.savez")
        try:
            arrays = read_arrays(source, path)
        except TooLarge as error:
            raise DataError(str(error).replace("max_bytes= or ", "")) from error
    others: tuple[str, ...] = ()
    if "X" in arrays and arrays["X"].ndim == 2:
        X = arrays.pop("X")
        if X.shape[1] > MOST_COLUMNS:
            raise DataError(f"X of {path} has {X.shape[1]} columns, more than {MOST_COLUMNS}")
        names = arrays.pop("feature_names", [f"x{j}" for j in range(X.shape[1])])
        if np.shape(names) != (X.shape[1],):
            raise DataError(
                f"feature_names of {path} have the shape {np.shape(names)}, but X has "
                f"{counted(X.shape[1], 'column')}; give one name for each"
            )
        names = [str(name) for name in names]
        others = tuple(arrays)
        arrays |= zip(names, X.T, strict=True)
    else:
        names = list(arrays)

    def chunks(
        wanted: list[str], rows: int, use_threads: bool, coding: Coding
    ) -> Iterator[np.ndarray]:
        for name in wanted:
            if arrays[name].ndim != 1 or arrays[name].dtype.kind not in "buifU":
                what = f"{arrays[name].dtype} in the shape {arrays[name].shape}"
                raise DataError(
                    f"array {name!r} of {path} is {what}; a column must be a vector of numbers"
                )
        length = len(arrays[wanted[0]])
        for name in wanted:
            if len(arrays[name]) != length:
                raise DataError(
                    f"arrays of {path} have different lengths: {wanted[0]!r} has {length}, and "
                    f"{name!r} has {len(arrays[name])}; give all columns the same rows"
                )
        for start in range(0, length, rows):
            part = slice(start, start + rows)
            columns = [_column(name, arrays[name][part], coding, start) for name in wanted]
            yield np.column_stack(columns)

    texts = {name: array.dtype.kind == "U" for name, array in arrays.items()}
    return Source(names, chunks, others, texts=texts)


def _column(name: str, values: np.ndarray, coding: Coding, n_before: int) -> np.ndarray:
    if name in coding.levels:
        texts, places = np.unique(values.astype(str), return_inverse=True)
        return coding.numbers(name, texts.tolist(), places)
    if values.dtype.kind == "U":
        return coding.parsed(name, values.tolist(), count(n_before + 1))
    return values.astype(np.float64)
