"""SCIP on one mixed-integer formulation, named by the option ``formulation``.

min b'Gb - 2c'b + alpha b'b with G = X'X, c = X'y, z binary, sum z <= k, and b_j = 0 where z_j = 0:

    sos1               (1 - z_j, b_j) is SOS1: not both nonzero
    bigM M             |b_j| <= M z_j, M one of 50, 20, 5
    perspective        alpha sum s_j instead of alpha b'b, with b_j^2 <= s_j z_j
    eigen-perspective  G - m I in the quadratic and (alpha + m) sum s_j, m the least eigenvalue of G
                       (the default: the only one that SCIP is quick at)

- SCIP meets the quadratic b'Qb - 2c'b as t - r'r with t >= u'u and u = Rb - r, where R'R = Q,
  R'r = c and R is triangular. It is the same function, but its first linear relaxation is bounded.
- SCIP's gap is (objective - bound) / min(|objective|, |bound|). As the objective leaves out y'y,
  both are negative and the divisor is |objective|: it is the paper's gap.
- SCIP's tolerances are absolute (1e-6), so the objective is scaled to make y'y = 10^4.
- Three choices were made by trial, mostly on the synthetic n = 1000, p = 60, rho = 0.5: R is
  triangular; the general-purpose cutting planes are off (those of the quadratic and perspective
  constraints stay); presolving has one round (sos1 with a start and p = 100 spent all its 10 s
  there). No choice was best for every formulation. All other parameters are SCIP's defaults.
- The coefficients are refitted on the support, and the objective is theirs. SCIP's own objective
  may be too low (b_j^2 <= s_j z_j to 1e-6 lets |b_j| = 1e-3 pass where z_j = 0), and its bound with
  it, which is then valid but loose; ``claimed_gap`` is by SCIP's own objective.
- With big-M the bound is that of the problem with the box |b_j| <= M, and of no other.
- SCIP uses one thread whatever is asked. ``start`` gives all variables a value to begin from.
"""

import time

import numpy as np
from pyscipopt import Model, quicksum

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit

FORMULATIONS = ("sos1", "bigM 50", "bigM 20", "bigM 5", "perspective", "eigen-perspective")


def solve(X, y, question):
    deadline = time.perf_counter() + question.time_limit
    formulation = question.options.get("formulation", "eigen-perspective")
    if formulation not in FORMULATIONS:
        raise ValueError(f"no such formulation: {formulation}")
    G, c, yy = X.T @ X, X.T @ y, y @ y
    scale = 1e4 / yy
    model = Model()
    model.hideOutput()
    z = build(model, formulation, scale * G, scale * c, scale * question.alpha, question, deadline)
    for name in model.getParams():
        if name.startswith("separating/") and name.endswith("/freq"):
            model.setParam(name, -1)
    model.setParam("presolving/maxrounds", 1)
    model.setParam("limits/gap", question.gap)
    model.setParam("limits/time", max(deadline - time.perf_counter(), 0.0))
    model.optimize()
    if model.getNSols() == 0:
        raise RuntimeError(f"{formulation}: no solution, SCIP's status is {model.getStatus()}")
    best, bound = model.getBestSol(), model.getDualbound()
    support = [j for j in range(len(c)) if best[z[j]] > 0.5]
    coef, objective = refit(X, y, support, question.alpha)
    return Answer(
        coef=coef,
        objective=objective,
        lower_bound=None if model.isInfinity(-bound) else bound / scale + yy,
        nodes=model.getNTotalNodes(),
        notes={
            "formulation": formulation,
            "status": model.getStatus(),
            "claimed_gap": None if model.isInfinity(model.getGap()) else model.getGap(),
            "claimed_objective": float(model.getObjVal() / scale + yy),
        },
    )


def build(model, formulation, G, c, alpha, question, deadline):
    """Fill the model; returns z."""
    p = len(c)
    M = float(formulation.split()[1]) if "bigM" in formulation else None
    b = [model.addVar(lb=None if M is None else -M, ub=M) for _ in c]
    z = [model.addVar(vtype="B") for _ in c]
    model.addCons(quicksum(z) <= question.k)
    s, off, shift = [], [], 0.0
    if formulation == "sos1":
        off = [model.addVar(ub=1.0) for _ in c]
        for j in range(p):
            model.addCons(off[j] == 1.0 - z[j])
            model.addConsSOS1([b[j], off[j]])
    elif "bigM" in formulation:
        for j in range(p):
            model.addCons(b[j] <= M * z[j])
            model.addCons(b[j] >= -M * z[j])
    else:
        s = [model.addVar() for _ in c]
        for j in range(p):
            model.addCons(b[j] * b[j] <= s[j] * z[j])
        if formulation == "eigen-perspective":
            # A little less than the least eigenvalue: R'r = c needs a definite matrix.
            shift = max(np.linalg.eigvalsh(G)[0] * (1.0 - 1e-3), 0.0)

    R, r = triangular(G + (-shift if s else alpha) * np.eye(p), c)
    u = [model.addVar(lb=None) for _ in r]
    t = model.addVar()
    for i, row in enumerate(R.tolist()):
        model.addCons(quicksum(row[j] * b[j] for j in range(i, p)) - u[i] == float(r[i]))
        if time.perf_counter() > deadline:
            raise TimeoutError(f"p = {p}: the time limit passed while the model was built")
    model.addCons(quicksum(v * v for v in u) <= t)
    model.setObjective(t + (alpha + shift) * quicksum(s) - float(r @ r))

    if "start" in question.options:
        start = np.array(question.options["start"])
        rest = R @ start - r
        values = [*start, *(start != 0.0), *start[: len(s)] ** 2, *(start[: len(off)] == 0.0)]
        values += [*rest, rest @ rest]
        solution = model.createSol()
        for variable, value in zip([*b, *z, *s, *off, *u, t], values, strict=True):
            model.setSolVal(solution, variable, float(value))
        model.addSol(solution)
    return z


def triangular(Q, c):
    """R, upper triangular, and r with R'R = Q and R'r = c; Q may lack rank."""
    values, vectors = np.linalg.eigh(Q)
    kept = values > 1e-12 * values[-1]
    roots = np.sqrt(values[kept])
    turn, R = np.linalg.qr(roots[:, None] * vectors[:, kept].T)
    return R, turn.T @ (vectors[:, kept].T @ c / roots)


if __name__ == "__main__":
    run(solve, "pyscipopt")
