"""A path against its largest k: python path_run.py N P RHO K ALPHA LIMIT THREADS ANSWER.json."""

import bestk
from benchmarks.harness.process import answer, claim, timed
from bestk.datasets import make_synthetic


def main(n, p, rho, k, alpha, limit, threads):
    X, y, _ = make_synthetic(n, p, k, rho=rho)
    options = {"alpha": alpha, "time_limit": limit, "n_threads": threads}
    warm = make_synthetic(4000, 120, 8, rho=0.9)
    bestk.solve_path(warm.X, warm.y, range(1, 9), **options)
    largest_seconds, _ = timed(lambda: bestk.solve(X, y, k, **options))
    path_seconds, path = timed(lambda: bestk.solve_path(X, y, range(1, k + 1), **options))
    claims = [claim(result) | {"gap": result.gap} for result in path.values()]
    return {"largest_seconds": largest_seconds, "path_seconds": path_seconds, "path": claims}


if __name__ == "__main__":
    answer(main)
