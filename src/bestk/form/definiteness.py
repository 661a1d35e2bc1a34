"""Proofs that a matrix is positive semidefinite, and the eigenvalues worth trying.

A computed eigenvalue is a guess until a Cholesky factorisation confirms it. Large matrices are
factored on a device, if there is one in use.
"""

from contextlib import suppress
from typing import Any, Protocol

import numpy as np
from scipy.linalg import lapack

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.tuning import tuning
from bestk.form.on_device import OutOfMemory, device_for_factors

# Matrices from this size on are factored in place: a copy would be a burden.
_LARGE = 1000


def is_positive_semidefinite(A, t, error=0.0):
    """Prove A - diag(t) >= 0, or return False (Rump's criterion, theory: definite).

    If the floating-point Cholesky factorisation of A - diag(t) - shift runs to completion, and
    shift covers its backward error, the exact matrix A - diag(t) is positive semidefinite. It is
    so for all matrices whose entries differ from those of A by no more than `error`: whoever sums
    up the data in another order finds the same.
    """
    p = len(A)
    if not np.isfinite(t).all():
        return False
    device = device_for_factors(p)
    if device is not None:
        with suppress(OutOfMemory):
            return device.proves_definite(A, t, error)
    Q = np.array(A.T, order="F")  # A is symmetric, and this copy goes straight through memory
    Q[np.diag_indices(p)] -= t
    trace = np.trace(Q) + 1.0
    Q[np.diag_indices(p)] -= (p + 4) * UNIT_ROUNDOFF * 1.1 * trace + p * error
    if p > _LARGE:
        return lapack.dpotrf(Q, lower=1, clean=0, overwrite_a=1)[1] == 0
    try:
        np.linalg.cholesky(Q)  # which lets other threads work meanwhile
    except np.linalg.LinAlgError:
        return False
    return True


class Factor(Protocol):
    """What is asked of a factor of A - diag(t): what its inverse looks like, and solutions."""

    def inverse_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """The diagonal of the inverse, and sums of the squares of its rows. Spends the factor."""

    def solve(self, right: np.ndarray) -> np.ndarray: ...


class _HostFactor:
    """The lower Cholesky factor itself."""

    def __init__(self, lower: np.ndarray) -> None:
        self.lower = lower

    def inverse_sums(self) -> tuple[np.ndarray, np.ndarray]:
        inverse, _ = lapack.dpotri(self.lower, lower=1, overwrite_c=1)
        diagonal = inverse.diagonal().copy()
        # Only the lower triangle is there: rows and columns together give whole rows.
        squares = np.einsum("ij,ij->i", inverse, inverse) + np.einsum("ij,ij->j", inverse, inverse)
        return diagonal, squares - diagonal**2

    def solve(self, right: np.ndarray) -> np.ndarray:
        return lapack.dpotrs(self.lower, right, lower=1)[0]


def cholesky_factor(A: np.ndarray, t: Any) -> Factor | None:
    """Of A - diag(t), or None where it does not exist."""
    device = device_for_factors(len(A))
    if device is not None:
        with suppress(OutOfMemory):
            return device.factor(A, t)
    Q = np.array(A.T, order="F")
    Q[np.diag_indices(len(A))] -= t
    lower, failed = lapack.dpotrf(Q, lower=1, clean=1, overwrite_a=1)
    return None if failed else _HostFactor(lower)


def smallest_eigenvalue(A):
    """An estimate (from above) of the smallest eigenvalue of A by Lanczos on its inverse."""
    p = len(A)
    factor = cholesky_factor(A, 0.0)
    if factor is None:
        return 0.0
    steps = min(tuning().lanczos_steps, p)
    basis = np.zeros((steps + 1, p))
    start = np.random.default_rng(0).standard_normal(p)
    basis[0] = start / np.linalg.norm(start)
    diagonal, off = np.zeros(steps), np.zeros(steps)
    previous = np.inf
    for i in range(steps):
        w = factor.solve(basis[i])
        diagonal[i] = basis[i] @ w
        for _ in range(2):
            w -= basis[: i + 1].T @ (basis[: i + 1] @ w)
        off[i] = np.linalg.norm(w)
        T = np.diag(diagonal[: i + 1]) + np.diag(off[:i], 1) + np.diag(off[:i], -1)
        estimate = 1.0 / np.linalg.eigvalsh(T)[-1]
        if previous - estimate <= 4e-3 * estimate or off[i] <= 1e-14 * diagonal[0]:
            break
        previous = estimate
        basis[i + 1] = w / off[i]
    return float(estimate)


def uniform_charge(A: np.ndarray, error: float = 0.0) -> float:
    """The largest lambda with A - lambda I proven semidefinite (the paper's choice), 0 if none."""
    estimate = smallest_eigenvalue(A)
    margin = 1e-2
    while estimate > 0 and margin < 1:
        charge = estimate * (1 - margin)
        if is_positive_semidefinite(A, np.full(len(A), charge), error):
            return charge
        margin *= 3
    return 0.0


def negative_charge(A: np.ndarray, error: float) -> float:
    """For a singular A: so little below zero that A - lambda I is proven semidefinite, or 0."""
    p = len(A)
    for share in (4.0, 64.0, 1024.0):
        charge = -share * p * (p * UNIT_ROUNDOFF + error)
        if is_positive_semidefinite(A, np.full(p, charge), error):
            return charge
    return 0.0
