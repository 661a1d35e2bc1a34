"""Features by name or by number."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bestk.base.validation.words import MOST_NAMED, few, hint_for, shown
from bestk.base.words import counted

_RENAME = (
    "rename columns of the data frame, frame.columns = [...], or change feature_names if you gave "
    "them"
)


def require_names(
    names: Any, p: int, require: Callable[[tuple[str, ...]], None] | None = None
) -> tuple[str, ...] | None:
    """p distinct names, those of a data frame or those that were given; None stays None.

    `require` says in other words that they must be distinct.
    """
    if names is None:
        return None
    wanted = f"feature_names must be {counted(p, 'string')}, one per feature"
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{wanted}, got {shown(names)}")
    names = tuple(names)
    if len(names) != p:
        raise ValueError(f"{wanted}, got {len(names)}")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"{wanted}, got {shown(name)} among them; use str()")
    (require or require_distinct)(names)
    return names


def require_same_names(
    name: str, names: tuple[str, ...] | None, known: tuple[str, ...] | None, of: str, way: str
) -> None:
    """Columns are told apart by their places: with other names, numbers would be mixed up."""
    if not names or not known or names == known:
        return
    lacking = [column for column in known if column not in names]
    extra = [column for column in names if column not in known]
    if lacking:
        instead = f", but {extra[0]!r}" if extra else ""
        what = f"no column {lacking[0]!r}, as {of} have{instead}"
    elif extra:
        what = f"a column {extra[0]!r}, which {of} do not have"
    else:
        what = f"its columns in another order than {of}"
    raise ValueError(f"{name} has {what}; {way}")


def require_distinct(names: Iterable[str] | None, where: str = "", advice: str = _RENAME) -> None:
    """Each name must mean one feature: options and results speak of features by their names."""
    columns: dict[str, list[int]] = {}
    for j, name in enumerate(names or ()):
        columns.setdefault(name, []).append(j)
    twice = [
        f"{name!r} (columns {', '.join(map(str, found[:MOST_NAMED]))}"
        f"{', ...' if len(found) > MOST_NAMED else ''})"
        for name, found in columns.items()
        if len(found) > 1
    ]
    if twice:
        raise ValueError(f"several features have the same name{where}: {few(twice)}; {advice}")


def as_features(
    name: str, value: Any, p: int, feature_names: tuple[str, ...] | None = None
) -> np.ndarray:
    """Sorted unique feature indices from names, indices or a boolean mask."""
    if value is None:
        return np.zeros(0, dtype=np.intp)
    given = [value] if isinstance(value, str) else value
    try:
        array = np.asarray(given)
    except ValueError:  # lists of different lengths
        array = np.zeros(())
    is_name = [isinstance(item, str) for item in given] if isinstance(given, list | tuple) else []
    if any(is_name) and not all(is_name):
        raise ValueError(f"{name} mixes names and other values, {shown(value)}; use names only")
    if array.ndim == 1 and array.size and all(isinstance(item, str) for item in array):
        return np.unique(_positions(name, array.tolist(), feature_names)).astype(np.intp)
    if array.size == 0:
        return np.zeros(0, dtype=np.intp)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be a list of feature names or indices, or a mask of length {p}; "
            f"got {shown(value)}"
        )
    if array.dtype == bool:
        if len(array) != p:
            raise ValueError(
                f"{name} is a mask of length {len(array)}; give one value for each of "
                f"{counted(p, 'feature')}"
            )
        return np.flatnonzero(array)
    if array.dtype.kind not in "ui":
        raise TypeError(
            f"{name} must hold names (strings) or indices (whole numbers) of features, "
            f"got {shown(value)}"
        )
    if (array < 0).any() or (array >= p).any():
        wrong = array[(array < 0) | (array >= p)][0]
        raise ValueError(f"{name} holds {wrong}, but features are numbered 0 to {p - 1}")
    if len(array) == p > 2 and set(array.tolist()) <= {0, 1}:
        raise ValueError(
            f"{name} has {p} values that are 0 or 1: for a mask, pass True and False, "
            f"numpy.array({name}, dtype=bool); for indices, name each feature once"
        )
    return np.unique(array).astype(np.intp)


def _positions(name: str, wanted: Any, feature_names: tuple[str, ...] | None) -> list[int]:
    if feature_names is None:
        raise ValueError(
            f"{name} holds names, but the features have none; pass indices, or a data frame whose "
            "column names are all strings"
        )
    position = {feature: j for j, feature in enumerate(feature_names)}
    for feature in wanted:
        if feature_names.count(feature) > 1:
            raise ValueError(
                f"{name}: several features are named {feature!r}; rename them, or pass indices"
            )
        if feature not in position:
            hint = hint_for(feature, feature_names)
            raise ValueError(f"{name}: there is no feature {feature!r}{hint}")
    return [position[feature] for feature in wanted]
