"""A list, its verification and the best model alone: python list_run.py DATA.npz ANSWER.json.

All are measured in turn, after one warm-up of each; the medians count.
"""

import time
from statistics import median

import numpy as np

import bestk
from benchmarks.harness.process import answer

RUNS = 5
LONG = 10.0
"""Seconds after which no further run is begun."""


def main(data_file):
    with np.load(data_file) as data:
        X, y = data["X"], data["y"]
        k, within, threads = int(data["k"]), float(data["within"]), int(data["threads"])
        options = {"alpha": float(data["alpha"]), "fit_intercept": bool(data["fit_intercept"])}
    options["n_threads"] = threads
    calls = {
        "list": lambda: bestk.near_optimal(X, y, k, within=within, **options),
        "verify": lambda: results["list"].certificate.verify(X, y, n_threads=threads),
        "solve": lambda: bestk.solve(X, y, k, gap_tol=0.0, **options),
    }
    results = {}
    for name, call in calls.items():
        results[name] = call()
    seconds = {name: [] for name in calls}
    begun = time.perf_counter()
    while not seconds["solve"] or (
        len(seconds["solve"]) < RUNS and time.perf_counter() - begun < LONG
    ):
        for name, call in calls.items():
            start = time.perf_counter()
            results[name] = call()
            seconds[name].append(time.perf_counter() - start)
    found, verification = results["list"], results["verify"]
    return {
        "seconds": {name: median(some) for name, some in seconds.items()},
        "supports": [model.support.tolist() for model in found],
        "objectives": [model.objective for model in found],
        "threshold": found.threshold,
        "complete": found.complete,
        "nodes": found.n_nodes,
        "valid": verification.is_valid,
        "failures": list(verification.failures),
        "best": results["solve"].objective,
        "status": results["solve"].status.name,
    }


if __name__ == "__main__":
    answer(main)
