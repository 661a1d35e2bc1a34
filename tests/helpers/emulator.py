"""Kernels of a device without one: their source compiled as plain C++, run block by block."""

import ctypes
import re
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import numpy as np

HEADER = Path(__file__).with_name("cuda_on_cpu.h")
COMPILER = shutil.which("g++") or shutil.which("clang++")
_KERNEL = r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(([^)]*)\)'


def compiled(source: str, folder: Path, options: tuple[str, ...] = ()) -> ctypes.CDLL:
    """The kernels of a source, each as launch_<name>(blocks, threads, shared bytes, arguments)."""
    launchers = []
    for name, parameters in re.findall(_KERNEL, source):
        types = [re.match(r"(.*?)\w+$", one.strip())[1] for one in parameters.split(",")]
        values = ", ".join(f"*({kind}*)arguments[{i}]" for i, kind in enumerate(types))
        launchers.append(
            f'extern "C" void launch_{name}(int blocks, int threads, int shared, void** arguments) '
            f"{{ emulator::launch(blocks, threads, shared, [=] {{ {name}({values}); }}); }}\n"
        )
    assert launchers, "no kernels"
    file, library = folder / "kernels.cpp", folder / "kernels.so"
    file.write_text(f'#include "{HEADER}"\n{source}\n{"".join(launchers)}')
    command = [COMPILER, "-std=c++17", "-O2", "-g", "-w", "-shared", "-fPIC", *options]
    subprocess.run([*command, "-o", library, file], check=True)
    return ctypes.CDLL(str(library))


class Emulator:
    """A driver of a device (see bestk.base.device.driver) whose memory is NumPy's."""

    name = "cpu, as if it were a device"
    n_processors = 2
    most_shared = 2**16
    n_lanes = 1

    def lane(self, number):
        return nullcontext()

    def __init__(self, folder: Path, memory: int = 2**26, most: int = 2**40) -> None:
        self.folder, self.free_memory, self.most = folder, memory, most
        self.launched: list[str] = []

    def compile(self, source, definitions):
        options = tuple(f"-D{name}={value}" for name, value in definitions.items())
        self._library = compiled(source, self.folder, options)

    def allocate(self, n_bytes):
        if n_bytes > self.most:
            raise MemoryError("no such device")
        return np.full(n_bytes, 0xFF, dtype=np.uint8)

    def upload(self, array):
        return np.array(array, order="C")

    def zero(self, memory):
        memory[...] = 0

    def download(self, memory, dtype, count):
        return memory.view(np.uint8)[: count * np.dtype(dtype).itemsize].view(dtype).copy()

    def launch(self, name, blocks, threads, shared, arguments):
        self.launched.append(name)
        slots = []
        for value in arguments:
            if isinstance(value, np.ndarray):
                slots.append(ctypes.c_void_p(value.ctypes.data))
            else:
                kind = {np.int64: ctypes.c_longlong, np.float64: ctypes.c_double}
                slots.append(kind.get(type(value), ctypes.c_int)(value))
        pointers = (ctypes.c_void_p * len(slots))(*[ctypes.addressof(slot) for slot in slots])
        getattr(self._library, f"launch_{name}")(blocks, threads, shared, pointers)
