"""Small things that several solver files need; only NumPy is imported, they run anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def refit(
    X: np.ndarray, y: np.ndarray, support: Sequence[int] | np.ndarray, alpha: float
) -> tuple[np.ndarray, float]:
    """The best coefficients on ``support``, one per feature of X, and their f."""
    A = X[:, support]
    b = np.linalg.solve(A.T @ A + alpha * np.eye(A.shape[1]), A.T @ y)
    coef = np.zeros(X.shape[1])
    coef[support] = b
    residual = y - A @ b
    return coef, float(residual @ residual + alpha * (b @ b))


def unit_columns(X: np.ndarray) -> np.ndarray:
    """X with columns of norm 1, in Fortran order."""
    norm = np.sqrt(np.einsum("ij,ij->j", X, X))
    norm[norm == 0.0] = 1.0
    unit = np.empty(X.shape, order="F")
    for start in range(0, len(X), 256):  # by blocks: a transposition at once is slow
        unit[start : start + 256] = X[start : start + 256] / norm
    return unit
