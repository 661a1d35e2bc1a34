"""What a dual vector with multipliers proves for a node, rounding included, and what it fixes.

For any x and lam, with u = c - C'lam / 2 - Q x (theory: bound, multipliers),

    f >= 1 - sigma(lam) - x'Q x - sum over IN of Phi_g - (sum of the r largest Phi_g over FREE),

where Phi_g is the sum of the gains of the coordinates of group g, and sigma(lam) the most that
lam'(C b) can be.
"""

import numpy as np

from bestk.base.compiling import step
from bestk.base.constants import FREE, IN, OUT, UNIT_ROUNDOFF
from bestk.bounds.kernels.conclude import proven
from bestk.bounds.kernels.gains import gain_of, sum_largest
from bestk.form.dense import residual, slope_errors


@step
def conclude(space, most, t, state, r, x, lam, cutoff, fixing):
    """The bound of a node; `state` gains the fixings.

    `most` is the number of coordinates of a choice, at most: their data error is paid out of t.
    """
    p, m = x.shape[0], state.shape[0]
    u = np.empty(p)
    residual(space.A, space.c, t, x, u)
    nonzeros, size, quadratic = 0, 0.0, 0.0
    for j in range(p):
        if x[j] != 0.0:
            nonzeros += 1
            size += abs(x[j])
            quadratic += x[j] * (space.c[j] - u[j])
    error, lost = slope_errors(nonzeros + 8, size, space.eps)
    pull, support, weight = _pull(space, lam, u)
    error += pull
    gains, free_gains = np.empty(m), np.empty(m)
    forced, n_free = 0.0, 0
    for g in range(m):
        gains[g] = 0.0
        if state[g] == OUT:
            continue
        for j in range(space.starts[g], space.starts[g + 1]):
            gains[g] += _gain(space, t, u, error, most, j)
        if state[g] == IN:
            forced += gains[g]
        else:
            free_gains[n_free] = gains[g]
            n_free += 1
    largest = sum_largest(free_gains, n_free, r)
    last, following = np.inf, 0.0
    for i in range(n_free):
        if i < r:
            last = min(last, free_gains[i])
        else:
            following = max(following, free_gains[i])
    total = forced + largest
    lost += support + (lam.shape[0] + 8) * UNIT_ROUNDOFF * weight
    bound = proven(quadratic, total, lost, space.eps, most + 8)
    if not bound > -np.inf:
        return -np.inf
    if bound >= cutoff or not fixing:
        return bound
    slack = 16.0 * UNIT_ROUNDOFF * (1.0 + total + weight)
    for g in range(m):
        if state[g] == FREE and r > 0:
            if r < n_free and gains[g] <= following:
                if bound + last - gains[g] - slack >= cutoff:
                    state[g] = OUT
            elif gains[g] > following and bound + gains[g] - following - slack >= cutoff:
                state[g] = IN
    return bound


@step
def _pull(space, lam, u):
    """Subtract C'lam / 2 from u; (its error, sigma(lam), the sum of its parts)."""
    largest, support, weight = 0.0, 0.0, 0.0
    q = lam.shape[0]
    if q == 0:
        return 0.0, 0.0, 0.0
    for i in range(q):
        if lam[i] != 0.0:
            end = space.upper[i] if lam[i] > 0.0 else space.lower[i]
            support += lam[i] * end
            weight += abs(lam[i] * end)
    for j in range(u.shape[0]):
        pull, size = 0.0, 0.0
        for i in range(q):
            pull += lam[i] * space.C[i, j]
            size += abs(lam[i]) * space.C_size[i, j]
        u[j] -= 0.5 * pull
        largest = max(largest, size)
    return (q + 64) * 4 * UNIT_ROUNDOFF * largest, support, weight


@step
def _gain(space, t, u, error, most, j):
    """The most that coordinate j can gain, whatever the error of its slope.

    The data error eps (1 + sum |x_j|)^2 <= 2 eps + 2 eps most x'x is paid out of t.
    """
    side = 1.0 if u[j] > 0 else -1.0
    paid = t[j] - 2.0 * space.eps * most
    gain = gain_of(u[j] + side * error, paid, space.lo[j], space.hi[j])
    if u[j] == 0.0 or abs(u[j]) <= error:
        gain = max(gain, gain_of(-side * error, paid, space.lo[j], space.hi[j]))
    return gain
