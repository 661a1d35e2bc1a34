"""bestk's bound at the root alone, by one method, from the model of a warm start.

Options: ``method`` is descent, admm, fast or subgradient; ``iterations`` of the latter ones;
``closeness`` of descent, relative to what separates bound and model; ``factor`` scales what ADMM
takes for the paper's 2 / rho. ``M`` is a box |b| <= M, ``start`` the warm start. ``notes`` tell the
seconds of the method and of judging its dual vector, and of nothing else: data, products and the
first compilation are not in them.
"""

import time

import numpy as np

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit
from benchmarks.harness.prices import forward_selection
from bestk import Problem
from bestk.base.threads import Workers, blas_threads
from bestk.base.tuning import tuned
from bestk.bounds.methods import bound_nodes, make_method
from bestk.bounds.node_batch import NodeBatch
from bestk.bounds.split import first_split
from bestk.form.presolve import Presolved


def solve(X, y, question):
    k, options = question.k, question.options
    support = (
        np.flatnonzero(options["start"])
        if "start" in options
        else forward_selection(X, y, k, question.alpha)[0]
    )
    coef, objective = refit(X, y, support, question.alpha)
    M = options.get("M")
    bounds = None if M is None else (-M, M)
    problem = Problem.from_data(X, y, alpha=question.alpha, bounds=bounds)
    presolved = Presolved.of(problem)
    with Workers(question.threads) as workers, blas_threads(question.threads):
        bound_root(presolved, k, objective, options | {"iterations": 1}, workers)
        start = time.perf_counter()
        bound = bound_root(presolved, k, objective, options, workers)
        seconds = time.perf_counter() - start
    return Answer(
        coef=coef,
        objective=objective,
        lower_bound=max(bound, 0.0),
        nodes=1,
        notes={"bound seconds": seconds},
    )


def bound_root(presolved, k, objective, options, workers):
    """What one method proves about all models with at most k features, in units of f."""
    form, yy = presolved.form, presolved.problem.yy
    split = first_split(form)
    batch = roots(1, form.p)
    with tuned(**constants_of(options)):
        method = make_method(options["method"], form, split, workers)
        if "factor" in options:
            method.twice *= options["factor"]
        bound_nodes(method, form, split, batch, k, objective / yy, False, workers)
    return yy * float(batch.bounds[0])


def constants_of(options):
    """The tuning constants that the options stand for."""
    constants = {}
    if "iterations" in options:
        constants["admm_iterations"] = options["iterations"]
        constants["subgradient_iterations"] = options["iterations"]
    if "closeness" in options:
        constants |= {"closeness": options["closeness"], "sweeps": 100_000}
    return constants


def roots(n, p):
    """A batch of nodes at which nothing is decided, all the same."""
    return NodeBatch.of(np.zeros((n, p), dtype=np.int8), np.zeros((n, p)), np.zeros(n))


if __name__ == "__main__":
    run(solve, "bestk", "scipy", "numba")
