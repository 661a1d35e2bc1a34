"""Every choice that a node allows, tried by elimination, compiled.

What is left of A and c beside the groups chosen so far says what another group gains. Choices that
break a rule are cut off as soon as that is certain. All runs on A minus a shift that covers the
error of the data and of the elimination (theory, rounding): what is passed over is proven not to be
better, with bounds and constraints all the more; what is listed has to be fitted.
"""

import numpy as np

from bestk.base.compiling import kernel, put, step
from bestk.base.constants import FREE, IN, OUT
from bestk.choices.kernels.propagation import POSSIBLE, may_stop, n_counted, propagate
from bestk.supports.scan import condition, scan

# What is left of y'y, below which products have lost the digits that tell models apart.
_NEARLY_PERFECT = 1e-6
# Supports of full size that a scan may list, and features whose subsets are looked through.
_MOST_SUPPORTS, MOST_SCANNED = 128, 8
# Pivots below this say nothing: the groups are nearly dependent.
_PIVOT = 1e-9


@kernel
def multiplies_of(n_groups, n_coordinates, r):
    """Multiplications to try all choices of up to r of the groups, roughly."""
    matrices, choices = 1.0, 1.0
    for i in range(1, r + 1):
        choices *= (n_groups - i + 1) / i
        if i < r:
            matrices += choices
        if choices > 1e12:
            return np.inf
    # What is left for later groups shrinks with their number.
    return matrices * n_coordinates * n_coordinates / r + 8.0 * choices


@step
def try_all(space, k, shift, slack, value, state, hits):
    """List the choices of a node that may have a value below `value`, as rows of hits.

    Returns how many, or -1 where there are too many, or where products cannot tell.
    """
    m, p = state.shape[0], space.c.shape[0]
    inside, free, n_inside, n_coordinates = _sides(space, state)
    if n_coordinates == 0:
        return _try_one(space, shift, slack, value, state, inside[:n_inside], hits)
    r = k - n_counted(space.rules, state)
    depth_of = min(r, m) + 1
    states = np.empty((depth_of + 1, m), np.int8)
    H = np.empty((depth_of + 1, n_coordinates, n_coordinates))
    d = np.empty((depth_of + 1, n_coordinates))
    left, following = np.empty(depth_of + 1), np.zeros(depth_of + 1, np.int64)
    place, room = np.full(p, -1, np.int64), np.empty(m, np.int8)
    for i in range(n_coordinates):
        place[free[i]] = i
    gain = condition(space.A, space.c, inside[:n_inside], free[:n_coordinates], shift, H[0], d[0])
    if gain < 0.0 or 1.0 - gain < _NEARLY_PERFECT:
        return -1
    for i in range(n_coordinates):
        for j in range(i):
            H[0, i, j] = H[0, j, i]
    put(states[0], state)
    left[0] = 1.0 - gain - slack
    n_hits = _stop_here(space, k, value, states[0], left[0], room, hits, np.int64(0))
    depth = 0
    while depth >= 0 and n_hits >= 0:
        g = following[depth]
        if g == m:
            depth -= 1
            continue
        following[depth] = g + 1
        own = states[depth]
        if own[g] != FREE:
            continue
        is_last = k - n_counted(space.rules, own) == 1
        if is_last and left[depth] - _gain(space, place, H[depth], d[depth], g) >= value:
            continue
        child = states[depth + 1]
        for other in range(m):  # those before g have been tried
            child[other] = OUT if other < g and own[other] == FREE else own[other]
        child[g] = IN
        if propagate(space.rules, k, child) != POSSIBLE:
            continue
        for i in range(n_coordinates):
            put(H[depth + 1, i], H[depth, i])
        put(d[depth + 1], d[depth])
        left[depth + 1] = left[depth]
        for other in range(m):
            if child[other] == IN and own[other] != IN:
                gain = _eliminate(space, place, H[depth + 1], d[depth + 1], other)
                if gain < 0.0:
                    return -1
                left[depth + 1] -= gain
        if left[depth + 1] < _NEARLY_PERFECT:
            return -1
        n_hits = _stop_here(space, k, value, child, left[depth + 1], room, hits, n_hits)
        has_free = False
        for other in range(m):
            has_free = has_free or child[other] == FREE
        if has_free:
            depth += 1
            following[depth] = g + 1
    return n_hits


@kernel
def _sides(space, state):
    """(coordinates IN, coordinates FREE, how many of each)"""
    p = space.c.shape[0]
    inside, free, n_inside, n_free = np.empty(p, np.int64), np.empty(p, np.int64), 0, 0
    for g in range(state.shape[0]):
        for j in range(space.starts[g], space.starts[g + 1]):
            if state[g] == IN:
                inside[n_inside] = j
                n_inside += 1
            elif state[g] == FREE:
                free[n_free] = j
                n_free += 1
    return inside, free, n_inside, n_free


@step
def _try_one(space, shift, slack, value, state, inside, hits):
    """A node that has nothing left to choose but groups that add nothing."""
    nothing = np.empty(0)
    gain = condition(space.A, space.c, inside, inside[:0], shift, np.empty((0, 0)), nothing)
    is_known = gain >= 0.0 and 1.0 - gain >= _NEARLY_PERFECT
    if is_known and 1.0 - gain - slack >= value:
        return 0
    for g in range(state.shape[0]):
        if state[g] == FREE:
            return -1  # rules may ask for some of them: branching finds out
    put(hits[0], state)
    return 1


