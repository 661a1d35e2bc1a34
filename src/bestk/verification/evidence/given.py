"""Data as callers give them, checked: rows, batches of rows, or a Gram matrix."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bestk.base.validation import (
    as_matrix,
    as_vector,
    as_weights,
    require_finite,
    require_number,
    rows_in,
)

# What is said of data that are not those of the run.
OTHER_DATA = (
    "the data or the problem are not those of the certificate (fingerprint): pass the rows and "
    "columns of that run, in the same order, with the same weights"
)


def checked_rows(X: Any, y: Any, sample_weight: Any) -> tuple:
    X = as_matrix("X", X)
    y = as_vector("y", y, length=X.shape[0], of="rows of X")
    weight = as_weights(sample_weight, X.shape[0])
    require_finite("X", X)
    require_finite("y", y)
    return X, y, weight


def checked_batches(batches: Iterable[tuple[Any, ...]]) -> Iterator[tuple]:
    for i, (X, y, weight) in enumerate(rows_in(batches)):
        X = as_matrix(f"X of batch {i}", X)
        y = as_vector(f"y of batch {i}", y, length=X.shape[0], of="rows of X")
        weight = as_weights(weight, X.shape[0], f"weight of batch {i}")
        require_finite(f"X of batch {i}", X)
        require_finite(f"y of batch {i}", y)
        yield X, y, weight


def checked_gram(G: Any, c: Any, yy: Any) -> tuple[np.ndarray, np.ndarray, float]:
    G = np.asarray(as_matrix("G", G), dtype=np.float64)
    if G.shape[0] != G.shape[1]:
        raise ValueError(f"G must be square, got shape {G.shape}; pass X.T @ X")
    c = np.asarray(as_vector("c", c, length=len(G), of="columns of G"), dtype=np.float64)
    yy = require_number("yy", yy, least=0.0)
    require_finite("G", G)
    require_finite("c", c)
    return G, c, yy
