"""The command ``bestk doctor``: what there is on this machine, and whether bestk works on it.

What is optional is looked up, not imported: a package that is there and broken must not keep the
command from saying so.
"""

import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

from bestk.cli.options import RUN, Json, Quiet, Threads, option
from bestk.cli.outcome import helpful, waiting
from bestk.show.console import doctor_document, show_check, show_machine, write_json

if TYPE_CHECKING:
    from bestk.cli.commands.self_test import Check

UNHEALTHY = 1

_NEEDED = (
    "numpy", "scipy", "numba", "llvmlite", "scikit-learn", "threadpoolctl", "rich", "typer",
)  # fmt: skip
_OPTIONAL = (
    "pysindy", "matplotlib", "pandas", "polars", "pyarrow", "fsspec", "dask", "distributed",
    "cupy-cuda13x", "cupy-cuda12x", "cupy",
)  # fmt: skip
# What steers threads and compiled code from outside.
_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS",
    "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_CPU_NAME", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip
_NVIDIA = Path("/proc/driver/nvidia/version")


@helpful
def doctor(
    tested: Annotated[
        bool, option("--self-test/--no-self-test", panel=RUN, help="Solve a few tiny problems.")
    ] = True,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Versions, threads, caches and devices, and a self-test against brute force."""
    machine = machine_here()
    if not as_json:
        show_machine(machine)
    checks: list[Check] = []
    if tested:
        from bestk.cli.commands.self_test import self_test

        running = self_test(threads)
        while True:
            with waiting("self-test (loops that are new here are compiled first)", quiet):
                check = next(running, None)
            if check is None:
                break
            checks.append(check)
            if not as_json:
                show_check(check)
    if as_json:
        write_json(doctor_document(machine, checks))
    return 0 if all(check.passed for check in checks) else UNHEALTHY


def machine_here() -> dict[str, Any]:
    """Everything but the self-test, with the keys of ``bestk doctor --json``."""
    from bestk import __version__

    return {
        "version": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "packages": _versions(_NEEDED),
        "optional": _versions(_OPTIONAL),
        "threads": _threads(),
        "blas": _blas(),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "compile_cache": _compile_cache(),
        "devices": _devices(),
    }


def _versions(names: Iterable[str]) -> dict[str, str | None]:
    """Without imports; None if there is no such package."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _threads() -> dict[str, int | None]:
    from bestk.base.threads import default_threads

    return {"default": default_threads(), "cores": os.cpu_count()}


def _blas() -> list[dict[str, Any]]:
    """The libraries that NumPy and SciPy bring along."""
    import numpy  # noqa: F401
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    keys = ("internal_api", "version", "num_threads", "threading_layer", "architecture")
    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return [{key: info.get(key) for key in keys} for info in found]


def _compile_cache() -> dict[str, Any]:
    """Where Numba keeps the loops that it has compiled, for all modules that have some."""
    try:
        folders = _cache_folders()
    except (ImportError, RuntimeError) as error:
        # Numba finds no folder at all that it may write to, or cannot be loaded.
        told = f"{error}; set NUMBA_CACHE_DIR to a folder that you may write to"
        return {"folder": None, "bytes": 0, "writable": False, "problem": told}
    files = [file for folder in folders for file in folder.glob("*.nb[ci]")]
    locked = [folder for folder in folders if not _is_writable(folder)]
    problem = f"every process compiles anew: {locked[0]} is not writable" if locked else ""
    return {
        "folder": os.path.commonpath(folders) if folders else None,
        "bytes": sum(file.stat().st_size for file in files),
        "writable": not locked,
        "problem": problem,
    }


def _cache_folders() -> list[Path]:
    # These bring along nearly all modules with loops.
    import bestk.selection.problem
    import bestk.verification.verify  # noqa: F401

    modules = [module for name, module in sys.modules.items() if name.startswith("bestk.")]
    compiled = [value for module in modules for value in vars(module).values() if _is_loop(value)]
    return sorted({Path(loop.stats.cache_path) for loop in compiled if loop.stats.cache_path})


def _is_loop(value: Any) -> bool:
    return hasattr(value, "py_func") and hasattr(value, "stats")


def _is_writable(folder: Path) -> bool:
    """By writing: permissions do not tell about file systems that are read-only."""
    while not folder.exists():  # Numba makes it when it is needed
        folder = folder.parent
    try:
        with TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _devices() -> dict[str, Any]:
    """Names of the devices that ``device="cuda"`` may use, and what keeps it from others."""
    if find_spec("cupy") is None:
        install = "an NVIDIA driver is here; install bestk[gpu] or bestk[gpu12] to use the device"
        return {"names": [], "problem": install if _NVIDIA.exists() else ""}
    from bestk.base.device.cuda import cupy_for

    names: list[str] = []
    try:
        n_devices = cupy_for(0)[0].cuda.runtime.getDeviceCount()
        for number in range(n_devices):
            name = cupy_for(number)[2]["name"].decode()
            names.append(f"cuda:{number} ({name})")
    except Exception as error:  # CuPy and its driver fail in many ways, and none is fatal here
        return {"names": names, "problem": f"{type(error).__name__}: {error}"}
    return {"names": names, "problem": ""}
