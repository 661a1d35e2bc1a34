"""The matrix product alone: what every method that starts with X.T @ X spends on it."""

import numpy as np

from benchmarks.harness.answering import Answer, run


def solve(X, y, question):
    _ = X.T @ X, X.T @ y
    return Answer(coef=np.zeros(X.shape[1]), objective=y @ y)


if __name__ == "__main__":
    run(solve)
