"""Cholesky factors of large matrices on a device, and a proof that does not rest on its library.

Whatever L is, L L' is positive semidefinite. So Q - delta I = L L' + E proves Q >= 0 as soon as
delta is at least the norm of E, which is computed, with its rounding (theory: residual).
"""

from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.dense import Dense


class DeviceFactors:
    """Factors A - diag(t) for many t; A goes to the device once."""

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self._held: tuple[np.ndarray, Any] | None = None

    def _matrix(self, A: np.ndarray, t: Any) -> Any:
        """A - diag(t), there."""
        if self._held is None or self._held[0] is not A:
            self._held = None  # its memory first
            self._held = A, self.dense.upload(A)
        Q = self._held[1].copy()
        i = self.dense.xp.arange(len(A))
        Q[i, i] -= self.dense.xp.asarray(np.broadcast_to(t, len(A)))
        return Q

    def factor(self, A: np.ndarray, t: Any) -> "DeviceFactor | None":
        with self.dense.here():
            L = self.dense.cholesky(self._matrix(A, t))
            return None if L is None else DeviceFactor(self.dense, L)

    def proves_definite(self, A: np.ndarray, t: np.ndarray, error: float) -> bool:
        """Is A - diag(t) positive semidefinite, whatever A's entries are up to `error`?"""
        p, xp = len(A), self.dense.xp
        trace = float(A.diagonal().sum() - t.sum()) + 1.0
        delta = 6.0 * (p + 4) * UNIT_ROUNDOFF * trace + p * error
        with self.dense.here():
            Q = self._matrix(A, t + delta)
            L = self.dense.cholesky(Q)
            if L is None:
                return False
            size = float((L * L).sum())
            Q -= L @ L.T
            distance = float(xp.sqrt((Q * Q).sum()))
        # Rounding: of the diagonal, of the product, of these sums.
        rounding = (p + 8) * UNIT_ROUNDOFF * (size + trace) + UNIT_ROUNDOFF * p * (1.0 + abs(trace))
        return bool((distance + rounding) * 1.01 + p * error <= delta)


class DeviceFactor:
    """See `definiteness.Factor`."""

    def __init__(self, dense: Dense, L: Any) -> None:
        self.dense, self._L = dense, L

    def inverse_sums(self) -> tuple[np.ndarray, np.ndarray]:
        dense = self.dense
        with dense.here():
            root = dense.solve_lower(self._L, dense.xp.eye(len(self._L)))
            del self._L
            inverse = root.T @ root
            diagonal, squares = inverse.diagonal().copy(), (inverse * inverse).sum(axis=1)
            return dense.to_host(diagonal), dense.to_host(squares)

    def solve(self, right: np.ndarray) -> np.ndarray:
        dense = self.dense
        with dense.here():
            half = dense.solve_lower(self._L, dense.xp.asarray(right))
            return dense.to_host(dense.solve_lower(self._L, half, transposed=True))
