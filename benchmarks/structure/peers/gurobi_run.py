"""Gurobi with one binary per group: groups, hierarchies and constraints as linear rows.

    min b'Gb - 2c'b + alpha b'b     |b_j| <= M z_g for j in g, sum z <= k, G = X'X, c = X'y

M is twice the largest coefficient of our model, more than a user would know, and the bound is that
of the problem in the box |b| <= M. On these problems this was faster than perspective forms, whose
tolerances also spoilt bounds. MIPGap leaves out y'y, and is told such that the gap to the whole
objective is what is asked. The built-in licence stops at 200 variables. Coefficients are refitted
on the groups, unless there are constraints.
"""

import gurobipy as gp
import numpy as np
from gurobipy import GRB

from benchmarks.structure.peers.asking import Model, refit, run

VARIABLES = 200
QUIET = gp.Env(params={"OutputFlag": 0})


def solve(asked):
    X, y, M = asked.matrix, asked.target, asked.box
    p, (labels, group) = X.shape[1], np.unique(asked.groups, return_inverse=True)
    if p + len(labels) > VARIABLES:
        raise ValueError(f"{p + len(labels)} variables are beyond the built-in licence")
    G, c, yy = X.T @ X, X.T @ y, float(y @ y)
    with gp.Model(env=QUIET) as model:
        b, z = model.addMVar(p, lb=-M, ub=M), model.addMVar(len(labels), vtype=GRB.BINARY)
        model.addConstr(z.sum() <= asked.k)
        model.addConstr(b <= M * z[group])
        model.addConstr(b >= -M * z[group])
        for child, parents in enumerate(asked.parents):
            if asked.structure == "strong":
                for parent in parents:
                    model.addConstr(z[child] <= z[parent])
            elif parents:
                model.addConstr(z[child] <= z[list(parents)].sum())
        if len(asked.lhs):
            model.addConstr(asked.lhs @ b == asked.rhs)
        model.setObjective(b @ (G + asked.alpha * np.eye(p)) @ b - 2.0 * c @ b)
        model.Params.MIPGap, model.Params.Threads = asked.peer_gap, asked.threads
        model.Params.TimeLimit = asked.limit
        model.optimize()
        if model.SolCount == 0:
            raise RuntimeError(f"no solution, Gurobi's status is {model.Status}")
        chosen = z.X > 0.5
        coef = np.where(chosen[group], b.X, 0.0)
        return Model(
            coef=coef if len(asked.lhs) else refit(asked, labels[chosen]),
            lower_bound=model.ObjBound + yy if model.ObjBound > -GRB.INFINITY else None,
            nodes=int(model.NodeCount),
            box=M,
        )


if __name__ == "__main__":
    run(solve, "gurobipy")
