"""What a node costs beside a matrix product: node_run.py N P RHO K ALPHA GAP LIMIT THREADS ANSWER.

Nodes are those of one run of bestk, timed batch by batch; an iteration of the paper's ADMM is timed
on a batch of the same form. Products are those that a method on dense vectors cannot avoid: A @ g
for one node, and A @ G for a batch.
"""

import time

import numpy as np

from benchmarks.harness.process import answer, solve_to
from benchmarks.solvers.root_run import roots
from bestk.base.threads import Workers, blas_threads
from bestk.base.tuning import tuned
from bestk.bounds.methods.admm import Admm
from bestk.datasets import make_synthetic
from bestk.search import bounder

BATCH = 32


def fastest(work, repeats=5):
    """Seconds of the fastest of some calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


class Stopwatch:
    """Stands in for the function that bounds a batch, and adds up what it takes."""

    def __init__(self):
        self.bound, self.seconds, self.nodes, self.nonzeros = bounder.bound_nodes, 0.0, 0, 0
        self.form = self.split = None

    def __call__(self, method, form, split, batch, *rest):
        start = time.perf_counter()
        self.bound(method, form, split, batch, *rest)
        self.seconds += time.perf_counter() - start
        self.nodes += len(batch.states)
        self.nonzeros += np.count_nonzero(batch.duals)
        self.form, self.split = form, split


def admm_seconds(form, split, k, threads):
    """Of one iteration on a batch, all nodes together."""
    with Workers(threads) as workers:
        method = Admm(form, split, workers)

        def run(iterations):
            with tuned(admm_iterations=iterations):
                method.search(roots(BATCH, form.p), k, np.inf)

        run(1)  # factorisations are made once for all nodes
        return (fastest(lambda: run(41), 3) - fastest(lambda: run(1), 3)) / 40


def main(n, p, rho, k, alpha, gap, limit, threads):
    X, y, _ = make_synthetic(n, p, k, rho=rho)

    def solve():
        return solve_to(gap, X, y, k=k, alpha=alpha, time_limit=limit, n_threads=threads)

    solve()
    watch = bounder.bound_nodes = Stopwatch()
    start = time.perf_counter()
    result = solve()
    seconds = time.perf_counter() - start
    A = watch.form.A
    G = np.random.default_rng(0).standard_normal((len(A), BATCH))
    with blas_threads(threads):
        product, products = fastest(lambda: A @ G[:, 0]), fastest(lambda: A @ G)
        admm = admm_seconds(watch.form, watch.split, k, threads)
    return {
        "seconds": seconds,
        "nodes": int(result.n_nodes),
        "bounded": watch.nodes,
        "order": len(A),
        "nonzeros": watch.nonzeros / max(watch.nodes, 1),
        "node_seconds": watch.seconds / max(watch.nodes, 1),
        "bounding_share": watch.seconds / seconds,
        "product_seconds": product,
        "products_seconds": products,
        "admm_seconds": admm,
    }


if __name__ == "__main__":
    answer(main)
