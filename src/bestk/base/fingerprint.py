"""Which data, which problem: a short text that changes with any bit of either.

It tells a mistake (other rows, another file, another k), not a forgery: a proof is checked on the
data whatever its fingerprint says. Sums of products depend on the BLAS in use, so the numbers of
the data themselves are digested, in any layout, type or batches.
"""

import hashlib
from typing import Any

import numpy as np
from numba import njit

from bestk.base.question import Question

_MASK = 2**64 - 1
_ROWS = 4096
_ROW_SALT, _COLUMN_SALT = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
_NEGATIVE_ZERO = 0x8000000000000000


@njit(cache=True, nogil=True)
def _weighted_sum(X, row_keys, column_keys):
    """Sum of folded bits times an odd number that depends on row and column, mod 2^64.

    No order of summation is part of it, so the caller may choose the layout's own.
    """
    total = np.uint64(0)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            bits = X[i, j]
            if bits == np.uint64(_NEGATIVE_ZERO):  # -0.0 is 0.0
                bits = np.uint64(0)
            bits ^= bits >> np.uint64(32)
            total += bits * ((row_keys[i] ^ column_keys[j]) | np.uint64(1))
    return total


def _keys(first: int, count: int, salt: int) -> np.ndarray:
    """Well mixed numbers for indices first, first + 1, ..."""
    x = (np.arange(first + 1, first + count + 1, dtype=np.uint64)) * np.uint64(salt)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def digest(array: np.ndarray, first_row: int = 0) -> int:
    """A 64-bit digest of the float64 values of an array; those of parts by rows add up mod 2^64."""
    matrix = array[:, None] if array.ndim == 1 else array
    by_columns = matrix.flags.f_contiguous and not matrix.flags.c_contiguous
    columns = _keys(0, matrix.shape[1], _COLUMN_SALT)
    total = 0
    # Plain doubles in one go, others converted block by block.
    step = len(matrix) if matrix.dtype == np.float64 else _ROWS
    for start in range(0, len(matrix), max(step, 1)):
        block = matrix[start : start + step].astype(np.float64, copy=False)
        rows = _keys(first_row + start, len(block), _ROW_SALT)
        keyed = (block.T, columns, rows) if by_columns else (block, rows, columns)
        bits = np.ascontiguousarray(keyed[0]).view(np.uint64)
        total += int(_weighted_sum(bits, *keyed[1:]))
    return total & _MASK


def digest_there(xp: Any, rows: Any, first_row: int) -> Any:
    """`digest` of rows of doubles that are on a device, by its own functions; a number there."""
    row_keys = xp.asarray(_keys(first_row, len(rows), _ROW_SALT))
    column_keys = xp.asarray(_keys(0, rows.shape[1], _COLUMN_SALT))
    bits = rows.view(np.uint64)
    bits = xp.where(bits == np.uint64(_NEGATIVE_ZERO), np.uint64(0), bits)
    bits ^= bits >> np.uint64(32)
    return (bits * ((row_keys[:, None] ^ column_keys) | np.uint64(1))).sum(dtype=np.uint64)


class DataDigest:
    """Digest of rows (X, y, weight), which may come in batches."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.sums = [0, 0, 0]

    def add(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        of_X: int | None = None,
    ) -> None:
        """Rows that follow; `of_X` is the digest of X, if it is known."""
        weight = np.ones(len(y)) if weight is None else weight
        first = digest(X, self.n_rows) if of_X is None else of_X
        parts = first, digest(y, self.n_rows), digest(weight, self.n_rows)
        self.sums = [(total + part) & _MASK for total, part in zip(self.sums, parts, strict=True)]
        self.n_rows += len(y)

    def joined(self, other: "DataDigest") -> "DataDigest":
        """Of these rows and others; each has counted rows from where they begin in the whole."""
        both = DataDigest()
        both.n_rows = self.n_rows + other.n_rows
        both.sums = [(a + b) & _MASK for a, b in zip(self.sums, other.sums, strict=True)]
        return both

    def __str__(self) -> str:
        return f"rows {self.n_rows} " + " ".join(f"{total:016x}" for total in self.sums)


def rows_digest(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> str:
    data = DataDigest()
    data.add(X, y, weight)
    return str(data)


def gram_digest(G: np.ndarray, c: np.ndarray, yy: float) -> str:
    return f"gram {len(c)} {digest(G):016x} {digest(c):016x} {float(yy).hex()}"


def fingerprint(data: str, question: Question) -> str:
    """SHA-256 of the data's digest and everything else that defines the problem."""
    parts = [
        data,
        str(int(question.k)),
        float(question.alpha).hex(),
        f"{digest(question.lower):016x} {digest(question.upper):016x}",
        " ".join(str(int(j)) for j in question.include),
        " ".join(str(int(j)) for j in question.exclude),
        str(bool(question.fit_intercept)),
    ]
    if question.is_box_assumed:
        parts.append("box assumed")
    if len(question.free):
        parts.append("free " + " ".join(str(int(j)) for j in question.free))
    if question.structure is not None:
        parts += question.structure.identity()
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
