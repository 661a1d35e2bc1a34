"""What is asked of each table: the best model of some sizes, with a ridge penalty and without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .preparing import prepared

DEGREES = (1, 2, 3)
SIZES = (3, 5, 8, 10, 15, 20)
ROWS_PER_FEATURE = 3
"""Larger models are not asked of a table: they would fit its noise."""
CONDITION = 1e6
"""Of X'X: up to this, and with more than two rows per column, there is a problem without ridge."""


class Problem(NamedTuple):
    """The best k terms of a table with all products of up to ``degree`` features."""

    table: str
    degree: int
    k: int
    alpha: float

    @property
    def M(self) -> None:
        """No box is known: those who need one get it from a first model."""
        return None

    def data(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X, y and, as nobody knows true coefficients, zeros."""
        found = prepared(self.table, self.degree)
        if found is None:
            raise ValueError(f"{self.table} has too many terms of degree {self.degree}")
        return found.X, found.y, np.zeros(found.X.shape[1])


def problems(table: str, degree: int) -> Iterator[Problem]:
    """Of one table; none if it would have too many terms."""
    found = prepared(table, degree)
    if found is None:
        return
    for alpha in (1.0, 0.0) if is_well_posed(found.X) else (1.0,):
        for k in SIZES:
            if k < found.X.shape[1] and ROWS_PER_FEATURE * k <= len(found.X):
                yield Problem(table, degree, k, alpha)


def is_well_posed(X: np.ndarray) -> bool:
    """Whether least squares without a penalty makes sense."""
    n, p = X.shape
    if n <= 2 * p:
        return False
    values = np.linalg.eigvalsh(X.T @ X)
    return bool(values[0] * CONDITION >= values[-1])
