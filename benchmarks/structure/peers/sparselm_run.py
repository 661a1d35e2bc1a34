"""sparse-lm: best subsets of groups under a strong hierarchy, by cvxpy and Gurobi, with a big M.

The penalty enters as rows of the data, as its own would take the model beyond the built-in licence.
M is twice the largest coefficient of our model: more than a user would know. The bound is that of
the problem in the box |b| <= M. Coefficients are refitted on the groups.
"""

import warnings

import numpy as np
from sparselm.model import BestSubsetSelection

from benchmarks.structure.peers.asking import Model, refit, run


def solve(asked):
    p = asked.matrix.shape[1]
    X = np.vstack([asked.matrix, np.sqrt(asked.alpha) * np.eye(p)])
    y = np.concatenate([asked.target, np.zeros(p)])
    model = BestSubsetSelection(
        groups=asked.groups,
        sparse_bound=asked.k,
        big_M=asked.box,
        hierarchy=[list(own) for own in asked.parents] or None,
        solver="GUROBI",
        solver_options={
            "MIPGap": asked.peer_gap,
            "TimeLimit": asked.limit,
            "Threads": asked.threads,
        },
    ).fit(X, y)
    gurobi = model.canonicals_.problem.solver_stats.extra_stats
    z = model.canonicals_.auxiliaries.z0.value
    chosen = np.unique(asked.groups)[z > 0.5]
    return Model(
        coef=refit(asked, chosen),
        lower_bound=gurobi.ObjBound + float(y @ y),
        nodes=int(gurobi.NodeCount),
        box=asked.box,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(solve, "sparse-lm", "cvxpy", "gurobipy")
