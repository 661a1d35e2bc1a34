"""What slopes prove: a lower bound that holds in floating point, and fixings."""

from typing import NamedTuple

import numpy as np

from bestk.base.compiling import kernel, step
from bestk.base.constants import FREE, IN, OUT, UNIT_ROUNDOFF
from bestk.bounds.kernels.gains import gain_of, sum_largest


class Charges(NamedTuple):
    """What a chosen feature pays, and its box."""

    t: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class Known(NamedTuple):
    """Slopes u (nodes, p) and g'Qg (nodes,), each with its error; see :class:`Slopes`."""

    u: np.ndarray
    quadratic: np.ndarray
    error: np.ndarray
    lost: np.ndarray


@kernel
def proven(quadratic, gains, lost, eps, terms):
    """1 - g'Qg - gains, less everything that rounding and the data may have done to it.

    `gains` is at least what any choice of features gains, computed from `terms` terms; `lost`
    bounds the error of g'Qg, and y'y = 1 is known up to eps (theory: bound, and its rounding).
    """
    rounding = (terms + 12) * UNIT_ROUNDOFF * (4.0 + gains)
    return 1.0 - quadratic - gains - lost - 2.0 * eps - rounding


@step
def _gains(known, row, charges, eps, k, gains):
    """The most each feature can gain at its slope, whatever the error of that slope.

    The data error eps (1 + sum |b_j|)^2 <= 2 eps + 2 eps k b'b is paid out of t.
    """
    u, error = known.u[row], known.error[row]
    t, lo, hi = charges
    for j in range(u.shape[0]):
        side = 1.0 if u[j] > 0 else -1.0
        paid = t[j] - 2.0 * eps * k
        gains[j] = gain_of(u[j] + side * error, paid, lo[j], hi[j])
        if u[j] == 0.0 or abs(u[j]) <= error:
            gains[j] = max(gains[j], gain_of(-side * error, paid, lo[j], hi[j]))


@step
def conclude(known, row, charges, state, r, eps, k, cutoff, fix, gains, free_gains):
    """The bound of one node; `state` gains the fixings (theory: bound, fix-out, fix-in)."""
    p = state.shape[0]
    _gains(known, row, charges, eps, k, gains)
    forced = 0.0
    n_free = 0
    for j in range(p):
        if state[j] == IN:
            forced += gains[j]
        elif state[j] == FREE:
            free_gains[n_free] = gains[j]
            n_free += 1
    largest = sum_largest(free_gains, n_free, r)
    last, next_ = np.inf, 0.0
    for j in range(n_free):
        if j < r:
            last = min(last, free_gains[j])
        else:
            next_ = max(next_, free_gains[j])
    total = forced + largest
    bound = proven(known.quadratic[row], total, known.lost[row], eps, k)
    if not bound > -np.inf:
        return -np.inf
    if bound >= cutoff or not fix or r == 0:
        return bound
    slack = 8.0 * UNIT_ROUNDOFF * (1.0 + total)
    for j in range(p):
        if state[j] == FREE:
            if r < n_free and gains[j] <= next_ and bound + last - gains[j] - slack >= cutoff:
                state[j] = OUT
            elif gains[j] > next_ and bound + gains[j] - next_ - slack >= cutoff:
                state[j] = IN
    return bound


@kernel
def conclude_rows(known, charges, rows, states, remaining, eps, k, cutoff, fix, bounds):
    """Bounds of the nodes `rows` from their slopes; `states` are updated where `fix`."""
    p = states.shape[1]
    gains, free_gains = np.empty(p), np.empty(p)
    for i in rows:
        bounds[i] = conclude(
            known, i, charges, states[i], remaining[i], eps, k, cutoff, fix, gains, free_gains
        )
