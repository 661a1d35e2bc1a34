"""The best choice of features among clusters and single ones.

A cluster may give nothing, one feature, a pair, or all of its features at the price of three; every
other feature is a choice of its own. Items are the clusters, then the single features that may
matter: those that must be chosen, and the best of the others.
"""

from typing import NamedTuple

import numpy as np
from numba import uintp

from bestk.base.arithmetic import dot_parts, fma
from bestk.base.compiling import kernel, step
from bestk.base.constants import FREE, IN, OUT

# What an item may give, and its columns in `Room.top`.
NOTHING, ONE, PAIR, ALL = 0, 1, 2, 3


class Options(NamedTuple):
    """Clusters as flat arrays: those of cluster i lie from ``first[i]`` to ``first[i + 1]``.

    ``ones`` are 1 / T_xx of each member. Of its pairs, each member x comes first in those with the
    next half of its cluster, in a circle. With y, the d-th after x, it gains what x does plus
    rest (u_y - ratio u_x)^2, where ``ratios`` are T_xy / T_xx and ``rests`` 1 / (T_yy - T_xy^2 /
    T_xx): rows for each d, from ``first_pair[i]`` on. ``inverses`` are inverses of T by rows. The
    features ``single`` have the inverse charge ``inverse_t``.
    """

    members: np.ndarray
    first: np.ndarray
    ones: np.ndarray
    first_pair: np.ndarray
    ratios: np.ndarray
    rests: np.ndarray
    first_inverse: np.ndarray
    inverses: np.ndarray
    single: np.ndarray
    inverse_t: float


class Room(NamedTuple):
    """Where choices are worked out: made once, filled by every call.

    For members of clusters: the slopes u, zero or -inf where it is OUT, whether it is IN (these
    three twice for each cluster, so that circles can be walked), what it gains as the one choice of
    its cluster and, at most, as the first of a pair, and T^-1 u. What is not allowed gains -inf.
    ``gains`` are those of single features, and ``is_item`` which of them are items.

    For items, of which there are ``n_items``: which single feature it is, how many members of a
    cluster are IN, the largest gain ``top`` of taking 0, 1, 2 or all features, how many features
    "all" counts as (``price``), how many choices weigh as much as the largest (``alike``).
    ``before[i, m]`` is the largest gain of items below i with m features, ``after[i, m]`` that of
    items from i on with at most m; ``n_before`` and ``n_after`` are numbers of choices, likewise.
    """

    slopes: np.ndarray
    if_out: np.ndarray
    is_in: np.ndarray
    ones: np.ndarray
    firsts: np.ndarray
    solved: np.ndarray
    gains: np.ndarray
    is_item: np.ndarray
    n_items: np.ndarray
    single: np.ndarray
    inside: np.ndarray
    available: np.ndarray
    price: np.ndarray
    top: np.ndarray
    alike: np.ndarray
    before: np.ndarray
    after: np.ndarray
    n_before: np.ndarray
    n_after: np.ndarray


@kernel
def room_for_choices(options, k):
    m, singles = len(options.members), len(options.single)
    items = len(options.first) - 1 + singles
    return Room(
        np.empty(2 * m), np.empty(2 * m), np.empty(2 * m, np.bool_),
        np.empty(m), np.empty(m), np.empty(m),
        np.empty(singles), np.empty(singles, np.bool_),
        np.empty(1, np.int64), np.empty(items, np.int64), np.empty(items, np.int64),
        np.empty(items, np.int64), np.empty(items, np.int64),
        np.empty((items, 4)), np.empty((items, 4)),
        np.empty((items + 1, k + 1)), np.empty((items + 1, k + 1)),
        np.empty((items + 1, k + 1)), np.empty((items + 1, k + 1)),
    )  # fmt: skip


@kernel
def enter(options, state, room):
    """Take over the state of a node: what follows is about its choices."""
    members = options.members
    for i in range(len(options.first) - 1):
        start, size = options.first[i], options.first[i + 1] - options.first[i]
        room.inside[i], room.available[i] = 0, 0
        for x in range(size):
            own = state[members[start + x]]
            for a in (2 * start + x, 2 * start + x + size):
                room.if_out[a] = -np.inf if own == OUT else 0.0
                room.is_in[a] = own == IN
            room.inside[i] += own == IN
            room.available[i] += own != OUT
        room.price[i] = max(3, room.inside[i])


