"""From "at most k features" to a price per feature, for solvers that know nothing but prices.

With f(b) = ||y - X b||^2 + alpha ||b||^2, they solve min f(b) + l0 ||b||_0. Only NumPy is imported
here: solver files use this module in their own environments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def forward_penalty(
    X: np.ndarray, y: np.ndarray, k: int, alpha: float, support: Sequence[int] | None = None
) -> float:
    """A price l0 at which about k features are worth having.

    It is the geometric mean of two changes of f at a model with k features: what the best further
    feature gains, and what the least important of the k loses when it goes. The model is
    ``support`` (the better, the safer the price), or what forward selection finds.
    """
    chosen, gains = forward_selection(X, y, k + 1, alpha, support)
    A = X[:, chosen[:k]]
    inverse = np.linalg.inv(A.T @ A + alpha * np.eye(k))
    losses = (inverse @ (A.T @ y)) ** 2 / np.diag(inverse)
    return float(np.sqrt(losses.min() * gains[k]))


def forward_selection(
    X: np.ndarray,
    y: np.ndarray,
    size: int,
    alpha: float,
    support: Sequence[int] | None = None,
) -> tuple[list[int], list[float]]:
    """Take in what lowers f most, again and again, after the features of ``support``.

    Returns the features and by how much each lowered f. Ridge is least squares with the rows
    sqrt(alpha) I below X and zeros below y; each step makes these columns orthogonal to the feature
    taken in, in O(np) and with neither a Gram matrix nor a second X.
    """
    n, p = X.shape
    root = np.sqrt(alpha)
    upper, lower, weights = np.empty((n, size)), np.empty((p, size)), np.empty((p, size))
    squares = np.einsum("ij,ij->j", X, X) + alpha
    products = X.T @ y
    chosen: list[int] = []
    gains: list[float] = []
    first = list(support) if support is not None else []
    for step in range(size):
        worth = products**2 / np.maximum(squares, np.finfo(float).tiny)
        worth[chosen] = -1.0
        j = int(first[step] if step < len(first) else np.argmax(worth))
        length = np.sqrt(squares[j])
        upper[:, step] = (X[:, j] - upper[:, :step] @ weights[j, :step]) / length
        lower[:, step] = -lower[:, :step] @ weights[j, :step] / length
        lower[j, step] += root / length
        weights[:, step] = X.T @ upper[:, step] + root * lower[:, step]
        products -= weights[:, step] * (products[j] / length)
        squares -= weights[:, step] ** 2
        chosen.append(j)
        gains.append(float(worth[j]))
    return chosen, gains


def triangle(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p + 1 rows in place of n > p + 1, with the same ||y - X b|| for all b.

    Cholesky's R of [X y]'[X y] = R'R serves, as ||y - X b||^2 = ||R (-b, 1)||^2; where columns
    depend on each other so does that of QR, which takes longer.
    """
    n, p = X.shape
    if n <= p + 1:
        return X, y
    gram = np.empty((p + 1, p + 1))
    gram[:p, :p] = X.T @ X
    gram[p, :p] = gram[:p, p] = X.T @ y
    gram[p, p] = y @ y
    try:
        R = np.linalg.cholesky(gram).T
    except np.linalg.LinAlgError:
        R = np.linalg.qr(np.column_stack([X, y]), mode="r")
    return R[:, :p], R[:, p]
