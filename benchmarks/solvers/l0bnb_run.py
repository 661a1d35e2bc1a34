"""l0bnb: min 1/2 ||y - X b||^2 + l0' ||b||_0 + l2' ||b||^2 with |b| <= M.

With l0' = l0 / 2 and l2' = alpha / 2 this is half of f(b) + l0 ||b||_0, where f is the objective of
the question. A lower bound L of the half bounds our problem, too: if b has at most k nonzeros,
f(b) >= f(b) + l0 ||b||_0 - l0 k >= 2 L - l0 k.

- Everything claimed is conditional on |b| <= M. Without the option ``M`` it is l0bnb's own rule,
  1.2 times the largest coefficient of the warm start; ``notes`` tell the M.
- ``l0`` is the price of a feature in units of f, see benchmarks.harness.prices; without ``start``,
  forward selection is the warm start. The answer is refitted on the support, without the box.
- Its gap is (P - L) / P, where P = (f + l0 k) / 2 at the incumbent. The question asks for
  2 (P - L) <= gap (y'y - f), so the tolerance is gap (y'y - f) / (f + l0 k) with the f of the warm
  start: exact if that is the optimum, otherwise a little too strict. Relaxations are solved to a
  quarter of it where l0bnb's own 1e-4 is coarser.
- It returns the gap, not the bound, so L = P (1 - gap). If no node is left although that gap is
  above the tolerance, the incumbent is proved, for l0bnb, and L = P. No claim is repaired, not even
  L > P. Its dual value leaves out the box where a feature is fixed in, so L may be too high.
- By default (``triangle``) X is replaced by p + 1 rows that give the same f, which l0bnb itself
  does not do: the more rows, the more it helps. The time limit is checked between nodes; more than
  k features at the price are an error.
"""

import time

import numpy as np
from l0bnb import BNBTree

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit
from benchmarks.harness.prices import forward_penalty, forward_selection, triangle


def solve(X, y, question):
    begin = time.perf_counter()
    k, alpha, options = question.k, question.alpha, question.options
    if options.get("triangle", True):
        X, y = triangle(X, y)
    # One memory order means one compilation, and the columns that l0bnb gathers are contiguous.
    X, y = np.asfortranarray(X), np.ascontiguousarray(y)
    support = (
        np.flatnonzero(options["start"])
        if "start" in options
        else forward_selection(X, y, k, alpha)[0]
    )
    start, f = refit(X, y, support, alpha)
    l0 = options["l0"] if "l0" in options else forward_penalty(X, y, k, alpha, support)
    M = float(options.get("M", 1.2 * np.abs(start).max()))
    tolerance = question.gap * (y @ y - f) / (f + l0 * k)

    tree = BNBTree(X, y, rel_tol=min(1e-4, tolerance / 4.0))
    found = tree.solve(
        l0 / 2.0,
        alpha / 2.0,
        M,
        gap_tol=tolerance,
        warm_start=start,
        time_limit=question.time_limit - (time.perf_counter() - begin),
    )
    support = np.flatnonzero(found.beta)
    if len(support) > k:
        raise ValueError(f"at the price {l0:.6g} l0bnb chose {len(support)} features, not {k}")
    nothing_left = tree.bfs_queue.empty() and tree.dfs_queue.empty()
    exhausted = bool(nothing_left and found.gap > tolerance)
    L = found.cost * (1.0 if exhausted else 1.0 - found.gap)
    coef, f = refit(X, y, support, alpha)
    return Answer(
        coef=coef,
        objective=f,
        # No bound yet is a gap of astronomical size; f >= 0 is known to anyone.
        lower_bound=max(2.0 * L - l0 * k, 0.0),
        nodes=tree.number_of_nodes,
        notes={"M": M, "l0": l0, "gap": found.gap, "exhausted": exhausted, "size": len(support)},
    )


if __name__ == "__main__":
    run(solve, "l0bnb", "numba", "scipy")
