"""The bound of a node and its relaxation as the formulas say them, and descent run for long."""

import numpy as np

from bestk.base.constants import FREE, IN
from bestk.bounds.kernels.relaxation import Effort, Relaxed, descend


def bound_value(A, c, t, lo, hi, state, r, g):
    """h(g) of theory: bound, for t > 0."""
    u = c - A @ g + t * g
    v = np.clip(u / t, lo, hi)
    phi = v * (2 * u - t * v)
    largest = np.sort(phi[state == FREE])[::-1][:r]
    return 1.0 - g @ (c - u) - phi[state == IN].sum() - largest.sum()


def descended(A, c, t, lo, hi, state, r, b, cutoff=2.0, closeness=1e-3, sweeps=2000):
    b, effort = b.copy(), Effort(closeness, sweeps, 60)
    level, multiplies = descend(Relaxed(A, c, t, lo, hi), state, r, b, 0.0, cutoff, effort)
    return b, level, multiplies


def relaxed_value(A, c, t, state, r, b):
    """The relaxation (theory: relaxation) at b without boxes: the best z, found by bisection."""
    free = state == FREE
    size = np.sqrt(t[free]) * np.abs(b[free])
    low, high = 0.0, max(size.sum(), 1e-300)  # z = min(1, size / level) sums to at most r
    for _ in range(200):
        level = 0.5 * (low + high)
        low, high = (level, high) if np.minimum(1.0, size / level).sum() > r else (low, level)
    z = np.minimum(1.0, size / high)
    shared = np.divide(size**2, z, out=np.zeros_like(size), where=z > 0).sum()
    rest = t[~free] @ b[~free] ** 2
    return 1.0 - 2.0 * c @ b + b @ (A - np.diag(t)) @ b + rest + shared
