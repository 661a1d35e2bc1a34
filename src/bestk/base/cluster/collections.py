"""Dask arrays and data frames, told apart and cut into blocks of rows, without importing Dask."""

from collections.abc import Iterator
from math import isnan
from typing import Any, NamedTuple

import numpy as np


def is_collection(value: Any) -> bool:
    """Whether this is an array or a data frame of Dask."""
    return type(value).__module__.partition(".")[0] == "dask" and hasattr(value, "to_delayed")


def _is_frame(value: Any) -> bool:
    return hasattr(value, "map_partitions") and hasattr(value, "divisions")


class Blocks(NamedTuple):
    """Rows of X, y and, perhaps, weights, cut alike: delayed values, one for each partition.

    ``lengths`` are those that are known without looking at the rows.
    """

    X: list[Any]
    y: list[Any]
    weight: list[Any] | None
    lengths: list[int | None]
    n_features: int

    def computed(self) -> Iterator[tuple[Any, ...]]:
        """The rows themselves, one partition after the other."""
        import dask

        for triple in self.triples():
            yield dask.compute(*(block for block in triple if block is not None))

    def triples(self) -> Iterator[tuple[Any, Any, Any]]:
        weights = [None] * len(self.X) if self.weight is None else self.weight
        return zip(self.X, self.y, weights, strict=True)


def blocks_of(X: Any, y: Any, weight: Any = None) -> Blocks:
    """Blocks of whole rows of a collection X; y and weights may be collections or arrays."""
    if len(X.shape) != 2:
        hint = "; use X.reshape(-1, 1) for a single feature" if len(X.shape) == 1 else ""
        raise ValueError(f"X must have two dimensions, got shape {X.shape}{hint}")
    p = X.shape[1]
    if not isinstance(p, int) and isnan(p):
        raise ValueError("X has an unknown number of columns; call X.compute_chunk_sizes() first")
    lengths: list[int | None]
    if _is_frame(X):
        _require_numbers(X)
        rows, lengths = _partitions(X), [None] * X.npartitions
    else:
        X = X.rechunk({1: int(p)}) if p else X
        rows = X.to_delayed().ravel()
        lengths = [None if isnan(length) else int(length) for length in X.chunks[0]]
    if y is None:
        raise TypeError("y is None; pass a vector, one number for each row of X")
    targets = _like("y", y, lengths)
    weights = None if weight is None else _like("sample_weight", weight, lengths)
    return Blocks(list(rows), targets, weights, lengths, int(p))


def _partitions(frame: Any) -> list[Any]:
    """As they are: Dask would join small files to read few columns, of y more than of X."""
    return frame.simplify().to_delayed(optimize_graph=False)


def _require_numbers(X: Any) -> None:
    """Types of columns are known before any row is; objects may still be numbers."""
    for name, dtype in X.dtypes.items():
        if getattr(dtype, "kind", "O") not in "buif" and dtype != np.dtype(object):
            raise TypeError(
                f"X has a column {name!r} of dtype {dtype}; turn it into numbers, or leave it out"
            )


def _like(name: str, value: Any, lengths: list[int | None]) -> list[Any]:
    """A vector in blocks of the same rows."""
    known = [length for length in lengths if length is not None]
    if not is_collection(value):
        value = np.asarray(value)
        if len(known) < len(lengths):
            raise TypeError(
                f"{name} must be a Dask collection, partitioned as X is, since the lengths of X's "
                "partitions are not known"
            )
        if value.ndim == 0 or len(value) != sum(known):
            raise ValueError(
                f"{name} has shape {value.shape}, but there are {sum(known)} rows of X; give "
                "one number for each"
            )
        return np.split(value, np.cumsum(known)[:-1])
    if not _is_frame(value):
        if value.ndim == 2 and value.shape[1] == 1:
            value = value[:, 0]
        if value.ndim != 1:
            raise ValueError(
                f"{name} must be a vector, got shape {value.shape}; pass one column, such as "
                f"{name}[:, 0]"
            )
        fits = not isnan(value.shape[0]) and len(known) == len(lengths)
        if fits and value.shape[0] != sum(known):
            raise ValueError(
                f"{name} has length {value.shape[0]}, but there are {sum(known)} rows of X; give "
                "one number for each"
            )
        value = value.rechunk((tuple(known),)) if fits else value
    blocks = list(_partitions(value) if _is_frame(value) else np.ravel(value.to_delayed()))
    if len(blocks) != len(lengths):
        raise ValueError(
            f"{name} has {len(blocks)} partitions and X has {len(lengths)}; take both from one "
            "data frame, or repartition them alike"
        )
    return blocks
