"""The n best supports of k features, and of 1..k: python best_run.py DATA.npz ANSWER.json."""

import numpy as np

import bestk
from benchmarks.harness.process import answer, timed


def main(data_file):
    with np.load(data_file) as data:
        X, y = data["X"], data["y"]
        k, count, threads = int(data["k"]), int(data["count"]), int(data["threads"])
        options = {"alpha": float(data["alpha"]), "fit_intercept": bool(data["fit_intercept"])}
    options |= {"n_best": count, "n_threads": threads}

    def each():
        return [bestk.near_optimal(X, y, size, **options) for size in range(1, k + 1)]

    each()
    all_seconds, lists = timed(each)
    seconds, _ = timed(lambda: bestk.near_optimal(X, y, k, **options))
    return {
        "seconds": seconds,
        "all_seconds": all_seconds,
        "supports": [[model.support.tolist() for model in found] for found in lists],
        "complete": all(found.complete for found in lists),
    }


if __name__ == "__main__":
    answer(main)
