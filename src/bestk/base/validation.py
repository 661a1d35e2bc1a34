"""Turn what users pass into clean arrays, or say what is wrong and how to mend it."""

import math
import numbers
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.driver import INSTALL, DeviceUnavailable


def as_real(name: str, value: Any) -> np.ndarray:
    """A real numeric array, not copied when it is one already."""
    if hasattr(value, "toarray") and not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is a sparse matrix; pass {name}.toarray()")
    if hasattr(value, "__cuda_array_interface__"):
        value = _from_device(name, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise TypeError(f"{name} cannot be read as an array of numbers: {error}") from error
    if array.dtype.kind == "c":
        raise TypeError(f"{name} is complex; split it into real and imaginary parts")
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        if array.dtype.kind == "O" and array.size:
            try:
                return as_real(name, array.astype(np.float64))
            except (ValueError, TypeError):
                pass
        if array.dtype.kind == "f":
            return array.astype(np.float64)
        raise TypeError(f"{name} has dtype {array.dtype}; convert it to float64 first")
    return array


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
        hint = "; use X.reshape(-1, 1) for a single feature" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have two dimensions, got shape {array.shape}{hint}")
    return array


def require_numeric_columns(name: str, frame: Any) -> None:
    """Columns of a data frame, if it is one, that are no numbers are named."""
    others = _other_columns(frame)
    if others:
        listed = ", ".join(f"{column!r} ({kind})" for column, kind in others[:_MOST_NAMED])
        more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        raise TypeError(
            f"{name} has columns that are not numbers: {listed}{more}; leave them out, or make "
            f"numbers of them: {name}, groups, _ = bestk.groups_of({name}) makes a group of "
            "indicators of each category, for groups=groups, and pandas.get_dummies(..., "
            "drop_first=True) single ones"
        )


# Columns that a message names.
_MOST_NAMED = 5
_KINDS = {"O": "objects", "U": "text", "S": "text", "T": "text", "M": "dates", "m": "durations"}


def _other_columns(frame: Any) -> list[tuple[Any, str]]:
    """(name, kind) of columns that are neither numbers nor truth values, of pandas or polars."""
    columns, types = getattr(frame, "columns", None), getattr(frame, "dtypes", None)
    if columns is None or types is None:
        return []
    found = []
    for column, dtype in zip(list(columns), list(types), strict=False):
        kind = getattr(dtype, "kind", None)
        if kind is None:  # polars
            is_number = getattr(dtype, "is_numeric", lambda: True)() or str(dtype) == "Boolean"
            kind, word = "f" if is_number else "O", str(dtype)
        else:
            word = (
                str(dtype) if str(dtype) in ("category", "string", "str") else _KINDS.get(kind, "")
            )
        if kind not in "iufbc":
            found.append((column, word or str(dtype)))
    return found


def as_vector(name: str, value: Any, *, length: int, of: str) -> np.ndarray:
    array = as_real(name, value)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        hint = f"; pass one column, such as {name}[:, 0]" if array.ndim == 2 else ""
        raise ValueError(f"{name} must be a vector, got shape {array.shape}{hint}")
    if len(array) != length:
        raise ValueError(f"{name} has length {len(array)}, but there are {length} {of}")
    return array


def require_finite(name: str, array: np.ndarray) -> None:
    if array.dtype.kind != "f":
        return
    # A finite sum has finite terms; only where it is not (it may overflow) each is looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinite values; drop or impute them first")


def as_weights(value: Any, n: int) -> np.ndarray | None:
    if value is None:
        return None
    weight = as_vector("sample_weight", value, length=n, of="rows of X").astype(np.float64)
    require_finite("sample_weight", weight)
    if (weight < 0).any():
        raise ValueError(
            f"sample_weight must not be negative, got {weight.min():g}; 0 leaves a row out"
        )
    return weight


def is_auto(bounds: Any) -> bool:
    """Are bounds to be chosen by the solver?"""
    return isinstance(bounds, str) and bounds == "auto"


def as_bounds(bounds: Any, p: int) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) as (p,) arrays; lower <= 0 <= upper. Infinite where they are yet to choose."""
    if bounds is None or is_auto(bounds):
        return np.full(p, -np.inf), np.full(p, np.inf)
    if isinstance(bounds, str):
        raise ValueError(f'bounds must be a pair (lower, upper), "auto" or None, got {bounds!r}')
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValueError(
            f"bounds must be a pair (lower, upper) of scalars or arrays of length {p}, "
            f"got {bounds!r}"
        )
    sides = []
    for name, side in zip(("lower", "upper"), bounds, strict=True):
        side = as_real(f"{name} bound", side).astype(np.float64)
        if side.ndim > 1 or (side.ndim == 1 and len(side) != p):
            raise ValueError(
                f"bounds: the {name} bound must be a scalar or have length {p}, one per feature; "
                f"got shape {side.shape}"
            )
        sides.append(np.broadcast_to(side, (p,)).copy())
    lower, upper = sides
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise ValueError("bounds contain NaN; use -inf and inf for no bound")
    if (lower > 0).any() or (upper < 0).any():
        j = int(np.flatnonzero((lower > 0) | (upper < 0))[0])
        raise ValueError(
            f"bounds must allow 0 (lower <= 0 <= upper); feature {j} has "
            f"({lower[j]:g}, {upper[j]:g})"
        )
    return lower, upper


def names_of(X: Any) -> tuple[str, ...] | None:
    """Column names of a data frame (pandas, polars) or Arrow table; None if there are none."""
    columns = getattr(X, "column_names", None)  # Arrow
    if columns is None:
        columns = getattr(X, "columns", None)
    if columns is None or callable(columns) or not all(isinstance(name, str) for name in columns):
        return None
    return tuple(columns)


def require_names(names: Any, p: int) -> tuple[str, ...] | None:
    """p distinct names, those of a data frame or those that were given; None stays None."""
    if names is None:
        return None
    names = tuple(names)
    if len(names) != p or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names must be {p} strings, one per feature, got {len(names)}")
    require_distinct(names)
    return names


def require_distinct(names: Iterable[str] | None, where: str = "") -> None:
    """Each name must mean one feature: options and results speak of features by their names."""
    columns: dict[str, list[int]] = {}
    for j, name in enumerate(names or ()):
        columns.setdefault(name, []).append(j)
    twice = [(name, found) for name, found in columns.items() if len(found) > 1]
    if twice:
        listed = ", ".join(
            f"{name!r} (columns {', '.join(map(str, found[:_MOST_NAMED]))}"
            f"{', ...' if len(found) > _MOST_NAMED else ''})"
            for name, found in twice[:_MOST_NAMED]
        )
        more = f" and {len(twice) - _MOST_NAMED} more" if len(twice) > _MOST_NAMED else ""
        raise ValueError(
            f"several features have the same name{where}: {listed}{more}; rename columns of the "
            "data frame, frame.columns = [...], or pass distinct feature_names"
        )


def require_rows(name: str, array: np.ndarray) -> None:
    """Without rows every model fits perfectly, and nothing can be said about any of them."""
    if len(array) == 0:
        raise ValueError(
            f"{name} has no rows (shape {array.shape}); pass at least one, and check the step that "
            "selected them, such as a filter or dropna()"
        )


def as_features(
    name: str, value: Any, p: int, feature_names: tuple[str, ...] | None = None
) -> np.ndarray:
    """Sorted unique feature indices from names, indices or a boolean mask."""
    if value is None:
        return np.zeros(0, dtype=np.intp)
    array = np.asarray([value] if isinstance(value, str) else value)
    if array.ndim == 1 and array.size and all(isinstance(item, str) for item in array):
        return np.unique(_positions(name, array.tolist(), feature_names)).astype(np.intp)
    if array.size == 0:
        return np.zeros(0, dtype=np.intp)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a list of feature indices or a mask of length {p}")
    if array.dtype == bool:
        if len(array) != p:
            raise ValueError(f"{name} is a mask of length {len(array)}, but there are {p} features")
        return np.flatnonzero(array)
    if array.dtype.kind not in "ui":
        raise TypeError(
            f"{name} must hold whole numbers (feature indices) or names, got {array.dtype}"
        )
    if (array < 0).any() or (array >= p).any():
        wrong = array[(array < 0) | (array >= p)][0]
        raise ValueError(f"{name} holds {wrong}, but features are numbered 0 to {p - 1}")
    return np.unique(array).astype(np.intp)


def _positions(name: str, wanted: Any, feature_names: tuple[str, ...] | None) -> list[int]:
    if feature_names is None:
        raise ValueError(f"{name} holds names, but the features have none; pass indices instead")
    position = {feature: j for j, feature in enumerate(feature_names)}
    for feature in wanted:
        if feature_names.count(feature) > 1:
            raise ValueError(
                f"{name}: several features are named {feature!r}; rename them, or pass indices"
            )
        if feature not in position:
            raise ValueError(f"{name}: there is no feature {feature!r}{nearest(feature, position)}")
    return [position[feature] for feature in wanted]


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint that names the most similar known words, or nothing."""
    close = get_close_matches(word, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def require_consistent_gram(G: np.ndarray, c: np.ndarray, yy: float) -> None:
    """[[G, c], [c', yy]] must be positive semidefinite up to rounding, as products of data are."""
    if not np.allclose(G, G.T, rtol=1e-8, atol=1e-10 * np.abs(G).max(initial=0.0)):
        raise ValueError("G is not symmetric; pass X.T @ X")
    squares = np.diag(G)
    if (squares < 0).any():
        raise ValueError(
            "G is not positive semidefinite: its diagonal has negative entries; pass X.T @ X"
        )
    full = np.block([[0.5 * (G + G.T), c[:, None]], [c[None, :], np.array([[yy]])]])
    root = np.sqrt(np.append(squares, yy))
    live = root > 0
    if np.abs(full[~live]).max(initial=0.0) > 0:
        raise ValueError(
            "G is not positive semidefinite: a zero on its diagonal, but not beside it; "
            "pass X.T @ X"
        )
    full = full[np.ix_(live, live)] / np.outer(root[live], root[live])
    if len(full) == 0:
        return
    tolerance = 1e-9 + 64 * len(full) * UNIT_ROUNDOFF
    if np.linalg.eigvalsh(full[:-1, :-1] if live[-1] else full).min(initial=0.0) < -tolerance:
        raise ValueError("G is not positive semidefinite; it cannot be X.T @ X of any data")
    if np.linalg.eigvalsh(full)[0] < -tolerance:
        raise ValueError(
            "c and yy do not fit G: y'y is smaller than what c claims to explain; pass G = X.T @ "
            "X, c = X.T @ y and yy = y @ y of the same rows"
        )


def require_number(name: str, value: Any, *, least: float, finite: bool = True) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    value = float(value)
    if math.isnan(value) or value < least or (finite and math.isinf(value)):
        raise ValueError(f"{name} must be a finite number >= {least:g}, got {value!r}")
    return value


def require_count(name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number (an int), got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(value)


def require_device(device: object) -> str:
    """The name of a device, which need not be there."""
    if not (isinstance(device, str) and re.fullmatch(r"cpu|cuda(:\d{1,3})?", device)):
        raise ValueError(f'device must be "cpu", "cuda" or "cuda:1", say; got {device!r}')
    return device


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def as_penalties(alphas: Any) -> list[float]:
    """Ascending unique penalties."""
    values = [alphas] if np.ndim(alphas) == 0 else list(alphas)
    if not values:
        raise ValueError(
            "alphas must hold at least one penalty, such as [0.0, 0.1, 1.0]; it is empty"
        )
    return sorted({require_number("each of alphas", alpha, least=0.0) for alpha in values})
