"""What models outside of a split's box cost at least (theory: ridge-profile).

For any g, f(b) >= 1 - g'A g - 2 (c - A g)'b, as A is positive semidefinite. At the best fit with
b_j at the edge v of the box, c - A g = -mu e_j: beyond the edge f is at least 1 - g'A g + 2 mu v.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from bestk.verification.numerics.cholesky import is_semidefinite
from bestk.verification.numerics.rounding import gamma

_STEPS = 30  # of a power iteration
_TRIES = 6


class Box(NamedTuple):
    lo: np.ndarray
    hi: np.ndarray


def value_outside(A, c, eps: float, k: int, inner: Box, outer: Box) -> float:
    """A lower bound on f for models of k features within `outer`, but not within `inner`.

    A and c are known up to `eps`. Raises ValueError where nothing can be said.
    """
    p = len(c)
    if p == 0 or ((inner.lo <= outer.lo).all() and (inner.hi >= outer.hi).all()):
        return np.inf
    # The unknown in the data, eps (1 + |b|_1)^2 <= 2 eps + 2 eps k |b|^2, is paid out of A.
    A = A.copy()
    A[np.diag_indices(p)] -= 2.02 * eps * k
    W = _inverse(A)
    least = _least_eigenvalue(A, W)
    ridge = W @ c
    for _ in range(2):  # an inverse alone leaves more than rounding
        ridge = ridge + W @ (c - A @ ridge)
    a, P = A @ ridge, A @ W
    rest = _norm(c - a) + np.sqrt(p) * gamma(p + 4) * (1.0 + np.abs(ridge).sum())
    P[np.diag_indices(p)] -= 1.0
    wrong = np.sqrt((P * P).sum(axis=0)) * (1.0 + gamma(p + 4))
    wrong += np.sqrt(p) * gamma(p + 4) * (1.0 + np.abs(W).sum(axis=0))
    # f(ridge + d) >= f(ridge) - 2 rest |d| + least |d|^2: no b with f(b) < 1 is longer than this.
    lost = gamma(2 * p + 16) * (1.0 + np.abs(ridge).sum()) ** 2
    above = max(1.0 - (1.0 - ridge @ c - np.abs(ridge).sum() * rest - lost), 0.0)
    longest = _norm(ridge) + 2.0 * rest / least + np.sqrt(above / least) * (1.0 + gamma(8))

    P[np.diag_indices(p)] += 1.0
    cross, square = W.T @ a, (W * P).sum(axis=0)
    value = 1.0
    for sign, edge, end in ((1.0, inner.hi, outer.hi), (-1.0, -inner.lo, -outer.lo)):
        narrower = edge < end
        mu = np.maximum(edge - sign * ridge, 0.0)[narrower] / W.diagonal()[narrower]
        v = edge[narrower]
        energy = ridge @ a + mu * (2.0 * sign * cross[narrower] + mu * square[narrower])
        size = 1.0 + np.abs(ridge).sum() + mu * np.abs(W).sum(axis=0)[narrower]
        unknown = gamma(2 * p + 16) * (size**2 + mu * v)
        unknown += 2.0 * (rest + mu * wrong[narrower]) * longest
        value = min(value, float((1.0 - energy + 2.0 * mu * v - unknown).min(initial=1.0)))
    return value - 2.01 * eps


def _inverse(A: np.ndarray) -> np.ndarray:
    """About the inverse: only the tightness of the result rests on it."""
    factor, failed = lapack.dpotrf(np.array(A, order="F"), lower=1, clean=1, overwrite_a=1)
    if failed:
        raise ValueError("its box is not proven: the matrix A is not positive definite")
    lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    return np.tril(lower) + np.tril(lower, -1).T


def _least_eigenvalue(A: np.ndarray, W: np.ndarray) -> float:
    """Proven by a factorisation; guessed from the inverse."""
    x = np.ones(len(A)) + np.arange(len(A)) / len(A)
    for _ in range(_STEPS):
        x = W @ (x / np.linalg.norm(x))
    guess = 0.5 / float(np.linalg.norm(x))
    for _ in range(_TRIES):
        Q = A.copy()
        Q[np.diag_indices(len(A))] -= guess
        if is_semidefinite(Q):
            return guess
        guess *= 0.5
    raise ValueError("its box is not proven: the matrix A is nearly singular")


def _norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(x)) * (1.0 + gamma(len(x) + 4))
