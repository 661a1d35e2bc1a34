"""The data of the lists, by name: tables with interactions, a library of terms, synthetic data."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from bestk.datasets import make_dynamics, make_synthetic

from ..harness.paper import ALPHA, K, Shape
from ..tables.preparing import prepared


class Problem(NamedTuple):
    """What is asked of a list, up to the number of features and the tolerance."""

    X: np.ndarray
    y: np.ndarray
    alpha: float
    fit_intercept: bool

    def centred(self) -> tuple[np.ndarray, np.ndarray]:
        """X and y from which an intercept is taken out."""
        if not self.fit_intercept:
            return self.X, self.y
        return self.X - self.X.mean(axis=0), self.y - self.y.mean()


def problem(name: str) -> Problem:
    """Such as "diabetes 2" (a table and a degree), "lorenz 0" (an equation) or "150, 60, 0.9"."""
    if "," in name:
        n, p, rho = name.split(",")
        return synthetic((int(n), int(p), float(rho)))
    word, number = name.split()
    return lorenz(int(number)) if word == "lorenz" else interactions(word, int(number))


def interactions(table: str, degree: int) -> Problem:
    """All products of the columns as they are, standardised; repetitions stay."""
    from sklearn import datasets
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    X, y = getattr(datasets, f"load_{table}")(return_X_y=True)
    X = PolynomialFeatures(degree, include_bias=False).fit_transform(X)
    return Problem(StandardScaler().fit_transform(X), y.astype(float), 1.0, True)


def lorenz(equation: int) -> Problem:
    """One equation in 56 terms, as in the core benchmarks."""
    X, derivatives, _, _ = make_dynamics("lorenz", 8.0)
    return Problem(X, np.ascontiguousarray(derivatives[:, equation]), ALPHA, False)


def synthetic(shape: Shape) -> Problem:
    n, p, rho = shape
    X, y, _ = make_synthetic(n, p, min(K, p), rho=rho)
    return Problem(X, y, ALPHA, False)


# What leaps takes: no ridge, an intercept, and no column twice.


def unpenalised(name: str) -> Problem:
    """Such as "diabetes 2, first 30" or "1000, 30, 0.9"."""
    load = partial(Problem, alpha=0.0, fit_intercept=True)
    if not name[0].isalpha():
        data = problem(name)
        return load(data.X, data.y)
    title, _, first = name.partition(", first ")
    table, degree = title.rsplit(" ", 1)
    X, y, _ = prepared(table, int(degree))
    return load(np.ascontiguousarray(X[:, : int(first) if first else None]), y)
