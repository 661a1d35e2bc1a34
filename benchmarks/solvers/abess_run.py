"""abess: adaptive best-subset selection by splicing, for exactly k features; no bound.

    min ||y - X b||^2 + alpha ||b||^2   over a support of size k that is improved by exchanges

abess adds alpha to the diagonal of X'X, but of columns that it first scales to norm sqrt(n). That
scaling is off (``normal`` puts it on), so that its penalty is ours and its coefficients are the
ridge fit on its support. With ``refit`` it chooses features without the penalty, which enters
afterwards: on real tables a penalty of 1 spoils its choice. There is no time limit to give; it
takes seconds. Its threads serve cross-validation, of which there is none here.
"""

import numpy as np
from abess.linear import LinearRegression

from benchmarks.harness.answering import Answer, run
from benchmarks.harness.fitting import refit


def solve(X, y, question):
    is_refitted = question.options.get("refit", False)
    model = LinearRegression(
        support_size=question.k,
        alpha=0.0 if is_refitted else question.alpha,
        fit_intercept=False,
        thread=question.threads,
    )
    coef = np.ravel(model.fit(X, y, is_normal=question.options.get("normal", False)).coef_)
    if is_refitted:
        coef, _ = refit(X, y, np.flatnonzero(coef), question.alpha)
    residual = y - X @ coef
    return Answer(coef=coef, objective=residual @ residual + question.alpha * coef @ coef)


if __name__ == "__main__":
    run(solve, "abess")
