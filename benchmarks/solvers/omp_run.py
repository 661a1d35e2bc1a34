"""Orthogonal matching pursuit (scikit-learn) to k features, refitted with the ridge; no bound.

Each step adds the feature most correlated with the residual and fits again. scikit-learn takes for
granted that columns have unit norm, so they are scaled: the one copy of X that is made. Without a
Gram matrix a step costs one product X'r, and k of them are far cheaper than X'X. It ends early
where features are linearly dependent. No time limit is needed, and none can be given.
"""

import warnings

import numpy as np
from sklearn.linear_model import orthogonal_mp

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit, unit_columns


def solve(X, y, question):
    # It ends at a fixed small correlation, which must not depend on the units of y.
    target = y * (len(y) / np.linalg.norm(y))
    k = min(question.k, X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an early end: the support is smaller
        found = orthogonal_mp(unit_columns(X), target, n_nonzero_coefs=k, copy_X=False)
    coef, objective = refit(X, y, np.flatnonzero(found), question.alpha)
    return Answer(coef=coef, objective=objective)


if __name__ == "__main__":
    run(solve, "scikit-learn")
