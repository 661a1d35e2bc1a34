"""el0ps: min 1/2 ||y - X b||^2 + l0' ||b||_0 + beta ||b||^2, by its branch and bound.

With l0' = l0 / 2 and beta = alpha / 2 this is half of f(b) + l0 ||b||_0, where f is the objective
of the question. A lower bound L of the half bounds our problem, too: if b has at most k nonzeros,
f(b) >= f(b) + l0 ||b||_0 - l0 k >= 2 L - l0 k.

- The pair is Leastsquares with L2norm. With the option ``M`` it is BigmL2norm, far faster where
  alpha is small, or Bigm where it is zero, and the claim is conditional on |b| <= M; ``notes`` tell
  the M (null: none).
- ``l0`` is the price of a feature in units of f, see benchmarks.harness.prices. ``start`` is the
  first incumbent as well as the point from which the root is solved, so it prunes at once.
- The tolerance is exact: el0ps hands its search to pybnb, which is called here as el0ps calls it,
  but with a scale of our own, and without MPI. For an incumbent with k features and P =
  (f + l0 k) / 2, the question asks for P - L <= gap ((y'y + l0 k) / 2 - P).
- el0ps takes the dual value of a relaxation with integral solution for its objective, so the true
  one is greater by up to the precision of relaxations. That is set to gap / 10 relative to P (its
  default is 1e-4), and the search aims at 0.9 gap, which makes up for it if the model explains half
  of y'y. The answer is refitted on the support, without the box; the objective is the true one.
- By default (``triangle``) X is replaced by p + 1 rows that give the same f, which el0ps itself
  does not do: the more rows, the more it helps. One thread, but for the triangle. The time limit is
  checked between nodes; more than k features at the price are an error.
"""

import time
from types import SimpleNamespace

import numpy as np
import pybnb
from el0ps.datafit import Leastsquares
from el0ps.penalty import Bigm, BigmL2norm, L2norm
from el0ps.solver.bnb import BoundSolver, ProblemWrapper

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit
from benchmarks.harness.prices import forward_penalty, triangle


def solve(X, y, question):
    begin = time.perf_counter()
    k, alpha, options = question.k, question.alpha, question.options
    if options.get("triangle", True):
        X, y = triangle(X, y)
    l0 = options["l0"] if "l0" in options else forward_penalty(X, y, k, alpha)
    M = options.get("M")
    total = (y @ y + l0 * k) / 2.0
    # Looked at before anything is compiled, or the tiny problem would leave its search uncompiled.
    time_left = max(question.time_limit - (time.perf_counter() - begin), 0.0)

    if M is None:
        penalty = L2norm(alpha / 2.0)
    else:
        penalty = BigmL2norm(float(M), alpha / 2.0) if alpha > 0.0 else Bigm(float(M))
    start, incumbent = None, None
    if "start" in options:
        start, f = refit(X, y, np.flatnonzero(options["start"]), alpha)
    problem = ProblemWrapper(
        Leastsquares(np.ascontiguousarray(y)),
        penalty,
        X,
        l0 / 2.0,
        start,
        BoundSolver(relative_tol=question.gap / 10.0),
    )
    if start is not None:
        incumbent = pybnb.Node()
        incumbent.objective = (f + l0 * np.count_nonzero(start)) / 2.0
        incumbent.state = SimpleNamespace(x_upper=start)
        problem.tree_state.best_upper_bound = incumbent.objective
    found = pybnb.Solver(comm=None).solve(
        problem,
        best_node=incumbent,
        relative_gap=0.9 * question.gap,
        scale_function=lambda bound, objective: max(total - objective, 1e-300),
        time_limit=time_left,
        log=None,
    )
    if found.best_node is None:
        raise TimeoutError("no time was left for el0ps to look at the root")
    support = np.flatnonzero(found.best_node.state.x_upper)
    if len(support) > k:
        raise ValueError(f"at the price {l0:.6g} el0ps chose {len(support)} features, not {k}")
    coef, f = refit(X, y, support, alpha)
    return Answer(
        coef=coef,
        objective=f,
        lower_bound=max(2.0 * found.bound - l0 * k, 0.0),
        nodes=found.nodes,
        notes={"M": M, "l0": l0, "stopped by": found.termination_condition, "size": len(support)},
    )


if __name__ == "__main__":
    run(solve, "el0ps", "pybnb", "numba")
