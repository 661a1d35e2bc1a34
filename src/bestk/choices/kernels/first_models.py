"""First models under rules, compiled: greedy dives that propagate, and swaps of groups."""

import numpy as np

from bestk.base.compiling import kernel, put
from bestk.base.constants import FREE, IN, OUT
from bestk.choices.kernels.propagation import POSSIBLE, may_stop, n_counted, propagate

_PIVOT = 1e-10


@kernel
def dive(space, A, c, k, state, hints):
    """Choose the group that gains most, again and again; whether a choice was completed.

    `state` becomes that choice. With `hints` (not empty) the largest hint is chosen instead.
    """
    m = state.shape[0]
    H, d = A.copy(), c.copy()
    for g in range(m):
        if state[g] == IN:
            _eliminate(space, H, d, g)
    gains, child = np.empty(m), np.empty(m, np.int8)
    complete, best = np.empty(m, np.int8), False
    while True:
        # What propagation adds to the groups that are IN is another choice.
        if may_stop(space.rules, k, state, child) and not _adds(child, state):
            put(complete, child)
            best = True
        for g in range(m):
            gains[g] = -1.0
            if state[g] == FREE:
                gains[g] = hints[g] if hints.shape[0] else _gain(space, H, d, g)
        taken = False
        while not taken:
            g = int(np.argmax(gains))
            if gains[g] < 0.0:
                break
            put(child, state)
            child[g] = IN
            if propagate(space.rules, k, child) == POSSIBLE:
                for other in range(m):
                    if child[other] == IN and state[other] != IN:
                        _eliminate(space, H, d, other)
                put(state, child)
                taken = True
            gains[g] = -1.0
        if not taken:
            break
    if best:
        put(state, complete)
    return best


@kernel
def _adds(child, state):
    """Whether a group is IN that was FREE."""
    added = False
    for g in range(state.shape[0]):
        added = added or (child[g] == IN and state[g] == FREE)
    return added


@kernel
def improve(space, A, c, k, root, state):
    """Add groups and exchange single ones while that lowers the value of a complete choice.

    Groups that are decided in `root` stay. Returns the number of exchanges.
    """
    m, exchanges = state.shape[0], 0
    child, H, d = np.empty(m, np.int8), np.empty_like(A), np.empty_like(c)
    while exchanges < 10 * m:
        best, best_out, best_in = 1e-9, -1, -1
        for out in range(-1, m):
            if out >= 0 and not (state[out] == IN and root[out] == FREE):
                continue
            for a in range(c.shape[0]):
                put(H[a], A[a])
            put(d, c)
            for g in range(m):
                if state[g] == IN and g != out:
                    _eliminate(space, H, d, g)
            lost = 0.0 if out < 0 else _gain(space, H, d, out)
            for g in range(m):
                if state[g] != OUT or root[g] != FREE:
                    continue
                gained = _gain(space, H, d, g) - lost
                if gained > best:
                    put(child, state)
                    child[g] = IN
                    if out >= 0:
                        child[out] = OUT
                    if n_counted(space.rules, child) <= k and (
                        propagate(space.rules, k, child) == POSSIBLE
                    ):
                        best, best_out, best_in = gained, out, g
        if best_in < 0:
            return exchanges
        state[best_in] = IN
        if best_out >= 0:
            state[best_out] = OUT
        exchanges += 1
    return exchanges


@kernel
def _gain(space, H, d, g):
    """What the group gains, its coordinates taken one after the other."""
    first, end = space.starts[g], space.starts[g + 1]
    size = end - first
    if size == 1:
        return d[first] * d[first] / H[first, first] if H[first, first] > _PIVOT else 0.0
    G, e, total = H[first:end, first:end].copy(), d[first:end].copy(), 0.0
    for t in range(size):
        if G[t, t] > _PIVOT:
            total += e[t] * e[t] / G[t, t]
            for a in range(t + 1, size):
                factor = G[t, a] / G[t, t]
                e[a] -= factor * e[t]
                for b in range(t + 1, size):
                    G[a, b] -= factor * G[t, b]
    return total


@kernel
def _eliminate(space, H, d, g):
    for t in range(space.starts[g], space.starts[g + 1]):
        pivot = H[t, t]
        if pivot > _PIVOT:
            for a in range(d.shape[0]):
                if a != t and H[t, a] != 0.0:
                    factor = H[t, a] / pivot
                    d[a] -= factor * d[t]
                    for b in range(d.shape[0]):
                        H[a, b] -= factor * H[t, b]
        for a in range(d.shape[0]):
            H[t, a], H[a, t] = 0.0, 0.0
        d[t] = 0.0