@kernel
def largest_gain(options, u, state, k, room):
    """The largest u_S' T_S^-1 u_S over choices S of at most k features (theory: cluster-bound).

    What is IN must be chosen, what is OUT must not, except that all of a cluster may stand for any
    choice of many. -inf if nothing can be chosen. After `enter`.
    """
    list_items(options, u, state, k, room)
    fill_after(room)
    return room.after[0, k]


@kernel
def largest_gains_with(options, state, k, room, with_feature):
    """For each feature, the largest gain of choices that contain it; after `largest_gain`.

    -inf where there is none.
    """
    members, single, n_clusters = options.members, options.single, len(options.first) - 1
    with_feature[:] = -np.inf
    for i in range(room.n_items[0]):
        if i >= n_clusters:
            a = room.single[i]
            with_feature[single[a]] = best_others(room, i, k - 1) + room.gains[a]
            continue
        one, two = best_others(room, i, k - 1), best_others(room, i, k - 2)
        whole = best_others(room, i, k - room.price[i]) + room.top[i, ALL]
        for a in range(options.first[i], options.first[i + 1]):
            if state[members[a]] != OUT:
                with_feature[members[a]] = max(one + room.ones[a], whole)
        _raise_by_pairs(options, room, i, two, with_feature)
    # A single feature that is no item is beside the best of all others.
    for a in range(len(single)):
        if state[single[a]] == FREE and not room.is_item[a] and k > 0:
            with_feature[single[a]] = room.after[0, k - 1] + room.gains[a]


