"""abess with ``group``: splicing over exactly k groups; no bound.

On columns that it does not scale its penalty is ours. It chooses with the penalty and without,
which then enters by a refit, and the better model counts: a penalty may spoil its choice.
"""

import numpy as np
from abess.linear import LinearRegression

from benchmarks.structure.peers.asking import Model, refit, run


def solve(asked):
    X, y, alpha = asked.matrix, asked.target, asked.alpha
    coefs = [refit(asked, chosen(asked, penalty)) for penalty in {alpha, 0.0}]

    def value(b):
        return np.sum((y - X @ b) ** 2) + alpha * b @ b

    return Model(coef=min(coefs, key=value))


def chosen(asked, alpha):
    """The groups that abess takes with a penalty that may not be ours."""
    model = LinearRegression(
        support_size=asked.k,
        group=asked.groups,
        alpha=alpha,
        fit_intercept=False,
        thread=asked.threads,
    )
    model.fit(asked.matrix, asked.target, is_normal=False)
    return np.unique(asked.groups[np.flatnonzero(np.ravel(model.coef_))])


if __name__ == "__main__":
    run(solve, "abess")
