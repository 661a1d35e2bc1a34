"""The proximal step of ADMM over the choice of features (theory: prox)."""

import math

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.constants import IN, OUT
from bestk.bounds.kernels.gains import gain_of, largest_first


@kernel
def _full_prox(x, t, reach, rho):
    """argmin over u >= 0 of phi(u) + (rho/2) (u - x)^2 for x >= 0; phi is `gain_of`, t >= 0."""
    if t > 0.0:
        full = x / (1.0 + 2.0 / (rho * t))
        if full <= t * reach:
            return full
    # Linear from t * reach on, where the other piece ends.
    return max(x - 2.0 * reach / rho, t * reach)


@kernel
def _where_phi_is(level, t, reach):
    """The u >= 0 at which phi(u) is `level`."""
    if level <= t * reach * reach:
        return math.sqrt(t * level)
    return 0.5 * (level / reach + t * reach)


@kernel
def _shares(level, rho, x, phi, t, reach, m):
    """Sum over entries of the multiplier in [0, 1] that moves x to where phi is `level`."""
    total = 0.0
    for i in range(m):
        if phi[i] > level:
            at = _where_phi_is(level, t[i], reach[i])
            slope = min(at / t[i], reach[i]) if t[i] > 0.0 else reach[i]
            total += min(1.0, rho * (x[i] - at) / (2.0 * slope)) if slope > 0.0 else 1.0
    return total


@kernel
def prox_rows(V, t, lo, hi, states, remaining, rho, out):
    """argmin over u of Phi(u) + (rho/2) ||u - v||^2, Phi = IN phi's + the r largest FREE ones.

    phi_j(u) = max over lo_j <= w <= hi_j of 2 u w - t_j w^2, t_j >= 0; with t_j = 0 the box is
    finite. Every FREE entry whose phi exceeds a level L is pulled towards its full prox, but not
    below L; L makes the multipliers sum to r (theory: prox).
    """
    p = V.shape[1]
    x, phi, charge, reach = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    which = np.empty(p, np.int64)
    ranked = np.empty(p)
    for row in range(V.shape[0]):
        v, state, r = V[row], states[row], remaining[row]
        m, n_free = 0, 0
        for j in range(p):
            out[row, j] = v[j]
            if state[j] == OUT:
                continue
            side = hi[j] if v[j] > 0 else -lo[j]
            if state[j] == IN:
                full = _full_prox(abs(v[j]), t[j], side, rho)
                out[row, j] = full if v[j] > 0 else -full
                continue
            n_free += 1
            f = gain_of(v[j], t[j], lo[j], hi[j])
            if f > 0.0:
                which[m], x[m], phi[m], charge[m], reach[m] = j, abs(v[j]), f, t[j], side
                ranked[m] = f
                m += 1
        if r <= 0 or m == 0:
            continue
        level = 0.0
        if r < m:
            # With r entries above it, none of them with a larger share than one, a level is not too
            # low; from there down until the shares suffice, then between the two.
            largest_first(ranked, m, r + 1)
            high = np.min(ranked[: r + 1])
            low, above = high, 0.0
            below = _shares(high, rho, x, phi, charge, reach, m) - r
            while above <= 0.0 and 1e-300 < low < np.inf:
                low *= 0.5
                above = _shares(low, rho, x, phi, charge, reach, m) - r
            for i in range(100):
                if high - low <= 1e-15 * high:
                    break
                # The shares fall steadily: secants, with bisection in between for safety.
                weight = above / (above - below) if i % 3 < 2 and above > below else 0.5
                level = low + min(max(weight, 0.01), 0.99) * (high - low)
                excess = _shares(level, rho, x, phi, charge, reach, m) - r
                if excess > 0.0:
                    low, above = level, excess
                else:
                    high, below = level, excess
            level = high
        for i in range(m):
            if phi[i] > level:
                full = _full_prox(x[i], charge[i], reach[i], rho)
                full = max(full, _where_phi_is(level, charge[i], reach[i]))
                out[row, which[i]] = full if v[which[i]] > 0 else -full
