"""NVIDIA devices through CuPy, which compiles kernels when they are first used and keeps them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from bestk.base.device.driver import INSTALL, DeviceFailed, DeviceUnavailable


def number_of(name: str) -> int:
    """The number of the device with a name: "cuda" is "cuda:0"."""
    return int(name.partition(":")[2] or 0)


def cupy_for(number: int) -> tuple[Any, Any, dict[str, Any]]:
    """(CuPy, a device, its properties). Raises DeviceUnavailable, which says what is missing."""
    try:
        import cupy  # only where a device is asked for
    except ImportError as error:
        raise DeviceUnavailable(f"device='cuda' needs CuPy: {INSTALL}") from error
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise DeviceUnavailable(
            f"device='cuda' needs an NVIDIA driver, and CuPy finds none that it can use "
            f"({error}): install or update the driver, or leave device out"
        ) from error
    if number >= count:
        raise DeviceUnavailable(
            f"there is no device 'cuda:{number}': this machine has {count}, numbered from 0"
        )
    return cupy, cupy.cuda.Device(number), runtime.getDeviceProperties(number)


class Cuda:
    """A driver (see `driver.Driver`); a lane is a stream, and no lane is the default stream."""

    n_lanes = 2

    def __init__(self, number: int) -> None:
        cupy, self._device, properties = cupy_for(number)
        self._cupy, runtime = cupy, cupy.cuda.runtime
        self.name = f"cuda:{number} ({properties['name'].decode()})"
        self.n_processors = int(properties["multiProcessorCount"])
        self.most_shared = int(properties["sharedMemPerBlockOptin"])
        self._kernels: dict[str, Any] = {}
        self._streams: dict[int, Any] = {}
        self._errors = runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError

    @contextmanager
    def _here(self) -> Iterator[None]:
        """On this device, whose own errors become ours."""
        try:
            with self._device:
                yield
        except self._errors as error:
            raise DeviceFailed(f"{self.name} failed: {error}") from error

    @contextmanager
    def lane(self, number: int) -> Iterator[None]:
        with self._here():
            if number not in self._streams:
                self._streams[number] = self._cupy.cuda.Stream(non_blocking=True)
            with self._streams[number]:
                yield

    @property
    def free_memory(self) -> int:
        with self._here():
            return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def compile(self, source: str, definitions: dict[str, Any]) -> None:
        options = ("-std=c++17", *(f"-D{name}={value}" for name, value in definitions.items()))
        with self._here():
            self._module = self._cupy.RawModule(code=source, options=options)

    def allocate(self, n_bytes: int) -> Any:
        with self._here():
            return self._cupy.empty(n_bytes, dtype=np.uint8)

    def upload(self, array: np.ndarray) -> Any:
        with self._here():
            return self._cupy.asarray(array)

    def zero(self, memory: Any) -> None:
        with self._here():
            memory.fill(0)

    def download(self, memory: Any, dtype: Any, count: int) -> np.ndarray:
        n_bytes = count * np.dtype(dtype).itemsize
        with self._here():
            return self._cupy.asnumpy(memory[:n_bytes]).view(dtype)

    def launch(
        self, name: str, blocks: int, threads: int, shared: int, arguments: Sequence[Any]
    ) -> None:
        # Whole numbers are C's int; NumPy's own types stay what they are.
        plain = [np.int32(one) if type(one) is int else one for one in arguments]
        with self._here():
            if name not in self._kernels:
                self._kernels[name] = self._module.get_function(name)
            kernel = self._kernels[name]
            if shared > kernel.max_dynamic_shared_size_bytes:
                kernel.max_dynamic_shared_size_bytes = shared
            kernel((blocks,), (threads,), tuple(plain), shared_mem=shared)
