"""Tall data: python tall_run.py N P RHO K ALPHA GAP THREADS ANSWER.json.

Times bestk.solve against X.T @ X in the same process, before and after, and records how far the
resident memory rises above what it was when X and y had been made. The objective is recomputed.
"""

import time
from pathlib import Path

import numpy as np

import bestk
from benchmarks.harness.process import MIB, answer, resident, solve_to
from bestk.datasets import make_synthetic


def reset_high_water_mark() -> None:
    """Ask Linux to forget the highest resident size so far."""
    clear_refs = Path("/proc/self/clear_refs")
    if clear_refs.exists():
        clear_refs.write_text("5")


def gram_seconds(X: np.ndarray) -> float:
    start = time.perf_counter()
    _ = X.T @ X
    return time.perf_counter() - start


def main(n, p, rho, k, alpha, gap, threads):
    tiny = make_synthetic(200, 40, k=5)
    bestk.solve(tiny.X, tiny.y, k=5, alpha=alpha, n_threads=threads)
    X, y, _ = make_synthetic(n, p, k, rho=rho)
    base = resident("VmRSS")
    before = gram_seconds(X)

    reset_high_water_mark()
    start = time.perf_counter()
    result = solve_to(gap, X, y, k=k, alpha=alpha, time_limit=600.0, n_threads=threads)
    seconds = time.perf_counter() - start
    peak = resident("VmHWM")
    after = gram_seconds(X)

    coef = result.coef
    residual = y - X @ coef
    return {
        "seconds": seconds,
        "gram_seconds": min(before, after),
        "memory_mib": peak - base,
        "allowed_mib": (6 * p * p * 8 + 500e6) / MIB,
        "nodes": int(result.n_nodes),
        "size": int(np.count_nonzero(coef)),
        "yy": float(y @ y),
        "objective": float(residual @ residual + alpha * (coef @ coef)),
        "lower_bound": float(result.lower_bound),
    }


if __name__ == "__main__":
    answer(main)
