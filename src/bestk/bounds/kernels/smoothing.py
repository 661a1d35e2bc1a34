"""The smoothed maximum over choices, and the mean choice, which is its gradient.

No proof rests on either: they only help to find a dual vector.
"""

import math

import numpy as np

from bestk.base.compiling import kernel, step
from bestk.base.constants import FREE
from bestk.bounds.kernels.choice import (
    ALL,
    NOTHING,
    ONE,
    PAIR,
    add_item,
    add_single,
    best_others,
    fill_after,
    list_items,
    pair_gain,
)

# Choices with weights below exp of this, over the largest, are left out.
_NEGLIGIBLE = -23.0


@kernel
def smoothed_gain(options, u, state, k, mu, room, b):
    """(mu log sum exp(gain / mu) over choices of at most k features, the largest gain)

    `b` receives the mean of T_S^-1 u_S under these weights. Sums of weights are kept relative to
    the largest one, so nothing overflows however small mu is, and logarithms are not needed: most
    items are decided, and their weights are one and (nearly) zero.
    """
    b[:] = 0.0
    list_items(options, u, state, k, room)
    _list_more(options, state, k, mu, room)
    fill_after(room)
    largest = room.after[0, k]
    if largest == -np.inf:
        return -np.inf, -np.inf
    least = largest + _NEGLIGIBLE * mu
    _count_alike(options, k, least, mu, room)
    _count_before(k, least, mu, room)
    _count_after(k, least, mu, room)
    _share_out(options, u, k, mu, room, b)
    return largest + mu * math.log(room.n_after[0, k]), largest


@kernel
def _exp(x):
    """exp(x) for x <= 0, zero where that is nothing beside one."""
    return math.exp(x) if x > _NEGLIGIBLE else 0.0


@step
def _list_more(options, state, k, mu, room):
    """Single features beyond the k best ones that are not negligible at this temperature."""
    items = room.n_items[0]
    all_but_one, largest = -np.inf, room.before[items, k]
    for m in range(k):
        all_but_one = max(all_but_one, room.before[items, m])
    least = max(largest, all_but_one) + _NEGLIGIBLE * mu - all_but_one
    if all_but_one == -np.inf:
        return
    for a in range(len(options.single)):
        if room.gains[a] >= least and not room.is_item[a] and state[options.single[a]] == FREE:
            add_single(room, a, False)
    for i in range(items, room.n_items[0]):
        add_item(room.before, i + 1, i, room.top, room.price, i)


@step
def _count_alike(options, k, least, mu, room):
    """How many choices of each item weigh as much as its best; what is negligible is dropped."""
    n_clusters, alike, top = len(options.first) - 1, room.alike, room.top
    for i in range(room.n_items[0]):
        for taken in range(NOTHING, ALL + 1):
            if top[i, taken] == -np.inf:
                continue
            paid = room.price[i] if taken == ALL else taken
            alike[i, taken] = 1.0
            if best_others(room, i, k - paid) + top[i, taken] < least:
                top[i, taken] = -np.inf
            elif i < n_clusters and taken == ONE:
                alike[i, ONE] = _alike_ones(options, i, top[i, ONE], mu, room)
            elif i < n_clusters and taken == PAIR:
                alike[i, PAIR] = _alike_pairs(options, i, top[i, PAIR], mu, room)


@step
def _alike_ones(options, i, top, mu, room):
    total = 0.0
    for a in range(options.first[i], options.first[i + 1]):
        total += _exp((room.ones[a] - top) / mu)
    return total


@step
def _alike_pairs(options, i, top, mu, room):
    start, size = options.first[i], options.first[i + 1] - options.first[i]
    total = 0.0
    for x in range(size):
        if room.firsts[start + x] - top > _NEGLIGIBLE * mu:
            for d in range(1, _last_distance(size, x) + 1):
                total += _exp((pair_gain(options, room, i, x, d) - top) / mu)
    return total


@kernel
def _last_distance(size, x):
    """Opposite members of a circle are one pair, that of the first of them."""
    return size // 2 - (size % 2 == 0 and x >= size // 2)


