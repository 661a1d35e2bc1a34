"""The rows themselves, in the widest floating-point type there is."""

from typing import NamedTuple

import numpy as np

from bestk.verification.numerics.rounding import LONG, LONG_UNIT, gamma

_BLOCK = 64


class Columns(NamedTuple):
    """Columns of unit length and y, in the units of the standard form.

    Each is exact up to ``error`` times its length. Ridge rows are the last ones.
    """

    M: np.ndarray
    z: np.ndarray
    error: float


class Rows:
    """Gives out columns of the standard form (theory: form) in extended precision."""

    def __init__(self, X, y, weight, sums, scale, alpha, y_scale, tau) -> None:
        self.X, self.y, self.weight = X, y, weight
        self.origin, self.exponent, self.centre = sums.origin, sums.exponent, sums.centre
        self.scale, self.y_scale = scale.astype(LONG), LONG(y_scale)
        self.ridge = np.sqrt(alpha.astype(LONG)) / self.scale
        # Forming x - origin, the weight and the unit: four roundings. The mean that centring
        # subtracts has the error of a sum; a share root(1 - tau^2) of the column is left.
        count = 8 + (2 * sum_length(len(y)) if self.centre else 0)
        left = np.sqrt(max(1.0 - tau**2, 1e-6))
        self.error = gamma(count, LONG_UNIT) / float(left)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def columns(self, features: np.ndarray) -> Columns:
        """The columns of some features (problem numbers; `scale` is by problem number too)."""
        M, z = self._centred(self.X[:, features], features), self._centred(self.y, -1)
        M, z = M / self.scale[features], z / self.y_scale
        if self.ridge[features].any():
            M = np.vstack([M, np.diag(self.ridge[features])])
            z = np.concatenate([z, np.zeros(len(features), dtype=LONG)])
        return Columns(M, z, self.error)

    def _centred(self, values, which):
        part = (values.astype(np.float64).astype(LONG) - self.origin[which]) * LONG(2) ** (
            -self.exponent[which]
        )
        weight = None if self.weight is None else self.weight.astype(LONG)
        if self.centre:
            weights = np.ones(len(part), dtype=LONG) if weight is None else weight
            if weights.any():
                part = part - short_sums(part.T * weights) / short_sums(weights)
        if weight is not None:
            root = np.sqrt(weight)
            part = part * (root if part.ndim == 1 else root[:, None])
        return part


def short_sums(products: np.ndarray) -> np.ndarray:
    """Sums over the last axis in two stages, so that no sum is long."""
    n = products.shape[-1]
    whole = n - n % _BLOCK
    blocks = products[..., :whole].reshape(*products.shape[:-1], whole // _BLOCK, _BLOCK)
    return blocks.sum(axis=-1).sum(axis=-1) + products[..., whole:].sum(axis=-1)


def sum_length(n: int) -> int:
    """How many roundings a term of `short_sums` goes through."""
    return 2 * _BLOCK + n // _BLOCK + 1 if n > _BLOCK else n + 1


def reflected(columns: np.ndarray, basis: int) -> tuple[np.ndarray, float]:
    """Householder reflections that make the first `basis` columns triangular, applied to all.

    Columns are the rows of `columns`. Returns them and their relative error: each is exact for a
    column that is off by this share of its length. One reflection with |v|^2 = 2 costs 6 gamma_s
    for products of s roundings, and 40 roundings more.
    """
    C = columns.copy()
    steps = min(basis, C.shape[1])
    for i in range(steps):
        x = C[i, i:]
        norm = np.sqrt(short_sums(x * x))
        if norm == 0.0:
            continue
        v = x.copy()
        v[0] += norm if x[0] >= 0 else -norm
        v *= np.sqrt(LONG(2) / short_sums(v * v))
        rest = C[i:, i:]
        rest -= short_sums(rest * v)[:, None] * v
        C[i, i + 1 :] = 0.0
    return C, gamma(steps * (6 * sum_length(C.shape[1]) + 40), LONG_UNIT)


def triangle(columns: Columns) -> Columns:
    """The same columns as an orthogonal factorisation gives them: fewer rows."""
    C, error = reflected(np.vstack([columns.M.T, columns.z]), columns.M.shape[1])
    p = columns.M.shape[1]
    # What y has beyond the columns is one more number.
    rest = C[p, p:]
    C = np.column_stack([C[:, :p], np.zeros(p + 1, dtype=LONG)])
    C[p, p] = np.sqrt(short_sums(rest * rest))
    error += gamma(sum_length(len(rest)) + 2, LONG_UNIT)
    return Columns(C[:p].T.copy(), C[p].copy(), columns.error + error)
