"""Small standard forms, boxes, splits and nodes for compiled kernels."""

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.split import Split
from bestk.form.by_rows import MatrixByRows
from bestk.form.definiteness import uniform_charge


def uniform_split(A, error=0.0):
    """The largest proven t that is the same for all features."""
    return Split(t=np.full(len(A), uniform_charge(A, error)))


def is_by_rows(form):
    return isinstance(form.matrix, MatrixByRows)


def random_form(seed, p=8, rows=25):
    """(A, c) of unit columns and unit y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, p)) + 0.5 * rng.standard_normal((rows, 1))
    X /= np.linalg.norm(X, axis=0)
    y = X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(rows)
    y /= np.linalg.norm(y)
    A = X.T @ X
    A[np.diag_indices(p)] = 1.0
    return rng, A, X.T @ y


def boxes(rng, p, kind):
    """(lo, hi): none, a box, or signs."""
    if kind == "none":
        return np.full(p, -np.inf), np.full(p, np.inf)
    if kind == "box":
        return -0.3 * rng.random(p), 0.3 * rng.random(p)
    return np.where(rng.random(p) < 0.5, 0.0, -np.inf), np.full(p, np.inf)


def random_states(rng, rows, p):
    return rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), (rows, p), p=[0.7, 0.15, 0.15])
