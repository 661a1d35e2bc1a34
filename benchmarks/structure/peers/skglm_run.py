"""The group lasso of skglm: down its path until more than k groups enter, then a refit; no bound.

Groups are penalised by the root of their number of columns, as usual. The path has `STEPS`
penalties, evenly spaced in logarithms; the model before it grows beyond k groups counts.
"""

import warnings

import numpy as np
from skglm import GroupLasso

from benchmarks.structure.peers.asking import Model, refit, run

STEPS, LEAST = 60, 1e-3


def solve(asked):
    X, y, groups = np.asfortranarray(asked.matrix), asked.target, asked.groups
    labels = np.unique(groups)
    members = [np.flatnonzero(groups == g).tolist() for g in labels]
    weights = np.sqrt([len(m) for m in members])
    moments = X.T @ y / len(y)
    top = max(
        np.linalg.norm(moments[m]) / weight for m, weight in zip(members, weights, strict=True)
    )
    found = np.zeros(0, dtype=int)
    lasso = GroupLasso(members, weights=weights, fit_intercept=False, warm_start=True, tol=1e-5)
    for alpha in top * np.geomspace(1.0, LEAST, STEPS):
        lasso.alpha = float(alpha)
        coef = np.ravel(lasso.fit(X, y).coef_)
        active = np.array([g for g, m in zip(labels, members, strict=True) if coef[m].any()])
        if len(active) > asked.k:
            break
        found = active
    return Model(coef=refit(asked, found))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of convergence: the refit is exact
    run(solve, "skglm")
