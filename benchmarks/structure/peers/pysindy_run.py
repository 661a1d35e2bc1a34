"""MIOSR of PySINDy with its constraints, on Gurobi's built-in licence; equations in one model.

It leaves MIPGap to Gurobi: it is set from outside, to reach the gap that is asked for. Its
coefficients count as they are, for a refit would have to know the constraints.
"""

import warnings

import gurobipy as gp
from pysindy.optimizers import MIOSR

from benchmarks.structure.peers.asking import Model, run


def solve(asked):
    gp.setParam("MIPGap", asked.peer_gap)
    gp.setParam("Threads", asked.threads)
    optimizer = MIOSR(
        target_sparsity=asked.k,
        alpha=asked.alpha,
        constraint_lhs=asked.lhs,
        constraint_rhs=asked.rhs,
        regression_timeout=asked.limit,
    )
    optimizer.fit(asked.X, asked.Y)
    model, yy = optimizer.model, float((asked.Y**2).sum())
    return Model(
        coef=optimizer.coef_.ravel(),
        objective=model.ObjVal + yy,
        lower_bound=model.ObjBound + yy,
        nodes=int(model.NodeCount),
        notes=f"status {model.Status}",
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    gp.setParam("OutputFlag", 0)
    run(solve, "pysindy", "gurobipy")
