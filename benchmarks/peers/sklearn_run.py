"""Tune scikit-learn's lasso and OMP on one trajectory: python sklearn_run.py DATA.npz ANSWER.json.

Terms are brought to unit length first: neither method copes with powers of a state otherwise. The
coefficients of each support are refitted by least squares, as PySINDy does for its optimizers.
"""

import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path, orthogonal_mp

from benchmarks.dynamics.tuning import Loop, run

PENALTIES = 50
SWEEPS = 1000


def lasso(data, done):
    """A path of 50 penalties over five decades, down from the first that lets a term in."""

    def supports(X, y, gram):
        penalties = np.abs(X.T @ y).max() / len(y) * np.logspace(0, -5, PENALTIES)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            _, path, _ = lasso_path(X, y, alphas=penalties, precompute=gram, max_iter=SWEEPS)
        return path.T != 0, len(caught)

    return tune(data, supports)


def omp(data, done):
    """Orthogonal matching pursuit up to the largest k."""

    def supports(X, y, gram):
        path = orthogonal_mp(X, y, n_nonzero_coefs=int(data["ks"].max()), return_path=True)
        return path.reshape(X.shape[1], -1).T != 0, 0

    return tune(data, supports)


def tune(data, supports_of):
    loop = Loop(data)
    norms = np.linalg.norm(data["X"], axis=0)
    X = np.asfortranarray(data["X"] / norms)
    gram = X.T @ X
    for equation, y in enumerate(np.ascontiguousarray(data["Y"].T)):
        if not loop.has_time():
            continue
        supports, failed = supports_of(X, y, gram)
        loop.failed += failed
        for support in np.unique(supports, axis=0):
            coef = np.zeros(X.shape[1])
            coef[support] = np.linalg.lstsq(X[:, support], y, rcond=None)[0]
            loop.offer_equation(equation, coef / norms, {"terms": int(support.sum())})
        loop.fitted(len(supports))
    return loop


if __name__ == "__main__":
    run({"Lasso": lasso, "OMP": omp}, *sys.argv[1:])