@kernel
def _stop_here(space, k, value, state, left, room, hits, n_hits):
    """List the choice without anything that is FREE, if it is allowed and may be better."""
    if left >= value or not may_stop(space.rules, k, state, room):
        return n_hits
    for g in range(state.shape[0]):
        # The rules ask for more: that is another choice, and will be tried.
        if room[g] == IN and state[g] == FREE:
            return n_hits
    if n_hits == hits.shape[0]:
        return -1
    put(hits[n_hits], room)
    return n_hits + 1


@step
def _gain(space, place, H, d, g):
    """At least what group g alone gains; infinite where that cannot be told."""
    first, end = space.starts[g], space.starts[g + 1]
    if end - first == 1:
        i = place[first]
        return d[i] * d[i] / H[i, i] if H[i, i] > _PIVOT else np.inf
    return np.inf


@step
def _eliminate(space, place, H, d, g):
    """Condition H and d on the coordinates of group g; its gain, or -1."""
    total, size = 0.0, d.shape[0]
    for j in range(space.starts[g], space.starts[g + 1]):
        t = place[j]
        pivot = H[t, t]
        if not pivot > _PIVOT:
            return -1.0
        total += d[t] * d[t] / pivot
        for a in range(size):
            if a != t and H[t, a] != 0.0:
                factor = H[t, a] / pivot
                d[a] -= factor * d[t]
                for b in range(size):
                    H[a, b] -= factor * H[t, b]
        for a in range(size):
            H[t, a] = 0.0
            H[a, t] = 0.0
        d[t] = 0.0
    return total


@step
def scan_all(space, k, shift, slack, value, state, hits):
    """`try_all` where every FREE group is one coordinate: supports of full size, as if no rule was.

    Whatever may be better is a part of one that is listed: values never rise when a group is added.
    So of a support that breaks a rule, its largest parts that break none are listed instead.
    """
    inside, free, n_inside, n_free = _sides(space, state)
    inside, free = inside[:n_inside], free[:n_free]
    r = k - n_counted(space.rules, state)
    H, d = np.empty((n_free, n_free)), np.empty(n_free)
    gain = condition(space.A, space.c, inside, free, shift, H, d)
    if gain < 0.0 or 1.0 - gain < _NEARLY_PERFECT:
        return -1
    needed = 1.0 - value - gain - slack
    if not needed > 0.0:  # all of them would be listed
        return -1
    rows = np.empty((_MOST_SUPPORTS, r), np.int64)
    count = scan(H, d, needed, r, np.int64(0), n_free, rows)
    if count < 0:
        return -1
    owner = np.empty(space.c.shape[0], np.int64)
    for g in range(state.shape[0]):
        for j in range(space.starts[g], space.starts[g + 1]):
            owner[j] = g
    n_hits = np.int64(0)
    for row in range(count):
        if rows[row, r - 1] < 0:
            return -1
        n_hits = _list_parts(
            space, k, shift, slack, value, state, inside, free, owner, rows[row], hits, n_hits
        )
        if n_hits < 0:
            return -1
    return n_hits


@step
def _list_parts(space, k, shift, slack, value, state, inside, free, owner, support, hits, n_hits):
    """List the largest parts of a support that the rules allow and that may be better."""
    m, r, n_inside = state.shape[0], support.shape[0], inside.shape[0]
    child, chosen = np.empty(m, np.int8), np.empty(n_inside + r, np.int64)
    accepted, n_accepted = np.empty(1 << r, np.int64), np.int64(0)
    put(chosen, inside)
    nothing = np.empty(0)
    for size in range(r, -1, -1):
        for mask in range(1 << r):
            if _n_bits(mask) != size or _is_part(mask, accepted, n_accepted):
                continue
            for g in range(m):
                child[g] = OUT if state[g] == FREE else state[g]
            length = n_inside
            for i in range(r):
                if mask >> i & 1:
                    child[owner[free[support[i]]]] = IN
                    chosen[length] = free[support[i]]
                    length += 1
            if propagate(space.rules, k, child) != POSSIBLE:
                continue
            accepted[n_accepted] = mask
            n_accepted += 1
            gain = condition(
                space.A, space.c, chosen[:length], chosen[:0], shift, np.empty((0, 0)), nothing
            )
            if (gain < 0.0 or 1.0 - gain - slack < value) and not _is_listed(child, hits, n_hits):
                if n_hits == hits.shape[0]:
                    return -1
                put(hits[n_hits], child)
                n_hits += 1
    return n_hits


@step
def _n_bits(mask):
    count = 0
    while mask:
        count += mask & 1
        mask >>= 1
    return count


@step
def _is_part(mask, accepted, n_accepted):
    found = False
    for i in range(n_accepted):
        found = found or mask & accepted[i] == mask
    return found


@step
def _is_listed(child, hits, n_hits):
    for i in range(n_hits):
        g = 0
        while g < child.shape[0] and hits[i, g] == child[g]:
            g += 1
        if g == child.shape[0]:
            return True
    return False