@step
def _raise_by_pairs(options, room, i, others, with_feature):
    start, size = options.first[i], options.first[i + 1] - options.first[i]
    for x in range(size):
        if room.firsts[start + x] == -np.inf:
            continue
        for d in range(1, size // 2 + 1):
            gain = others + pair_gain(options, room, i, x, d)
            for j in (options.members[start + x], options.members[start + (x + d) % size]):
                with_feature[j] = max(with_feature[j], gain)


@kernel
def pair_gain(options, room, i, x, d):
    """What member x of cluster i and the d-th after it gain together."""
    start, size = options.first[i], options.first[i + 1] - options.first[i]
    a, q = 2 * start + x, options.first_pair[i] + (d - 1) * size + x
    slope, inside = room.slopes[a], room.inside[i]
    if inside > 0 and room.is_in[a] + room.is_in[a + d] != inside:
        return -np.inf
    rest = room.slopes[a + d] - options.ratios[q] * slope
    gain = options.ones[start + x] * slope * slope + options.rests[q] * rest * rest
    return gain + room.if_out[a] + room.if_out[a + d]


@kernel
def best_others(room, i, left):
    """The largest gain of all items but i with at most `left` features."""
    best = -np.inf
    for m in range(left + 1):
        best = max(best, room.before[i, m] + room.after[i + 1, left - m])
    return best


# Items --------------------------------------------------------------------------------------


@kernel
def list_items(options, u, state, k, room):
    """Fill the items with what they gain, and `before`.

    At most k single features are of use beside those that are IN: the k best ones.
    """
    n_clusters = len(options.first) - 1
    for i in range(n_clusters):
        _weigh_cluster(options, u, i, room)
    room.n_items[0] = n_clusters
    _list_singles(options, u, state, k, room)
    room.before[0, :] = -np.inf
    room.before[0, 0] = 0.0
    for i in range(room.n_items[0]):
        add_item(room.before, i + 1, i, room.top, room.price, i)


@kernel
def fill_after(room):
    items = room.n_items[0]
    room.after[items, :] = 0.0
    for i in range(items - 1, -1, -1):
        add_item(room.after, i, i + 1, room.top, room.price, i)


@kernel
def add_item(totals, new, old, top, price, i):
    """totals[new, m]: the largest of `old` with m features less what item i gives."""
    k = totals.shape[1] - 1
    nothing = top[i, NOTHING]
    for m in range(k + 1):
        totals[new, m] = totals[old, m] + nothing
    for taken in range(ONE, ALL + 1):
        gain = top[i, taken]
        if gain > -np.inf:
            paid = price[i] if taken == ALL else taken
            for m in range(paid, k + 1):
                totals[new, m] = max(totals[new, m], totals[old, m - paid] + gain)


@step
def _weigh_cluster(options, u, i, room):
    start, size = options.first[i], options.first[i + 1] - options.first[i]
    for x in range(size):
        slope = u[options.members[start + x]]
        room.slopes[2 * start + x], room.slopes[2 * start + x + size] = slope, slope
    room.top[i, NOTHING] = 0.0 if room.inside[i] == 0 else -np.inf
    room.top[i, ONE] = _weigh_ones(options, i, room)
    room.top[i, PAIR] = _weigh_pairs(options, i, room)
    room.top[i, ALL] = _weigh_all(options, i, room) if room.available[i] > 2 else -np.inf


@step
def _weigh_ones(options, i, room):
    """One feature of cluster i: the one that is IN, or any free one if none is."""
    start, inside, top = options.first[i], room.inside[i], -np.inf
    for a in range(start, options.first[i + 1]):
        slope = room.slopes[start + a]
        room.ones[a] = options.ones[a] * slope * slope + room.if_out[start + a]
        if room.is_in[start + a] != inside:
            room.ones[a] = -np.inf
        top = max(top, room.ones[a])
    return top


@step
def _weigh_pairs(options, i, room):
    """Two features of cluster i that are not OUT and have among them all that are IN."""
    firsts, start, size = room.firsts, options.first[i], options.first[i + 1] - options.first[i]
    if room.inside[i] == 0:
        _weigh_free_pairs(
            options.ratios, options.rests, options.first_pair[i], options.ones, room.slopes,
            room.if_out, start, size, firsts,
        )  # fmt: skip
    else:
        for x in range(size):
            firsts[start + x] = -np.inf
            for d in range(1, size // 2 + 1):
                firsts[start + x] = max(firsts[start + x], pair_gain(options, room, i, x, d))
    top = -np.inf
    for a in range(start, start + size):
        top = max(top, firsts[a])
    return top


@kernel
def _weigh_free_pairs(ratios, rests, q, ones, slopes, if_out, start, size, firsts):
    """The same where none is IN: the hot loop, one pass over all members for each distance."""
    q, size, start = uintp(q), uintp(size), uintp(start)
    a = start + start
    for x in range(size):
        firsts[start + x] = -np.inf
    for d in range(uintp(1), size // uintp(2) + uintp(1)):
        b = a + d
        for x in range(size):
            rest = fma(-ratios[q + x], slopes[a + x], slopes[b + x])
            gain, best = fma(rests[q + x] * rest, rest, if_out[b + x]), firsts[start + x]
            firsts[start + x] = gain if gain > best else best
        q += size
    for x in range(size):
        slope = slopes[a + x]
        firsts[start + x] += fma(ones[start + x] * slope, slope, if_out[a + x])


@step
def _weigh_all(options, i, room):
    """All features of cluster i, whatever their state: at least any choice of three or more."""
    start, size = options.first[i], options.first[i + 1] - options.first[i]
    total = 0.0
    for x in range(size):
        q = options.first_inverse[i] + x * size
        solved = dot_parts(options.inverses, q, room.slopes, 2 * start, size)
        room.solved[start + x] = solved
        total += room.slopes[2 * start + x] * solved
    return total


@step
def _list_singles(options, u, state, k, room):
    single, first = options.single, room.n_items[0]
    for a in range(len(single)):
        j = single[a]
        room.gains[a] = options.inverse_t * u[j] * u[j]
        room.is_item[a] = False
        if state[j] == IN:
            add_single(room, a, True)
    best = room.n_items[0]
    _sort_best(room, options, state, best, k)
    for i in range(first, room.n_items[0]):
        room.is_item[room.single[i]] = True


@step
def _sort_best(room, options, state, first, k):
    """Add the k best FREE single features, best first."""
    gains, item = room.gains, room.single
    for a in range(len(gains)):
        if state[options.single[a]] != FREE:
            continue
        i = room.n_items[0]
        if i < first + k:
            add_single(room, a, False)
        elif i == first or gains[a] <= gains[item[i - 1]]:
            continue
        i = room.n_items[0] - 1
        while i > first and gains[a] > gains[item[i - 1]]:
            item[i], room.top[i, ONE] = item[i - 1], room.top[i - 1, ONE]
            i -= 1
        item[i], room.top[i, ONE] = a, gains[a]


@kernel
def add_single(room, a, must):
    """One more item: single feature a."""
    i = room.n_items[0]
    room.single[i] = a
    room.top[i, NOTHING] = -np.inf if must else 0.0
    room.top[i, ONE] = room.gains[a]
    room.top[i, PAIR], room.top[i, ALL] = -np.inf, -np.inf
    room.n_items[0] = i + 1