@step
def _count_before(k, least, mu, room):
    """n_before[i, m]: weights of the choices behind before[i, m], over the largest."""
    before, after, count = room.before, room.after, room.n_before
    count[0, :] = 0.0
    count[0, 0] = 1.0
    for i in range(room.n_items[0]):
        for m in range(k + 1):
            count[i + 1, m] = 0.0
            if before[i + 1, m] + after[i + 1, k - m] >= least:
                count[i + 1, m] = _counted(room, before, count, i, i, m, before[i + 1, m], mu)


@step
def _count_after(k, least, mu, room):
    before, after, count = room.before, room.after, room.n_after
    count[room.n_items[0], :] = 1.0
    for i in range(room.n_items[0] - 1, -1, -1):
        for m in range(k + 1):
            count[i, m] = 0.0
            if before[i, k - m] + after[i, m] >= least:
                count[i, m] = _counted(room, after, count, i, i + 1, m, after[i, m], mu)


@kernel
def _counted(room, totals, count, i, old, m, largest, mu):
    """Weights of m features less what item i gives, in row `old`, over that of `largest`."""
    total = 0.0
    for taken in range(NOTHING, ALL + 1):
        left = m - (room.price[i] if taken == ALL else taken)
        if left >= 0 and room.top[i, taken] > -np.inf and count[old, left] > 0.0:
            weight = _exp((totals[old, left] + room.top[i, taken] - largest) / mu)
            total += count[old, left] * room.alike[i, taken] * weight
    return total


@step
def _share_out(options, u, k, mu, room, b):
    n_clusters = len(options.first) - 1
    for i in range(room.n_items[0]):
        for taken in range(ONE, ALL + 1):
            if room.top[i, taken] == -np.inf:
                continue
            paid = room.price[i] if taken == ALL else taken
            # Each choice of the item that is alike its best has this probability.
            share = _weight_of_others(room, i, k - paid, room.top[i, taken], mu)
            share /= room.n_after[0, k]
            if i >= n_clusters:
                j = options.single[room.single[i]]
                b[j] = share * options.inverse_t * u[j]
            elif taken == ONE:
                _share_ones(options, i, share, mu, room, b)
            elif taken == PAIR:
                _share_pairs(options, i, share, mu, room, b)
            else:
                for a in range(options.first[i], options.first[i + 1]):
                    b[options.members[a]] += share * room.solved[a]


@step
def _weight_of_others(room, i, left, gain, mu):
    """Weights of all choices of the other items, `left` features at most, over the largest."""
    total, largest = 0.0, room.after[0, room.after.shape[1] - 1]
    for m in range(left + 1):
        ways = room.n_before[i, m] * room.n_after[i + 1, left - m]
        if ways > 0.0:
            others = room.before[i, m] + room.after[i + 1, left - m]
            total += ways * _exp((others + gain - largest) / mu)
    return total


@step
def _share_ones(options, i, share, mu, room, b):
    start, top = options.first[i], room.top[i, ONE]
    for a in range(start, options.first[i + 1]):
        weight = _exp((room.ones[a] - top) / mu)
        b[options.members[a]] += share * weight * options.ones[a] * room.slopes[start + a]


@step
def _share_pairs(options, i, share, mu, room, b):
    start, size = options.first[i], options.first[i + 1] - options.first[i]
    members, slopes, top = options.members, room.slopes, room.top[i, PAIR]
    for x in range(size):
        if room.firsts[start + x] - top <= _NEGLIGIBLE * mu:
            continue
        for d in range(1, _last_distance(size, x) + 1):
            weight = share * _exp((pair_gain(options, room, i, x, d) - top) / mu)
            a, q = 2 * start + x, options.first_pair[i] + (d - 1) * size + x
            second = options.rests[q] * (slopes[a + d] - options.ratios[q] * slopes[a])
            first = options.ones[start + x] * slopes[a] - options.ratios[q] * second
            b[members[start + x]] += weight * first
            b[members[start + (x + d) % size]] += weight * second
