"""Tune bestk and its beam search on one trajectory: python bestk_run.py DATA.npz ANSWER.json."""

import sys

import numpy as np

from benchmarks.dynamics import choosing
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


def by_ebic(data, done):
    """The models of bestk, chosen by EBIC of all rows."""
    return chosen_again(data, done["bestk"], choosing.ebic)


def by_rows_worth(data, done):
    """The models of bestk, chosen as bestk.sindy.discover does: by AICc of independent rows."""
    return chosen_again(data, done["bestk"], choosing.by_rows_worth)


def chosen_again(data, found, scores):
    """A loop over models that are there already."""
    loop = Loop(data)
    loop.started, loop.fits = loop.started - found.seconds, found.fits
    X, Y = data["X_valid"], data["Y_valid"]
    for equation in range(Y.shape[1]):
        cells = [cell for cell in found.solves if cell["equation"] == equation]
        coefs = np.zeros((len(cells), X.shape[1]))
        for coef, cell in zip(coefs, cells, strict=True):
            coef[cell["support"]] = cell["coef"]
        best = int(np.argmin(scores(coefs, X, Y[:, equation])))
        loop.coef[equation] = coefs[best]
        loop.choice[equation] = {name: cells[best][name] for name in ("k", "alpha")}
    return loop


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
    methods = {
        "bestk": proven,
        "bestk, EBIC": by_ebic,
        "bestk, rows worth": by_rows_worth,
        "beam search": beam_search,
    }
    run(methods, *sys.argv[1:])
