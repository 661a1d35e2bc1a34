"""Dense work of a device in NumPy."""

from contextlib import nullcontext

import numpy as np
from scipy.linalg import solve_triangular


class HostDense:
    """A device that is none: NumPy, and blocks of a few rows that are gone when the next comes."""

    xp = np

    def __init__(self) -> None:
        self.n_rows = 0

    def here(self):
        return nullcontext()

    def to_host(self, array):
        return np.array(array)

    def blocks(self, X):
        room = np.empty((7, X.shape[1]), X.dtype)
        for start in range(0, len(X), 7):
            rows = slice(start, min(start + 7, len(X)))
            block = room[: rows.stop - start]
            block[...] = X[rows]
            self.n_rows += len(block)
            yield rows, block
            block[...] = -99

    def upload(self, array):
        return np.array(array)

    def cholesky(self, Q):
        try:
            return np.linalg.cholesky(Q)
        except np.linalg.LinAlgError:
            return None

    def solve_lower(self, L, right, *, transposed=False):
        return solve_triangular(L, right, lower=True, trans=1 if transposed else 0)
