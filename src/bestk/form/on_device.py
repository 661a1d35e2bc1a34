"""Dense work on large matrices by a device: factors, and products of wide data.

What is proven does not rest on a library's order of operations. Whatever L is, L L' is positive
semidefinite. So Q - delta I = L L' + E proves Q >= 0 as soon as delta is at least the norm of E,
which is computed, with its rounding (theory: residual).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.device.dense import Dense
from bestk.base.tuning import tuning

_current: ContextVar["DeviceWork | None"] = ContextVar("device for dense work", default=None)


@contextmanager
def dense_work_on(device: "DeviceWork | None") -> Iterator[None]:
    """Inside the block a device works on large matrices; None leaves them to the CPU."""
    token = _current.set(device)
    try:
        yield
    finally:
        _current.reset(token)


def device_in_use() -> "DeviceWork | None":
    return _current.get()


def device_for_factors(p: int) -> "DeviceWork | None":
    device = _current.get()
    return device if device and not device.failure and p >= tuning().device_factors else None


def device_for_products(n_entries: int) -> "DeviceWork | None":
    device = _current.get()
    enough = n_entries >= tuning().device_products
    return device if device and not device.failure and enough else None


class OutOfMemory(Exception):
    """The device has no room for a matrix; it is not asked again."""


class DeviceWork:
    """Works on one large array at a time, which goes to the device once."""

    def __init__(self, dense: Dense) -> None:
        self.dense, self.failure = dense, ""
        self._held: tuple[np.ndarray, Any] | None = None

    @contextmanager
    def _here(self) -> Iterator[None]:
        try:
            with self.dense.here():
                yield
        except MemoryError:
            self._held, self.failure = None, "the device has no memory for large matrices"
            raise OutOfMemory from None

    def _there(self, array: np.ndarray) -> Any:
        if self._held is None or self._held[0] is not array:
            self._held = None  # its memory first
            self._held = array, self.dense.upload(array)
        return self._held[1]

    def _less(self, A: np.ndarray, t: Any) -> Any:
        """A - diag(t), there."""
        Q = self._there(A).copy()
        i = self.dense.xp.arange(len(A))
        Q[i, i] -= self.dense.xp.asarray(np.broadcast_to(t, len(A)))
        return Q

    def factor(self, A: np.ndarray, t: Any) -> "DeviceFactor | None":
        """Of A - diag(t), or None where it does not exist."""
        with self._here():
            L = self.dense.cholesky(self._less(A, t))
            return None if L is None else DeviceFactor(self, L)

    def proves_definite(self, A: np.ndarray, t: np.ndarray, error: float) -> bool:
        """Is A - diag(t) positive semidefinite, whatever A's entries are up to `error`?"""
        p, xp = len(A), self.dense.xp
        trace = float(A.diagonal().sum() - t.sum()) + 1.0
        delta = 6.0 * (p + 4) * UNIT_ROUNDOFF * trace + p * error
        with self._here():
            Q = self._less(A, t + delta)
            L = self.dense.cholesky(Q)
            if L is None:
                return False
            size = float((L * L).sum())
            Q -= L @ L.T
            distance = float(xp.sqrt((Q * Q).sum()))
        # Rounding: of the product and of the diagonal; of these sums.
        rounding = (p + 8) * UNIT_ROUNDOFF * (size + trace) + UNIT_ROUNDOFF * p * (1.0 + abs(trace))
        return bool((distance + rounding) * 1.01 + p * error <= delta)

    def times(self, rows: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """rows @ Z.T"""
        with self._here():
            return self.dense.to_host(self.dense.xp.asarray(rows) @ self._there(Z).T)


class DeviceFactor:
    """See `definiteness.Factor`."""

    def __init__(self, work: DeviceWork, L: Any) -> None:
        self._work, self._L = work, L

    def inverse_sums(self) -> tuple[np.ndarray, np.ndarray]:
        dense = self._work.dense
        with self._work._here():
            root = dense.solve_lower(self._L, dense.xp.eye(len(self._L)))
            del self._L
            inverse = root.T @ root
            diagonal, squares = inverse.diagonal().copy(), (inverse * inverse).sum(axis=1)
            return dense.to_host(diagonal), dense.to_host(squares)

    def solve(self, right: np.ndarray) -> np.ndarray:
        dense = self._work.dense
        with self._work._here():
            half = dense.solve_lower(self._L, dense.xp.asarray(right))
            return dense.to_host(dense.solve_lower(self._L, half, transposed=True))
