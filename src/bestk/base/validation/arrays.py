"""Arrays of numbers: X, y and weights, in memory or on a device."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bestk.base.device.driver import INSTALL, DeviceUnavailable
from bestk.base.validation.frames import is_lazy, names_of, require_numeric_columns
from bestk.base.validation.words import KINDS, MEND, place_of, shown
from bestk.base.words import counted


def as_real(name: str, value: Any) -> np.ndarray:
    """A real numeric array, not copied when it is one already."""
    if value is None:
        raise TypeError(f"{name} is None; pass an array of numbers")
    if hasattr(value, "toarray") and not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is a sparse matrix; pass {name}.toarray()")
    if is_lazy(value):
        raise TypeError(f"{name} is a lazy frame; pass {name}.collect()")
    require_unmasked(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        value = _from_device(name, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        why = "its rows have different lengths" if "inhomogeneous" in str(error) else error
        raise TypeError(f"{name} cannot be read as an array of numbers: {why}") from error
    if array.dtype.kind == "c":
        raise TypeError(f"{name} is complex; split it into real and imaginary parts")
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        if array.dtype.kind == "O" and array.size:
            try:
                return as_real(name, array.astype(np.float64))
            except (ValueError, TypeError, OverflowError):
                pass
        if array.dtype.kind == "f":
            return array.astype(np.float64)
        raise _not_numbers(name, value, array)
    return array


def require_unmasked(name: str, value: Any) -> None:
    """NumPy forgets about masks, and would use what is behind them."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(
            f"{name} has masked values, and single values cannot be left out; leave out the rows "
            "that have some, or fill them in with its method filled"
        )


def _not_numbers(name: str, value: Any, array: np.ndarray) -> Exception:
    """What keeps an array from being one of numbers."""
    if array.dtype.kind in "USTMm":
        kind = KINDS[array.dtype.kind]
        way = _INTO_NUMBERS[kind]
        first = f", such as {shown(str(array.flat[0]))}," if array.size else ""
        return TypeError(f"{name} holds {kind}{first} instead of numbers; convert it first: {way}")
    if array.dtype.kind != "O":
        return TypeError(f"{name} has dtype {array.dtype}; convert it to float64 first")
    if array.ndim == 0:
        return TypeError(f"{name} is of type {type(value).__name__}; pass an array of numbers")
    for place in np.ndindex(array.shape):
        item = array[place]
        where = f"{name} has {shown(item)} in {place_of(place, names_of(value))}"
        try:
            float(item)
        except OverflowError:
            return ValueError(f"{where}, which is too large for a float64; rescale the data")
        except (ValueError, TypeError):
            if type(item).__name__ == "NAType":
                return TypeError(f"{where}, a missing value; {MEND}")
            return TypeError(f"{where}, which is not a number; turn it into one, or leave it out")
    return TypeError(f"{name} has dtype object; convert it to float64 first")


_INTO_NUMBERS = {
    "text": "numpy.asarray(..., dtype=float)",
    "dates": "days since the first of them",
    "durations": "seconds, by division by numpy.timedelta64(1, 's')",
}


def _from_device(name: str, value: Any) -> np.ndarray:
    """An array of CuPy or PyTorch, say, in the memory of the host: rows are needed there, too."""
    try:
        import cupy
    except ImportError as error:
        raise DeviceUnavailable(f"{name} is on a GPU, and that needs CuPy: {INSTALL}") from error
    return cupy.asnumpy(cupy.asarray(value))


def as_matrix(name: str, value: Any) -> np.ndarray:
    require_numeric_columns(name, value)
    array = as_real(name, value)
    if array.ndim != 2:
        way = "pass a row of numbers for each observation"
        if array.ndim == 1:
            array_name = name if name.isidentifier() else "array"
            way = f"use {array_name}.reshape(-1, 1) for a single feature, or "
            way += f"{array_name}.reshape(1, -1) for a single row"
        raise ValueError(f"{name} must have two dimensions, got shape {array.shape}; {way}")
    return array


def as_vector(name: str, value: Any, *, length: int, of: str) -> np.ndarray:
    array = as_real(name, value)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        hint = f"; pass one number for each of the {of}"
        if array.ndim == 2:
            hint = f"; pass one column, such as {name}[:, 0]"
        if array.shape == (1, length):
            hint = f"; pass {name}.ravel()"
        raise ValueError(f"{name} must be a vector, got shape {array.shape}{hint}")
    if len(array) != length:
        there = "there are" if length != 1 else "there is"
        number = counted(length, re.sub(r"s\b", "", of, count=1), of)
        raise ValueError(
            f"{name} has length {len(array):,}, but {there} {number}; give one number for each"
        )
    return array


def require_finite(name: str, array: np.ndarray, columns: tuple[str, ...] | None = None) -> None:
    """An error that names the first value that is NaN or infinite, if there is one."""
    if array.dtype.kind != "f":
        return
    # A finite sum has finite terms; only where it is not (it may overflow) each is looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(array).all():
        place = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        where = place_of(tuple(map(int, place)), columns)
        what = f"contains NaN or infinite values, the first is {array[place]} in {where}"
        raise ValueError(f"{name} {what}; {MEND}")


def require_rows(name: str, array: np.ndarray) -> None:
    """Without rows every model fits perfectly, and nothing can be said about any of them."""
    if len(array) == 0:
        raise ValueError(
            f"{name} has no rows (shape {array.shape}); pass at least one, and check the step that "
            "selected them, such as a filter or dropna()"
        )


def as_weights(value: Any, n: int, name: str = "sample_weight") -> np.ndarray | None:
    if value is None:
        return None
    weight = as_vector(name, value, length=n, of="rows of X").astype(np.float64)
    require_finite(name, weight)
    if (weight < 0).any():
        raise ValueError(
            f"{name} must not be negative, got {weight.min():g} in row "
            f"{int(weight.argmin())} (counted from 0); 0 leaves a row out"
        )
    return weight


def require_some_weight(total: float, where: str = "sample_weight") -> None:
    """Without any weight every model fits perfectly, as it does without rows."""
    if not total > 0.0:
        raise ValueError(
            f"{where} is zero for every row, so no row counts; give some rows a positive weight, "
            "or leave the weights out"
        )


def rows_in(batches: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(X, y, weight) of batches that are (X, y) or (X, y, weight); None where there is none."""
    if not isinstance(batches, Iterable):
        raise TypeError("batches must be an iterable of pairs (X, y), such as [(X1, y1), (X2, y2)]")
    for i, item in enumerate(batches):
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise TypeError(
                "batches must yield pairs (X, y) of rows and their targets, or (X, y, weight); "
                f"batch {i} is of type {type(item).__name__}; for a single batch pass [(X, y)]"
            )
        yield item[0], item[1], item[2] if len(item) == 3 else None
