"""Gurobi on one mixed-integer formulation, named by the option ``formulation``.

min b'Gb - 2c'b + alpha b'b with G = X'X, c = X'y, z binary, sum z <= k, and b_j = 0 where z_j = 0:

    sos1               (1 - z_j, b_j) is SOS1: not both nonzero
    bigM M             |b_j| <= M z_j, M one of 50, 20, 5
    perspective        alpha sum s_j instead of alpha b'b, with b_j^2 <= s_j z_j
    eigen-perspective  G - m I in the quadratic and (alpha + m) sum s_j, m the least eigenvalue of G
                       (the default: the fastest in most trials with p <= 60)

- MIPGap is (objective - bound) / |objective|. As the objective leaves out y'y, it is the paper's.
- The quadratic comes from the Gram matrix: the size of the model is that of p, not of n.
- The built-in licence stops a model with a quadratic term at 200 variables: p <= 100 with b and z,
  p <= 66 with b, s and z.
- The coefficients are refitted on the support, and the objective is theirs. Gurobi's own objective
  may differ a little (integrality to 1e-5 lets M z_j leak); ``claimed_gap`` is by that one.
- With big-M the bound is that of the problem with the box |b_j| <= M, and of no other.
- ``start`` gives b, z and s to begin from. All other parameters are Gurobi's defaults.
"""

import time

import gurobipy as gp
import numpy as np
from gurobipy import GRB

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit

FORMULATIONS = ("sos1", "bigM 50", "bigM 20", "bigM 5", "perspective", "eigen-perspective")
VARIABLES = 200
QUIET = gp.Env(params={"OutputFlag": 0})


def solve(X, y, question):
    began = time.perf_counter()
    formulation = question.options.get("formulation", "eigen-perspective")
    if formulation not in FORMULATIONS:
        raise ValueError(f"no such formulation: {formulation}")
    p = X.shape[1]
    largest = VARIABLES // (3 if "perspective" in formulation else 2)
    if p > largest:
        raise ValueError(f"p = {p} is beyond the built-in licence ({formulation}: p <= {largest})")
    G, c, yy = X.T @ X, X.T @ y, y @ y
    with gp.Model(env=QUIET) as model:
        z = build(model, formulation, G, c, question)
        model.Params.MIPGap = question.gap
        model.Params.Threads = question.threads
        model.Params.TimeLimit = max(question.time_limit - (time.perf_counter() - began), 0.0)
        model.optimize()
        if model.SolCount == 0:
            raise RuntimeError(f"{formulation}: no solution, Gurobi's status is {model.Status}")
        support = np.flatnonzero(z.getValue() > 0.5)
        coef, objective = refit(X, y, support, question.alpha)
        return Answer(
            coef=coef,
            objective=objective,
            lower_bound=model.ObjBound + yy if model.ObjBound > -GRB.INFINITY else None,
            nodes=int(model.NodeCount),
            notes={
                "formulation": formulation,
                "status": int(model.Status),
                "claimed_gap": float(model.MIPGap),
                "claimed_objective": float(model.ObjVal + yy),
            },
        )


def build(model, formulation, G, c, question):
    """Fill the model; returns z."""
    p, alpha = len(c), question.alpha
    M = float(formulation.split()[1]) if "bigM" in formulation else GRB.INFINITY
    b = model.addMVar(p, lb=-M, ub=M)
    binary = model.addMVar(p, vtype=GRB.BINARY)
    # An SOS1 holds variables, not expressions: there the variable is 1 - z.
    z = 1.0 - binary if formulation == "sos1" else 1.0 * binary
    model.addConstr(z.sum() <= question.k)
    s, shift = None, 0.0
    if formulation == "sos1":
        for pair in zip(b.tolist(), binary.tolist(), strict=True):
            model.addSOS(GRB.SOS_TYPE1, pair)
    elif "bigM" in formulation:
        model.addConstr(b <= M * z)
        model.addConstr(b >= -M * z)
    else:
        s = model.addMVar(p)
        model.addConstr(b * b <= s * z)
        if formulation == "eigen-perspective":
            # A little less than the least eigenvalue: rounding must not make it nonconvex.
            shift = max(np.linalg.eigvalsh(G)[0] * (1.0 - 1e-6), 0.0)
    penalty = alpha * (b @ b) if s is None else (alpha + shift) * s.sum()
    model.setObjective(b @ (G - shift * np.eye(p)) @ b - 2.0 * c @ b + penalty)
    if "start" in question.options:
        start = np.array(question.options["start"])
        b.Start = start
        binary.Start = (start == 0.0) if formulation == "sos1" else (start != 0.0)
        if s is not None:
            s.Start = start**2
    return z


if __name__ == "__main__":
    run(solve, "gurobipy")
