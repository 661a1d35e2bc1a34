"""What a device has to offer so that kernels can run on it."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

INSTALL = "install bestk[gpu] (for CUDA 13) or bestk[gpu12] (for CUDA 12), or leave device out"


class DeviceUnavailable(OSError):
    """There is no such device, or nothing to reach it with; the message says what to do."""


class DeviceFailed(RuntimeError):
    """A device that was there is lost, or has less memory than even the smallest batch takes."""


class Driver(Protocol):
    """Memory and kernels of one device. What is launched runs in this order, after this call.

    ``allocate`` and ``upload`` raise MemoryError where there is no room. Whatever else goes wrong
    is DeviceFailed.
    """

    name: str
    n_processors: int
    most_shared: int
    """Bytes that the threads of a block can share."""
    n_lanes: int
    """Lanes that are worth having: in each, what is launched runs in its order."""

    def lane(self, number: int) -> AbstractContextManager[Any]:
        """Whatever this thread asks for inside the block belongs to a lane."""

    @property
    def free_memory(self) -> int: ...

    def compile(self, source: str, definitions: dict[str, Any]) -> None: ...

    def allocate(self, n_bytes: int) -> Any: ...

    def upload(self, array: np.ndarray) -> Any: ...

    def zero(self, memory: Any) -> None: ...

    def download(self, memory: Any, dtype: Any, count: int) -> np.ndarray:
        """The first numbers there, once all that was launched before is done."""

    def launch(
        self, name: str, blocks: int, threads: int, shared: int, arguments: Sequence[Any]
    ) -> None: ...
