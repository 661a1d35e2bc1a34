"""A path against its largest k: python path_run.py N P RHO K ALPHA LIMIT THREADS ANSWER.json."""

import json
import sys
import time

import numpy as np

import bestk
from bestk.datasets import make_synthetic


def timed(call):
    """(median seconds of three calls, or of one if it is long; the last answer)."""
    seconds = []
    while not seconds or (len(seconds) < 3 and seconds[-1] < 2.0):
        start = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), answer


def main(n, p, rho, k, alpha, limit, threads, answer_file):
    X, y, _ = make_synthetic(int(n), int(p), int(k), rho=float(rho))
    options = {"alpha": float(alpha), "time_limit": float(limit), "n_threads": int(threads)}
    warm = make_synthetic(4000, 120, 8, rho=0.9)
    bestk.solve_path(warm.X, warm.y, range(1, 9), **options)
    largest_seconds, _ = timed(lambda: bestk.solve(X, y, int(k), **options))
    path_seconds, path = timed(lambda: bestk.solve_path(X, y, range(1, int(k) + 1), **options))
    claims = [
        {
            "k": result.k,
            "seconds": result.seconds,
            "nodes": result.n_nodes,
            "support": result.support.tolist(),
            "coef": result.coef[result.support].tolist(),
            "objective": result.objective,
            "lower_bound": result.lower_bound,
            "gap": result.gap,
        }
        for result in path.values()
    ]
    answer = {"largest_seconds": largest_seconds, "path_seconds": path_seconds, "path": claims}
    with open(answer_file, "w") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
