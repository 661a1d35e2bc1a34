"""The first model with k features on the lasso path (scikit-learn), refitted; no bound.

    min ||y - X b||^2 / 2 + t ||b||_1   for t from max |X'y| down, columns scaled to unit norm

The path is piecewise linear in t. scikit-learn follows it from knot to knot (least angles with the
lasso modification), so that the first model with k features is met exactly, without a grid of
penalties. Features may leave the path again: it is followed twice as far until a model has k
features. If it ends before, its largest model is taken; ``steps`` and ``size`` are in the notes.

Without a Gram matrix a step costs one product with X, and so few are far cheaper than X'X. The
scaled columns are the only copy of X. No time limit is needed, and none can be given.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit, unit_columns


def solve(X, y, question):
    k = steps = question.k
    while True:
        path = first_knots(X, y, steps)
        size = np.count_nonzero(path, axis=0)
        if size.max() >= k or path.shape[1] <= steps:
            break
        steps *= 2
    # argmax is the first of them; a tie of features can jump over k.
    support = np.flatnonzero(path[:, np.where(size <= k, size, -1).argmax()])
    coef, objective = refit(X, y, support, question.alpha)
    notes = {"steps": steps, "size": len(support)}
    return Answer(coef=coef, objective=objective, notes=notes)


def first_knots(X, y, steps):
    """Coefficients at the first knots of the path, one column each."""
    # The path ends at a fixed small t / n, which must not depend on the units of y.
    target = y * (len(y) / np.linalg.norm(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # collinear features are left out
        return lars_path(unit_columns(X), target, method="lasso", max_iter=steps, copy_X=False)[2]


if __name__ == "__main__":
    run(solve, "scikit-learn")
