"""The best choice of features among clusters and single ones, smoothed or exact.

A cluster may give nothing, one feature, a pair, or all of its features at the price of three; every
other feature is a choice of its own. Items are the clusters, then the single features.
"""

import math
from typing import NamedTuple

import numpy as np

from bestk.base.compiling import kernel, step
from bestk.base.constants import FREE, IN, OUT

# Weights below exp of this, over the largest, are left out of sums: these stay at least as large as
# their largest term, which is all that a proof needs.
_NEGLIGIBLE = -37.0
# What an item may give, and its columns in `_Weighed.weight`.
_NOTHING, _ONE, _PAIR, _ALL = 0, 1, 2, 3


class Options(NamedTuple):
    """Clusters as flat arrays: those of cluster i lie from ``first[i]`` to ``first[i + 1]``.

    ``ones`` are 1 / T_jj of each member, ``pairs`` (2, m) positions in ``members`` with the three
    different entries of their 2 x 2 inverses, ``inverses`` whole inverses by rows. The features
    ``single`` have the inverse charge ``inverse_t``.
    """

    members: np.ndarray
    first: np.ndarray
    ones: np.ndarray
    pairs: np.ndarray
    pair_inverses: np.ndarray
    first_pair: np.ndarray
    inverses: np.ndarray
    first_inverse: np.ndarray
    single: np.ndarray
    inverse_t: float


class _Weighed(NamedTuple):
    """Gains over mu of each member and pair, T^-1 u of whole clusters, log weights of items.

    ``weight`` (items, 4) is for taking 0, 1, 2 or all features, ``price`` how many "all" counts.
    """

    ones: np.ndarray
    pairs: np.ndarray
    solved: np.ndarray
    weight: np.ndarray
    price: np.ndarray


@kernel
def choose(options, u, state, k, mu, b, with_feature):
    """mu log sum exp(gain / mu) over choices of at most k features; tends to the largest gain.

    What is IN must be chosen, what is OUT must not, except that all of a cluster may stand for any
    choice of many. The gain of a choice S is u_S' T_S^-1 u_S (theory: cluster-bound). The sum over
    choices is at least the largest, so the value is an upper bound on it for every mu > 0.

    `b` receives the mean of T_S^-1 u_S under these weights. If `with_feature` is not empty, it
    receives for each feature an upper bound on the gain of choices that contain it.
    """
    n_clusters = len(options.first) - 1
    weighed = _weigh(options, u, state, mu)
    before, after = _totals(weighed.weight, weighed.price, k)
    everything = after[0, k]
    with_feature[:] = -np.inf
    if everything == -np.inf:
        return -np.inf
    for i in range(len(weighed.price)):
        for taken in range(_ONE, _ALL + 1):
            paid = weighed.price[i] if taken == _ALL else taken
            if weighed.weight[i, taken] == -np.inf or paid > k:
                continue
            others = _without_item(before, after, i, k - paid) - everything
            if i >= n_clusters:
                _share_single(options, i - n_clusters, weighed.weight[i, _ONE], others, u, b)
            elif taken == _ONE:
                _share_ones(options, weighed, i, others, u, b)
            elif taken == _PAIR:
                _share_pairs(options, weighed, i, others, u, b)
            else:
                _share_all(options, weighed, i, others, b)
            if len(with_feature):
                rest = others, everything
                _raise_with_feature(options, weighed, i, taken, rest, mu, with_feature)
    return everything * mu


@kernel
def _exp(x):
    """math.exp(x), zero where that is nothing beside one: at low temperatures nearly everywhere."""
    return math.exp(x) if x > _NEGLIGIBLE else 0.0


@kernel
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b - a <= _NEGLIGIBLE or b == -np.inf else a + math.log1p(math.exp(b - a))


@step
def _weigh(options, u, state, mu):
    members, single = options.members, options.single
    n_clusters = len(options.first) - 1
    items = n_clusters + len(single)
    weighed = _Weighed(
        np.empty(len(members)),
        np.empty(options.pairs.shape[1]),
        np.zeros(len(members)),
        np.full((items, 4), -np.inf),
        np.full(items, 3),
    )
    for i in range(n_clusters):
        inside, available = 0, 0
        for a in range(options.first[i], options.first[i + 1]):
            inside += state[members[a]] == IN
            available += state[members[a]] != OUT
        weighed.price[i] = max(3, inside)
        if inside == 0:
            weighed.weight[i, _NOTHING] = 0.0
        _weigh_ones(options, i, u, state, inside, mu, weighed)
        _weigh_pairs(options, i, u, state, inside, mu, weighed)
        if available > 2:
            _weigh_all(options, i, u, mu, weighed)
    for i in range(len(single)):
        if state[single[i]] != IN:
            weighed.weight[n_clusters + i, _NOTHING] = 0.0
        if state[single[i]] != OUT:
            gain = options.inverse_t * u[single[i]] ** 2
            weighed.weight[n_clusters + i, _ONE] = gain / mu
    return weighed


