"""The split A = Q + diag(t) on which every bound rests: Q positive semidefinite, t >= 0.

``t`` is the share of the quadratic form that is charged per chosen feature (theory eq. 2). It may
be any vector; the larger, the tighter the bound. It is used only after a Cholesky factorisation
has *proven* that A - diag(t) is positive semidefinite.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from bestk._kernels import FREE, IN, UNIT_ROUNDOFF, certify, descend
from bestk.scaling import StandardForm

_LANCZOS_STEPS = 30


def is_positive_semidefinite(A, t):
    """Prove A - diag(t) >= 0, or return False (Rump's criterion, theory eq. 11).

    If the floating-point Cholesky factorisation of A - diag(t) - shift runs to completion, and
    shift covers its backward error, the exact matrix A - diag(t) is positive semidefinite.
    """
    p = len(A)
    Q = np.array(A, order="F")
    Q[np.diag_indices(p)] -= t
    trace = np.trace(Q) + 1.0
    Q[np.diag_indices(p)] -= (p + 4) * UNIT_ROUNDOFF * 1.1 * trace
    return lapack.dpotrf(Q, lower=1, clean=0, overwrite_a=1)[1] == 0


def smallest_eigenvalue(A):
    """An estimate (from above) of the smallest eigenvalue of A by Lanczos on its inverse."""
    p = len(A)
    factor = cholesky_or_none(A)
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
        if previous - estimate <= 1e-3 * estimate or off[i] <= 1e-14 * diagonal[0]:
            break
        previous = estimate
        basis[i + 1] = w / off[i]
    return float(estimate)


def cholesky_or_none(A):
    factor, info = lapack.dpotrf(np.array(A, order="F"), lower=1, clean=0, overwrite_a=1)
    return factor if info == 0 else None


@dataclass(frozen=True, kw_only=True)
class Split:
    """A proven split: A - diag(t) is positive semidefinite."""

    t: np.ndarray = field(repr=False)

    @property
    def is_useful(self) -> bool:
        return bool((self.t > 0).all())


def uniform_split(A: np.ndarray) -> Split:
    """The largest proven t = lambda * 1 (the paper's choice, after column scaling)."""
    estimate = smallest_eigenvalue(A)
    margin = 2e-3
    while estimate > 0 and margin < 1:
        t = np.full(len(A), estimate * (1 - margin))
        if is_positive_semidefinite(A, t):
            return Split(t=t)
        margin *= 3
    return Split(t=np.zeros(len(A)))


def optimised_split(
    form: StandardForm,
    split: Split,
    state: np.ndarray,
    k: int,
    cutoff: float,
    stop: Callable[[], bool],
    steps: int = 20,
    shrink: float = 0.8,
) -> Split:
    """A better diagonal for one node: barrier ascent on  bound(t) + mu logdet(A - diag t).

    The relaxation value is concave in t with gradient b_j^2 (1/z_j - 1) (theory eq. 12). Each step
    costs one relaxation and one inverse. The result is proven like any other split.
    """
    if not split.is_useful:
        return split
    r = k - np.count_nonzero(state == IN)
    b, level, mu = np.zeros(form.p), 0.0, 0.0
    t = 0.9 * split.t
    factor = _factor(form.A, t)
    tried = [(_value(form, split.t, state, r, k, np.zeros(form.p), 0.0, cutoff)[0], split.t)]
    for _ in range(steps):
        value, level = _value(form, t, state, r, k, b, level, cutoff)
        tried.append((value, t))
        if stop() or level <= 0.0 or factor is None:
            break
        reach = np.where(b > 0, form.hi, -form.lo)
        z = np.clip(np.abs(b) / np.minimum(level / np.sqrt(t), reach), 1e-12, 1.0)
        gradient = np.where(state == FREE, b * b * (1.0 / z - 1.0), 0.0)
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        barrier = inverse.diagonal()
        mu = shrink * (mu or gradient.sum() / barrier.sum())
        if mu <= 0.0:
            break
        # Only the lower triangle is there: rows and columns together give whole rows.
        squares = np.einsum("ij,ij->i", inverse, inverse) + np.einsum("ij,ij->j", inverse, inverse)
        step = (gradient - mu * barrier) / (mu * (squares - barrier**2))
        t, factor = _feasible_step(form.A, t, step)
    for _, t in sorted(tried, key=lambda pair: -pair[0]):
        t = t * (1 - 1e-6)
        if is_positive_semidefinite(form.A, t):
            return Split(t=t)
    return split


def _value(form, t, state, r, k, b, level, cutoff):
    """(bound, level) of the relaxation with split t; b is the warm start and the solution."""
    level, _ = descend(form.A, form.c, t, form.lo, form.hi, state, r, b, level, cutoff, 0.02, 400)
    phi = np.empty(form.p)
    data = form.A, form.c, t, form.lo, form.hi, state, r, b, form.eps, k, np.inf, False, phi
    return certify(*data)[0], level


def _factor(A, t):
    Q = np.array(A, order="F")
    Q[np.diag_indices(len(A))] -= t
    factor, failed = lapack.dpotrf(Q, lower=1, clean=1, overwrite_a=1)
    return None if failed else factor


def _feasible_step(A, t, step):
    """(t + step, Cholesky factor), the step halved until the factorisation succeeds."""
    floor = 1e-6 * t.mean()
    for _ in range(30):
        candidate = np.maximum(t + step, floor)
        factor = _factor(A, candidate)
        if factor is not None:
            return candidate, factor
        step = 0.5 * step
    return t, None
