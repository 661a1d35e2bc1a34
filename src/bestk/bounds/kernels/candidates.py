"""Features that a relaxation over some candidates lacks."""

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.gains import gain_of, largest_first, sum_largest


@kernel
def missing_rows(
    u, charges, states, remaining, levels, listed, most, entrants, totals, missed, incomplete
):
    """Which features relaxations over the `listed` ones lack, given slopes u of all features.

    Free features whose gain exceeds the level would leave zero: up to `most` of them for each node
    are marked as `entrants`. totals[i] is the sum of gains that the bound of node i subtracts,
    missed[i] the part of it that a relaxation with all features could still save.
    """
    t, lo, hi = charges
    p = u.shape[1]
    gains, inner, outer = np.empty(p), np.empty(p), np.empty(p)
    for i in range(u.shape[0]):
        n_all, n_listed, n_outside = 0, 0, 0
        forced = 0.0
        for j in range(p):
            if states[i, j] == OUT:
                continue
            f = gain_of(u[i, j], t[j], lo[j], hi[j])
            if states[i, j] == IN:
                forced += f
                continue
            gains[n_all] = f
            n_all += 1
            if listed[j]:
                inner[n_listed] = f
                n_listed += 1
            else:
                outer[n_outside] = f
                n_outside += 1
        r = remaining[i]
        largest = sum_largest(gains, n_all, r)
        totals[i] = forced + largest
        missed[i] = largest - sum_largest(inner, n_listed, r)
        incomplete[i] = False
        entry = levels[i] * levels[i]
        if n_outside > most:
            largest_first(outer, n_outside, most)
            entry = max(entry, np.min(outer[:most]))
        for j in range(p if r > 0 else 0):
            if states[i, j] == FREE and not listed[j]:
                f = gain_of(u[i, j], t[j], lo[j], hi[j])
                if f > 0.0 and f >= entry:
                    entrants[j] = True
                    incomplete[i] = True