@step
def _weigh_ones(options, i, u, state, inside, mu, weighed):
    """One feature of cluster i: the one that is IN, or any free one if none is."""
    members, inverses, gains = options.members, options.ones, weighed.ones
    total, wanted = -np.inf, IN if inside == 1 else FREE
    for a in range(options.first[i], options.first[i + 1]):
        j = members[a]
        gains[a] = -np.inf
        if state[j] == wanted and inside <= 1:
            gains[a] = inverses[a] * u[j] ** 2 / mu
            total = _log_add(total, gains[a])
    weighed.weight[i, _ONE] = total


@step
def _weigh_pairs(options, i, u, state, inside, mu, weighed):
    """Two features of cluster i that are not OUT and have among them all that are IN."""
    members, pairs, inverse = options.members, options.pairs, options.pair_inverses
    gains, first, last = weighed.pairs, options.first_pair[i], options.first_pair[i + 1]
    top = -np.inf
    for q in range(first, last):
        x, y = members[pairs[0, q]], members[pairs[1, q]]
        gains[q] = -np.inf
        allowed = state[x] != OUT and state[y] != OUT
        if allowed and (state[x] == IN) + (state[y] == IN) == inside:
            gain = inverse[0, q] * u[x] * u[x] + 2.0 * inverse[1, q] * u[x] * u[y]
            gains[q] = (gain + inverse[2, q] * u[y] * u[y]) / mu
            top = max(top, gains[q])
    if top > -np.inf:
        total = 0.0
        for q in range(first, last):
            total += _exp(gains[q] - top)
        weighed.weight[i, _PAIR] = top + math.log(total)


@step
def _weigh_all(options, i, u, mu, weighed):
    """All features of cluster i, whatever their state: at least any choice of three or more."""
    members, inverses, solved = options.members, options.inverses, weighed.solved
    start, size = options.first[i], options.first[i + 1] - options.first[i]
    total = 0.0
    for a in range(size):
        for e in range(size):
            inverse = inverses[options.first_inverse[i] + a * size + e]
            solved[start + a] += inverse * u[members[start + e]]
        total += u[members[start + a]] * solved[start + a]
    weighed.weight[i, _ALL] = total / mu


@step
def _totals(weight, price, k):
    """before[i, m]: items below i with m features; after[i, m]: items from i on, at most m."""
    items = len(price)
    before, after = np.full((items + 1, k + 1), -np.inf), np.full((items + 1, k + 1), -np.inf)
    before[0, 0] = 0.0
    after[items] = 0.0
    for i in range(items):
        _add_item(before, i + 1, i, weight[i], price[i])
    for i in range(items - 1, -1, -1):
        _add_item(after, i, i + 1, weight[i], price[i])
    return before, after


@kernel
def _add_item(totals, new, old, weight, price):
    """totals[new, m]: those of `old` with m features less what the item gives."""
    for taken in range(4):
        if weight[taken] == -np.inf:
            continue
        paid = price if taken == _ALL else taken
        for m in range(paid, totals.shape[1]):
            more = totals[old, m - paid] + weight[taken]
            totals[new, m] = _log_add(totals[new, m], more)


@step
def _without_item(before, after, i, left):
    """Log weight of choosing at most `left` features from all items but i."""
    total = -np.inf
    for m in range(left + 1):
        total = _log_add(total, before[i, m] + after[i + 1, left - m])
    return total


@step
def _share_single(options, i, weight, others, u, b):
    j = options.single[i]
    b[j] = options.inverse_t * u[j] * _exp(others + weight)


@step
def _share_ones(options, weighed, i, others, u, b):
    members, inverses, gains = options.members, options.ones, weighed.ones
    for a in range(options.first[i], options.first[i + 1]):
        j = members[a]
        b[j] += inverses[a] * u[j] * _exp(others + gains[a])


@step
def _share_pairs(options, weighed, i, others, u, b):
    members, pairs, inverse = options.members, options.pairs, options.pair_inverses
    gains = weighed.pairs
    for q in range(options.first_pair[i], options.first_pair[i + 1]):
        x, y = members[pairs[0, q]], members[pairs[1, q]]
        share = _exp(others + gains[q])
        if share == 0.0:
            continue
        b[x] += share * (inverse[0, q] * u[x] + inverse[1, q] * u[y])
        b[y] += share * (inverse[1, q] * u[x] + inverse[2, q] * u[y])


@step
def _share_all(options, weighed, i, others, b):
    share = _exp(others + weighed.weight[i, _ALL])
    for a in range(options.first[i], options.first[i + 1]):
        b[options.members[a]] += share * weighed.solved[a]


@step
def _raise_with_feature(options, weighed, i, taken, rest, mu, with_feature):
    """Choices that take `taken` features of item i, for each feature that may be among them."""
    n_clusters = len(options.first) - 1
    others, everything = rest
    if i >= n_clusters:
        gain = (others + weighed.weight[i, _ONE] + everything) * mu
        with_feature[options.single[i - n_clusters]] = gain
    elif taken == _PAIR:
        for q in range(options.first_pair[i], options.first_pair[i + 1]):
            gain = (others + weighed.pairs[q] + everything) * mu
            for side in range(2):
                j = options.members[options.pairs[side, q]]
                with_feature[j] = max(with_feature[j], gain)
    else:
        for a in range(options.first[i], options.first[i + 1]):
            j = options.members[a]
            gain = weighed.ones[a] if taken == _ONE else weighed.weight[i, _ALL]
            with_feature[j] = max(with_feature[j], (others + gain + everything) * mu)
