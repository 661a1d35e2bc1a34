"""Solve and verify one instance: python verify_run.py DATA.npz ANSWER.json.

Both are measured in turn, after one warm-up of each; the median counts.
"""

import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

import bestk
from benchmarks.harness.process import answer
from bestk.datasets import make_synthetic


def measured(seconds, action, *arguments, **options):
    start = time.perf_counter()
    result = action(*arguments, **options)
    seconds.append(time.perf_counter() - start)
    return result


def main(data_file):
    with np.load(data_file) as data:
        X, y = data["X"], data["y"]
        k, threads = int(data["k"]), int(data["threads"])
        alpha, gap = float(data["alpha"]), float(data["gap"])
    options = {"alpha": alpha, "gap_tol": gap, "n_threads": threads}
    tiny = make_synthetic(60, 40, k=8, rho=0.9)
    for advanced in (bestk.Advanced(), bestk.Advanced(enumeration=False)):
        first = bestk.solve(tiny.X, tiny.y, k=6, **options, advanced=advanced)
        first.certificate.verify(tiny.X, tiny.y, n_threads=threads)
    solving, verifying = [], []
    while not solving or (len(solving) < 3 and solving[-1] < 5.0):
        result = measured(solving, bestk.solve, X, y, k, **options, time_limit=120.0)
        proof = result.certificate
        verification = measured(verifying, proof.verify, X, y, n_threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.npz"
        proof.save(path)
        size = path.stat().st_size
    return {
        "solve": median(solving),
        "verify": median(verifying),
        "valid": verification.is_valid,
        "failures": verification.failures,
        "nodes": verification.n_nodes,
        "supports": verification.n_supports,
        "claimed": result.lower_bound,
        "verified": verification.lower_bound,
        "status": result.status.name,
        "bytes": size,
    }


if __name__ == "__main__":
    answer(main)
