"""Data frames: their names and types, and what they need."""

import re
from typing import Any

from bestk.base.validation.words import KINDS, few


def pandas_for(name: str) -> Any:
    """The optional package, or an error that says what ``name`` needs."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f'{name} needs pandas: pip install "bestk[io]"') from error
    return pandas


def is_lazy(value: Any) -> bool:
    """Is this a frame of polars that is not computed yet? Even its column names cost time."""
    return type(value).__name__ == "LazyFrame"


def names_of(X: Any) -> tuple[str, ...] | None:
    """Column names of a data frame (pandas, polars) or Arrow table; None if there are none."""
    if is_lazy(X):
        return None
    columns = getattr(X, "column_names", None)  # Arrow
    if columns is None:
        columns = getattr(X, "columns", None)
    if columns is None or callable(columns) or not all(isinstance(name, str) for name in columns):
        return None
    return tuple(columns)


def require_numeric_columns(name: str, frame: Any) -> None:
    """Columns of a data frame, if it is one, that are no numbers are named."""
    others = other_columns(frame)
    if others:
        named = few(f"{column!r} ({kind})" for column, kind in others)
        table = name if name.isidentifier() else "frame"
        raise TypeError(
            f"{name} has columns that are not numbers: {named}; leave them out, or make "
            f"numbers of them. Numbers stored as text or objects: {table}[column].astype(float). "
            f"Categories: {table}, groups, _ = bestk.groups_of({table}), with groups=groups in the "
            f"call, or pandas.get_dummies({table}, drop_first=True)"
        )


_ARROW_NUMBER = re.compile("u?int|float|double|half|bool|decimal|null")


def other_columns(frame: Any) -> list[tuple[Any, str]]:
    """(name, kind) of columns that are neither numbers nor truth values, of a data frame."""
    if is_lazy(frame):
        return []
    if hasattr(frame, "column_names") and hasattr(frame, "schema"):  # Arrow
        pairs = zip(frame.column_names, map(str, frame.schema.types), strict=True)
        return [(column, kind) for column, kind in pairs if not _ARROW_NUMBER.match(kind)]
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
                str(dtype) if str(dtype) in ("category", "string", "str") else KINDS.get(kind, "")
            )
        if kind not in "iufbc":
            found.append((column, word or str(dtype)))
    return found
