"""Tune the optimizers of PySINDy on one trajectory: python pysindy_run.py DATA.npz ANSWER.json.

Runs in an environment of its own, with gurobipy and its built-in licence for MIOSR.
"""

import sys
import warnings
from itertools import product

import gurobipy as gp
import numpy as np
from pysindy.optimizers import FROLS, MIOSR, SSR, STLSQ, EnsembleOptimizer

from benchmarks.dynamics.tuning import Loop, run

ENSEMBLE = 50


def stlsq(data, done):
    """Thresholds and ridge penalties, one model for all equations."""
    loop = Loop(data, pooled=True)
    grid = list(product(data["thresholds"].tolist(), data["alphas"].tolist()))
    # In random order, so that a loop that is cut has seen all of the range.
    for i in np.random.default_rng(0).permutation(len(grid)):
        if loop.has_time():
            threshold, alpha = grid[i]
            optimizer = STLSQ(threshold=threshold, alpha=alpha).fit(data["X"], data["Y"])
            loop.fitted()
            loop.offer(optimizer.coef_, {"threshold": threshold, "alpha": alpha})
    return loop


def ensemble(data, done):
    """Median of bootstrap fits, with the threshold and penalty that STLSQ has chosen."""
    tuned = done["STLSQ"]
    choice = tuned.choice[0]
    loop = Loop(data, pooled=True)
    loop.started -= tuned.seconds
    loop.fits, loop.skipped = tuned.fits, tuned.skipped
    np.random.seed(int(data["trial"]))  # noqa: NPY002  (PySINDy draws from the global generator)
    optimizer = EnsembleOptimizer(STLSQ(**choice), bagging=True, n_models=ENSEMBLE)
    optimizer.fit(data["X"], data["Y"])
    loop.fitted(ENSEMBLE)
    loop.offer(optimizer.coef_, choice)
    return loop


def ssr(data, done):
    """Every model on the way from all terms to one is a candidate, equation by equation."""
    steps = data["X"].shape[1] - 1
    return from_histories(data, lambda alpha: SSR(alpha=alpha, max_iter=steps, unbias=False))


def frols(data, done):
    """Forward selection: every model on the way up to the largest k is a candidate."""
    steps = int(data["ks"].max())
    return from_histories(data, lambda alpha: FROLS(alpha=alpha, max_iter=steps, unbias=False))


def from_histories(data, optimizer_for):
    loop = Loop(data)
    for alpha in data["alphas"].tolist():
        if loop.has_time():
            optimizer = optimizer_for(alpha)
            try:
                optimizer.fit(data["X"], data["Y"])
            except ValueError:  # linearly dependent terms
                loop.failed += 1
            loop.fitted()
            for step, coef in enumerate(optimizer.history_):
                loop.offer(coef, {"step": step, "alpha": alpha})
    return loop


def miosr(data, done):
    """The grid of bestk, each problem given to Gurobi as PySINDy writes it."""
    loop = Loop(data)
    X, Y = data["X"], data["Y"]
    # All sizes for one penalty before the next: a loop that is cut loses penalties, not sizes.
    cells = product(data["alphas"].tolist(), data["ks"].tolist(), range(Y.shape[1]))
    for alpha, k, equation in cells:
        if not loop.has_time():
            continue
        optimizer = MIOSR(
            group_sparsity=(k,),
            target_sparsity=None,
            alpha=alpha,
            regression_timeout=float(data["solve_limit"]),
        )
        y = Y[:, equation]
        try:
            optimizer.fit(X, y[:, None])
        except (gp.GurobiError, AttributeError):
            if optimizer.model is None or optimizer.model.Status != gp.GRB.TIME_LIMIT:
                raise
            loop.failed += 1  # no model within the limit
            continue
        finally:
            loop.fitted()
        coef = optimizer.coef_[0]
        loop.offer_equation(equation, coef, {"k": k, "alpha": alpha})
        support = np.flatnonzero(coef)
        loop.solves.append(
            {
                "equation": equation,
                "k": k,
                "alpha": alpha,
                "support": support.tolist(),
                "coef": coef[support].tolist(),
                "objective": optimizer.model.ObjVal + float(y @ y),
                "lower_bound": optimizer.model.ObjBound + float(y @ y),
                "seconds": optimizer.model.Runtime,
                "nodes": int(optimizer.model.NodeCount),
                "claims_optimal": optimizer.model.Status == gp.GRB.OPTIMAL,
            }
        )
    return loop


METHODS = {"STLSQ": stlsq, "E-STLSQ": ensemble, "SSR": ssr, "FROLS": frols, "MIOSR": miosr}


def warm_up():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    STLSQ().fit(X, X[:, :2])
    SSR().fit(X, X[:, :2] + rng.standard_normal((60, 2)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # thresholds that remove every term are part of the grid
    with np.load(sys.argv[1]) as file:
        gp.setParam("OutputFlag", 0)
        gp.setParam("Threads", int(file["threads"]))
    warm_up()
    run(METHODS, *sys.argv[1:])
