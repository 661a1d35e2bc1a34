"""abess: adaptive best-subset selection by splicing, for exactly k features; no bound.

    min ||y - X b||^2 + alpha ||b||^2   over a support of size k that is improved by exchanges

abess adds alpha to the diagonal of X'X, but of columns that it first scales to norm sqrt(n). That
scaling is off (``normal`` puts it on), so that its penalty is ours and its coefficients are the
ridge fit on its support. On real tables a penalty of 1 may spoil its choice of features: with
``twice`` it chooses without the penalty as well, which then enters by a refit, and the better
model counts. There is no time limit to give; it takes seconds. Its threads serve cross-validation,
of which there is none here.
"""

import numpy as np
from abess.linear import LinearRegression

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit


def solve(X, y, question):
    models = [answer(X, y, question, choose(X, y, question, question.alpha))]
    if question.options.get("twice", False) and question.alpha > 0.0:
        support = np.flatnonzero(choose(X, y, question, 0.0))
        models.append(answer(X, y, question, refit(X, y, support, question.alpha)[0]))
    return min(models, key=lambda model: model.objective)


def choose(X, y, question, alpha):
    """The coefficients of abess with a penalty that may not be that of the question."""
    model = LinearRegression(
        support_size=question.k, alpha=alpha, fit_intercept=False, thread=question.threads
    )
    return np.ravel(model.fit(X, y, is_normal=question.options.get("normal", False)).coef_)


def answer(X, y, question, coef):
    residual = y - X @ coef
    return Answer(coef=coef, objective=residual @ residual + question.alpha * coef @ coef)


if __name__ == "__main__":
    run(solve, "abess")
