"""The split A = Q + diag(t) on which every bound rests: Q positive semidefinite, t >= 0.

``t`` is the share of the quadratic form that is charged per chosen feature (theory eq. 2). It may
be any vector; the larger, the tighter the bound. It is used only after a Cholesky factorisation
has *proven* that A - diag(t) is positive semidefinite, or where it is no more than the ridge
penalty's part of A, so that nothing has to be proven.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from bestk.base.constants import FREE, IN, UNIT_ROUNDOFF
from bestk.base.threads import Workers
from bestk.bounds.kernels import certify, descend
from bestk.form.matrix import ByRows
from bestk.form.standard_form import StandardForm

_LANCZOS_STEPS = 30
# Times the error of the data.
_RIDGE_MARGIN = 64.0


def is_positive_semidefinite(A, t, error=0.0):
    """Prove A - diag(t) >= 0, or return False (Rump's criterion, theory eq. 11).

    If the floating-point Cholesky factorisation of A - diag(t) - shift runs to completion, and
    shift covers its backward error, the exact matrix A - diag(t) is positive semidefinite. It is
    so for all matrices whose entries differ from those of A by no more than `error`: whoever sums
    up the data in another order finds the same.
    """
    p = len(A)
    if not np.isfinite(t).all():
        return False
    Q = np.array(A.T, order="F")  # A is symmetric, and this copy goes straight through memory
    Q[np.diag_indices(p)] -= t
    trace = np.trace(Q) + 1.0
    Q[np.diag_indices(p)] -= (p + 4) * UNIT_ROUNDOFF * 1.1 * trace + p * error
    return lapack.dpotrf(Q, lower=1, clean=0, overwrite_a=1)[1] == 0


def smallest_eigenvalue(A):
    """An estimate (from above) of the smallest eigenvalue of A by Lanczos on its inverse."""
    p = len(A)
    factor = _factor(A, 0.0)
    if factor is None:
        return 0.0
    steps = min(_LANCZOS_STEPS, p)
    basis = np.zeros((steps + 1, p))
    start = np.random.default_rng(0).standard_normal(p)
    basis[0] = start / np.linalg.norm(start)
    diagonal, off = np.zeros(steps), np.zeros(steps)
    previous = np.inf
    for i in range(steps):
        w = lapack.dpotrs(factor, basis[i], lower=1)[0]
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


@dataclass(frozen=True, kw_only=True)
class Split:
    """A proven split: A - diag(t) is positive semidefinite."""

    t: np.ndarray = field(repr=False)

    @property
    def smallest(self) -> float:
        """A proven lower bound on the eigenvalues of A."""
        return float(self.t.min())

    @property
    def is_positive(self) -> bool:
        return bool((self.t > 0).all())

    def bounds(self, form: StandardForm) -> bool:
        """Whether it bounds anything: each feature needs a charge, or a box instead."""
        boxed = np.isfinite(form.lo) & np.isfinite(form.hi)
        return bool(((self.t > 0) | boxed).all())


def first_split(form: StandardForm) -> Split:
    """The split to begin with: by eigenvalues, or for wide forms the ridge penalty."""
    if isinstance(form.operator, ByRows):
        # The penalty is a share of the diagonal that others may compute with other last digits.
        return Split(t=form.operator.ridge * (1.0 - _RIDGE_MARGIN * form.eps))
    split = uniform_split(form.A, form.eps)
    if not split.is_positive and split.bounds(form):
        return _slightly_negative(form, split)
    return split


def uniform_split(A: np.ndarray, error: float = 0.0) -> Split:
    """The largest proven t = lambda * 1 (the paper's choice, after column scaling)."""
    estimate = smallest_eigenvalue(A)
    margin = 1e-2
    while estimate > 0 and margin < 1:
        t = np.full(len(A), estimate * (1 - margin))
        if is_positive_semidefinite(A, t, error):
            return Split(t=t)
        margin *= 3
    return Split(t=np.zeros(len(A)))


def _slightly_negative(form: StandardForm, split: Split) -> Split:
    """Where A is singular: so little below zero that A - diag(t) is proven semidefinite.

    Only in a box do such charges bound anything.
    """
    for share in (4.0, 64.0, 1024.0):
        t = np.full(form.p, -share * form.p * (form.p * UNIT_ROUNDOFF + form.eps))
        if is_positive_semidefinite(form.A, t, form.eps):
            return Split(t=t)
    return split


class SplitAscent:
    """Improves a split while the tree grows: ascent on  mean bound(t) + mu logdet(A - diag t).

    The relaxation value of a node is concave in t with gradient b_j^2 (1/z_j - 1) (theory eq. 12).
    A step costs one inverse and a warm-started relaxation of each sample node; mu shrinks from
    step to step.
    """

    steps = 12
    first, shrink = 0.5, 0.75  # weight of the barrier in the first step, and from step to step

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.workers = form, split, workers

    def improve(
        self,
        states: np.ndarray,
        duals: np.ndarray,
        k: int,
        cutoff: float,
        stop: Callable[[], bool] = lambda: False,
    ) -> Split:
        """A better split for nodes like these: proven, or the old one, as after a stop."""
        if not self.split.is_positive:
            return self.split
        nodes = [_Relaxed(self.form, s, b, k, cutoff) for s, b in zip(states, duals, strict=True)]
        values = [(self._mean_value(nodes, self.split.t), self.split.t)]
        # The old split lies next to the boundary, where steps are short: back off a little.
        t, weight, scale = 0.95 * self.split.t, self.first, 0.0
        factor = _factor(self.form.A, t)
        for _ in range(self.steps):
            values.append((self._mean_value(nodes, t), t))
            gradient = np.mean([node.gradient(t) for node in nodes], axis=0)
            if stop():
                return self.split
            if factor is None or not gradient.any():
                break
            inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
            scale = scale or inverse.trace()
            t, factor = self._step(t, gradient, inverse, weight * gradient.sum() / scale)
            weight *= self.shrink
        values.append((self._mean_value(nodes, t), t))
        for _, t in sorted(values, key=lambda pair: -pair[0]):
            if t is self.split.t or is_positive_semidefinite(self.form.A, t, self.form.eps):
                self.split = Split(t=t)
                break
        return self.split

    def _mean_value(self, nodes: list["_Relaxed"], t: np.ndarray) -> float:
        return float(np.mean(self.workers.map(lambda node: node.solve(t), nodes)))

    def _step(self, t: np.ndarray, gradient: np.ndarray, inverse: np.ndarray, mu: float):
        """One ascent step scaled by the row sums of the barrier's Hessian, inverse squared.

        Returns the new t and the factor of A - diag(t).
        """
        barrier = inverse.diagonal()
        # Only the lower triangle is there: rows and columns together give whole rows.
        squares = np.einsum("ij,ij->i", inverse, inverse) + np.einsum("ij,ij->j", inverse, inverse)
        step = (gradient - mu * barrier) / (mu * (squares - barrier**2))
        for _ in range(10):
            candidate = np.maximum(t + step, 1e-6 * t.mean())
            factor = _factor(self.form.A, candidate)
            if factor is not None:
                return candidate, factor
            step = 0.5 * step
        return t, _factor(self.form.A, t)


class _Relaxed:
    """The relaxation of one node, solved again and again while t moves."""

    def __init__(
        self, form: StandardForm, state: np.ndarray, b: np.ndarray, k: int, cutoff: float
    ) -> None:
        self.form, self.state, self.b, self.k, self.cutoff = form, state, b.copy(), k, cutoff
        self.r = k - np.count_nonzero(state == IN)
        self.level = 0.0

    def solve(self, t: np.ndarray) -> float:
        form, phi = self.form, np.empty(self.form.p)
        node = form.A, form.c, t, form.lo, form.hi, self.state, self.r, self.b
        self.level, _ = descend(*node, self.level, self.cutoff, 0.2, 200)
        return certify(*node, form.eps, self.k, np.inf, False, phi)[0]

    def gradient(self, t: np.ndarray) -> np.ndarray:
        b, form = self.b, self.form
        if self.level <= 0.0:
            return np.zeros(form.p)
        knee = np.minimum(self.level / np.sqrt(t), np.where(b > 0, form.hi, -form.lo))
        moved = (self.state == FREE) & (b != 0.0)
        z = np.clip(np.abs(b[moved]) / knee[moved], 1e-12, 1.0)
        gradient = np.zeros(form.p)
        gradient[moved] = b[moved] ** 2 * (1.0 / z - 1.0)
        return gradient


def _factor(A, t):
    """Lower Cholesky factor of A - diag(t), or None where it does not exist."""
    Q = np.array(A.T, order="F")
    Q[np.diag_indices(len(A))] -= t
    factor, failed = lapack.dpotrf(Q, lower=1, clean=1, overwrite_a=1)
    return None if failed else factor
