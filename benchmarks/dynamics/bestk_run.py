"""Tune bestk and its beam search on one trajectory: python bestk_run.py DATA.npz ANSWER.json."""

import sys

from benchmarks.dynamics.tuning import Loop, run
from benchmarks.harness.process import claim
from bestk import Advanced, Problem
from bestk.datasets import make_dynamics


def proven(data, done):
    """The best model of every size and ridge penalty, with a proof."""
    return tune(data, gap_tol=0.0, time_limit=float(data["solve_limit"]))


def beam_search(data, done):
    """The same grid from the warm start alone."""
    return tune(data, node_limit=0, advanced=Advanced(beam_width=50))


def tune(data, **options):
    X, Y, threads = data["X"], data["Y"], int(data["threads"])
    loop = Loop(data)
    first = Problem.from_data(X, Y[:, 0], n_threads=threads)
    for equation in range(Y.shape[1]):
        problem = first.with_target(Y[:, equation]) if equation else first
        grid = problem.solve_grid(data["ks"], data["alphas"], n_threads=threads, **options)
        for alpha, path in grid.items():
            for k, result in path.items():
                loop.fitted()
                loop.offer_equation(equation, result.coef, {"k": k, "alpha": alpha})
                cell = {"equation": equation, "k": k, "alpha": alpha}
                claims_optimal = result.status.name == "OPTIMAL"
                loop.solves.append(claim(result) | cell | {"claims_optimal": claims_optimal})
    return loop


def warm_up():
    """Compile or load the kernels."""
    tiny = make_dynamics("lorenz", 1.0)
    Problem.from_data(tiny.X, tiny.derivatives[:, 0]).solve_grid(range(1, 6), [1e-3], gap_tol=0.0)


if __name__ == "__main__":
    warm_up()
    run({"bestk": proven, "beam search": beam_search}, *sys.argv[1:])
