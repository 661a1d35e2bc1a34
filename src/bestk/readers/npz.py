"""Arrays in npz files."""

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from bestk.readers.coding import Coding
from bestk.readers.files import DataError, File
from bestk.readers.source import Source


def npz_source(path: File) -> Source:
    with path.open("rb") as source:
        if not zipfile.is_zipfile(source):
            raise DataError(f"{path} is not an npz file; write one with numpy.savez")
        source.seek(0)
        with np.load(source) as file:
            arrays = {name: _array(path, file, name) for name in file.files}
    others: tuple[str, ...] = ()
    if "X" in arrays and arrays["X"].ndim == 2:
        X = arrays.pop("X")
        names = arrays.pop("feature_names", [f"x{j}" for j in range(X.shape[1])])
        names = [str(name) for name in names]
        if len(names) != X.shape[1]:
            raise DataError(f"{path} has {len(names)} feature_names for {X.shape[1]} columns of X")
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
                raise DataError(f"array {name!r} of {path} is {what}, not a vector of numbers")
        lengths = {len(arrays[name]) for name in wanted}
        if len(lengths) > 1:
            raise DataError(f"the arrays of {path} have different lengths: {sorted(lengths)}")
        for start in range(0, lengths.pop(), rows):
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
        return coding.parsed(name, values.tolist(), n_before)
    return values.astype(np.float64)


def _array(path: File, file: Any, name: str) -> np.ndarray:
    try:
        return file[name]
    except ValueError as error:  # NumPy refuses to unpickle
        raise DataError(
            f"array {name!r} of {path} holds Python objects; save it as numbers, or as str"
        ) from error
