"""How fast the kernels are: supports a second, beside what the device could do at best."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np

from bestk.devices.opening import open_device
from bestk.devices.tasks import Device, Progress, Stopped, Task
from bestk.verification.supports.on_device import open_scan

INSTRUCTIONS = 3
"""Of the scan for each support: a product, a fused product, a maximum (scan.cu)."""
LANES = 128
"""Single-precision instructions of one processor of the device in a cycle."""


def matrix(m: int) -> tuple[np.ndarray, np.ndarray]:
    """(H, d) of correlated columns and a target that a few of them explain."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((3 * m, m))
    X[:, 1:] += 0.6 * X[:, :-1]
    X /= np.linalg.norm(X, axis=0)
    y = X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(3 * m)
    return X.T @ X, X.T @ (y / np.linalg.norm(y))


def peak() -> float:
    """Single-precision instructions a second of device 0, all lanes together."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(0)
    # In kHz; newer versions of CUDA no longer say it among the properties.
    clock = properties.get("clockRate") or cupy.cuda.runtime.deviceGetAttribute(13, 0)
    return LANES * properties["multiProcessorCount"] * clock * 1e3


def scan_rows(seconds: float) -> list[dict[str, object]]:
    """Supports a second of whole enumerations, launches and judging included."""
    device, best, rows = open_device("cuda"), peak(), []
    assert device is not None
    for m, r in ((462, 5), (462, 6), (202, 6), (100, 7), (66, 8), (34, 10)):
        H, d = matrix(m)
        task = Task(H - np.outer(d, d) / 0.999, r)
        device.remaining([Task(task.M[:40, :40], 3)], lambda: False, Progress())
        rate = _rate(device, task, seconds)
        rows.append(
            {
                "features": m, "r": r, "supports/s": f"{rate:.2e}",
                "instructions/s": f"{INSTRUCTIONS * rate:.2e}",
                "share of peak": f"{INSTRUCTIONS * rate / best:.0%}",
            }
        )  # fmt: skip
    return rows


def _rate(device: Device, task: Task, seconds: float) -> float:
    """Of some seconds of work, or of all of it."""
    progress, start = Progress(), time.perf_counter()
    with suppress(Stopped):
        device.remaining([task], lambda: time.perf_counter() - start > seconds, progress)
    return progress.n_sets / (time.perf_counter() - start)


def verifier_rows() -> list[dict[str, object]]:
    """The same for the verifier's kernel."""
    from math import comb

    scan, rows = open_scan("cuda"), []
    for m, r in ((462, 4), (250, 5), (100, 6), (60, 7)):
        H, d = matrix(m)
        scan.beginnings(H[:40, :40], d[:40], 0.999, 0.0, 3)
        start = time.perf_counter()
        scan.beginnings(H, d, 0.999, 0.0, r)
        rate = comb(m, r) / (time.perf_counter() - start)
        rows.append({"features": m, "r": r, "supports/s": f"{rate:.2e}"})
    return rows
