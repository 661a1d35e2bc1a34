"""Lengths of columns, which are the units of an automatic box."""

import numpy as np


def lengths(X, y, *, alpha=0.0, weight=None, intercept=False):
    """(lengths of the columns with their ridge, length of y), as theory: form has them."""
    X, y = X.astype(float), y.astype(float)
    weight = np.ones(len(y)) if weight is None else weight
    if intercept:
        X = X - np.average(X, axis=0, weights=weight)
        y = y - np.average(y, weights=weight)
    return np.sqrt(weight @ X**2 + alpha), np.sqrt(weight @ y**2)
