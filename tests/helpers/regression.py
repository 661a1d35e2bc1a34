"""A plain regression problem, whole and in batches."""

import numpy as np


def data(seed=0, n=40, p=8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    y = X[:, 0] - 2.0 * X[:, 3] + 0.5 * X[:, 5] + rng.standard_normal(n)
    return X, y


def batches(X, y, size):
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]
