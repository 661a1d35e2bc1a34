"""Arrays on a device: NumPy's functions there, and rows that arrive while others are in work."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

import numpy as np

from bestk.base.device.cuda import cupy_for, number_of

# Bytes of a block of rows, and of what one thread copies of it at a time.
_BLOCK_BYTES, _COPY_BYTES = 2**28, 2**24


class Dense(Protocol):
    """Where dense sums are computed: ``xp`` has NumPy's functions for arrays there."""

    xp: Any

    def here(self) -> AbstractContextManager[Any]:
        """A context in which `xp` works on this device."""

    def blocks(self, X: np.ndarray) -> Iterator[tuple[slice, Any]]:
        """Blocks of rows of a host array, there. One is valid until the next is asked for."""

    def to_host(self, array: Any) -> np.ndarray: ...

    def upload(self, array: np.ndarray) -> Any:
        """A large array, there."""

    def cholesky(self, Q: Any) -> Any:
        """A lower factor of a symmetric array there; None where it has none."""

    def solve_lower(self, L: Any, right: Any, *, transposed: bool = False) -> Any:
        """x with L x = right, or L' x = right."""


@cache
def open_dense(name: str) -> Dense:
    """The device with a name. Raises DeviceUnavailable."""
    return CudaDense(number_of(name))


class CudaDense:
    """An NVIDIA device. Two blocks of pinned memory are filled by threads and sent in turns."""

    def __init__(self, number: int) -> None:
        self.xp, self._device, _ = cupy_for(number)

    def here(self) -> AbstractContextManager[Any]:
        return self._device

    def to_host(self, array: Any) -> np.ndarray:
        if array.nbytes <= _BLOCK_BYTES or array.ndim != 2:
            return self.xp.asnumpy(array)
        host = np.empty(array.shape, array.dtype)
        step = max(1, _BLOCK_BYTES // (array.itemsize * array.shape[1]))
        parts = [slice(i, i + step) for i in range(0, len(array), step)]
        stream, cuda = self.xp.cuda.get_current_stream(), self.xp.cuda
        pinned = [_pinned(cuda, (step, array.shape[1]), array.dtype) for _ in range(2)]
        arrived = [cuda.Event(), cuda.Event()]
        with ThreadPoolExecutor() as pool:
            for number in range(len(parts) + 1):
                if number < len(parts):
                    part = array[parts[number]]
                    part.get(out=pinned[number % 2][: len(part)], stream=stream, blocking=False)
                    arrived[number % 2].record(stream)
                if number > 0:  # while the next part is on its way
                    last = (number - 1) % 2
                    arrived[last].synchronize()
                    to = host[parts[number - 1]]
                    _copy(pool, pinned[last][: len(to)], to)
        return host

    def upload(self, array: np.ndarray) -> Any:
        with self.here():
            there = self.xp.empty(array.shape, array.dtype)
            for rows, block in self.blocks(array):
                there[rows] = block
            return there

    def cholesky(self, Q: Any) -> Any:
        import cupyx

        with cupyx.errstate(linalg="raise"):
            try:
                return self.xp.linalg.cholesky(Q)
            except np.linalg.LinAlgError:
                return None

    def solve_lower(self, L: Any, right: Any, *, transposed: bool = False) -> Any:
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(L, right, lower=True, trans=1 if transposed else 0)

    def blocks(self, X: np.ndarray) -> Iterator[tuple[slice, Any]]:
        xp, cuda = self.xp, self.xp.cuda
        step = max(1, _BLOCK_BYTES // max(1, X.itemsize * X.shape[1]))
        shape = min(step, len(X)), X.shape[1]
        sending, working = cuda.Stream(non_blocking=True), cuda.get_current_stream()
        count = 1 if len(X) <= step else 2
        pinned = [_pinned(cuda, shape, X.dtype) for _ in range(count)]
        there = [xp.empty(shape, X.dtype) for _ in range(count)]
        sent, used = [cuda.Event() for _ in range(count)], [cuda.Event() for _ in range(count)]
        for event in used:  # the memory may be that of work which is not done yet
            event.record(working)
        with ThreadPoolExecutor() as pool:
            for number, start in enumerate(range(0, len(X), step)):
                turn, rows = number % count, slice(start, min(start + step, len(X)))
                size = rows.stop - rows.start
                if number >= count:
                    sent[turn].synchronize()  # the memory is free to be filled again
                sending.wait_event(used[turn])
                _copy(pool, X[rows], pinned[turn][:size])
                there[turn][:size].set(pinned[turn][:size], stream=sending)
                sent[turn].record(sending)
                working.wait_event(sent[turn])
                yield rows, there[turn][:size]
                used[turn].record(working)
        working.synchronize()


def _pinned(cuda: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    count = int(np.prod(shape))
    memory = cuda.alloc_pinned_memory(max(1, count * np.dtype(dtype).itemsize))
    return np.frombuffer(memory, dtype, count).reshape(shape)


def _copy(pool: ThreadPoolExecutor, rows: np.ndarray, to: np.ndarray) -> None:
    """By many threads: one is slower than the way to the device."""
    step = max(1, _COPY_BYTES // max(1, rows.itemsize * rows.shape[1]))
    parts = [slice(i, i + step) for i in range(0, len(rows), step)]
    list(pool.map(lambda part: np.copyto(to[part], rows[part]), parts))
