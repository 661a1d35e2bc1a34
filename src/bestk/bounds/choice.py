"""The kernel behind the block bound: the best choice among clusters, smoothed or exact."""

import math

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.constants import FREE, IN, OUT


@kernel
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@kernel
def choose(
    u, state, members, first, ones, pairs, pair_inverse, first_pair, inverses, first_inverse,
    single, inverse_t, k, mu, b, with_feature,
):  # fmt: skip
    """mu log sum exp(gain / mu) over choices of at most k features; tends to the largest gain.

    A cluster may give nothing, one feature, a pair, or all of its features at the price of three;
    every other feature is a choice of its own. What is IN must be chosen, what is OUT must not,
    except that all of a cluster may stand for any choice of many. The gain of a choice S is
    u_S' T_S^-1 u_S. The sum over choices is at least the largest, so the value is an upper bound on
    it for every mu > 0.

    `b` receives the mean of T_S^-1 u_S under these weights. If `with_feature` is not empty, it
    receives for each feature an upper bound on the gain of choices that contain it.
    """
    n_clusters = len(first) - 1
    items = n_clusters + len(single)
    one_gain, pair_gain = np.empty(len(members)), np.empty(pairs.shape[1])
    solved = np.zeros(len(members))
    # Log weights of taking 0, 1, 2 or many features from each item; the price of many.
    weight = np.full((items, 4), -np.inf)
    price = np.full(items, 3)
    for i in range(n_clusters):
        start, size = first[i], first[i + 1] - first[i]
        inside, available = 0, 0
        for a in range(start, start + size):
            inside += state[members[a]] == IN
            available += state[members[a]] != OUT
        price[i] = max(3, inside)
        if inside == 0:
            weight[i, 0] = 0.0
        for a in range(start, start + size):
            one_gain[a] = -np.inf
            if state[members[a]] == (IN if inside == 1 else FREE) and inside <= 1:
                one_gain[a] = ones[a] * u[members[a]] ** 2 / mu
                weight[i, 1] = _log_add(weight[i, 1], one_gain[a])
        for q in range(first_pair[i], first_pair[i + 1]):
            j, e = members[pairs[0, q]], members[pairs[1, q]]
            pair_gain[q] = -np.inf
            if (
                state[j] != OUT
                and state[e] != OUT
                and (state[j] == IN) + (state[e] == IN) == inside
            ):
                gain = pair_inverse[0, q] * u[j] * u[j] + 2.0 * pair_inverse[1, q] * u[j] * u[e]
                pair_gain[q] = (gain + pair_inverse[2, q] * u[e] * u[e]) / mu
                weight[i, 2] = max(weight[i, 2], pair_gain[q])
        top, total = weight[i, 2], 0.0
        if top > -np.inf:
            for q in range(first_pair[i], first_pair[i + 1]):
                total += math.exp(pair_gain[q] - top)
            weight[i, 2] = top + math.log(total)
        if available > 2:
            total = 0.0
            for a in range(size):
                for e in range(size):
                    inverse = inverses[first_inverse[i] + a * size + e]
                    solved[start + a] += inverse * u[members[start + e]]
                total += u[members[start + a]] * solved[start + a]
            weight[i, 3] = total / mu
    for i in range(len(single)):
        if state[single[i]] != IN:
            weight[n_clusters + i, 0] = 0.0
        if state[single[i]] != OUT:
            weight[n_clusters + i, 1] = inverse_t * u[single[i]] ** 2 / mu

    # before[i, m]: items below i with m features; after[i, m]: items from i on with at most m.
    before, after = np.full((items + 1, k + 1), -np.inf), np.zeros((items + 1, k + 1))
    before[0, 0] = 0.0
    for i in range(items):
        for m in range(k + 1):
            for taken in range(4):
                left = m - (price[i] if taken == 3 else taken)
                if left >= 0:
                    before[i + 1, m] = _log_add(
                        before[i + 1, m], before[i, left] + weight[i, taken]
                    )
    for i in range(items - 1, -1, -1):
        for m in range(k + 1):
            after[i, m] = -np.inf
            for taken in range(4):
                left = m - (price[i] if taken == 3 else taken)
                if left >= 0:
                    after[i, m] = _log_add(after[i, m], after[i + 1, left] + weight[i, taken])
    everything = after[0, k]
    with_feature[:] = -np.inf
    if everything == -np.inf:
        return -np.inf

    for i in range(items):
        for taken in range(1, 4):
            paid = price[i] if taken == 3 else taken
            if weight[i, taken] == -np.inf or paid > k:
                continue
            others = -np.inf
            for m in range(k + 1 - paid):
                others = _log_add(others, before[i, m] + after[i + 1, k - paid - m])
            others -= everything
            if i >= n_clusters:
                j = single[i - n_clusters]
                b[j] = inverse_t * u[j] * math.exp(others + weight[i, 1])
                if len(with_feature):
                    with_feature[j] = (others + weight[i, 1] + everything) * mu
                break
            if taken == 1:
                for a in range(first[i], first[i + 1]):
                    j = members[a]
                    b[j] += ones[a] * u[j] * math.exp(others + one_gain[a])
                    if len(with_feature):
                        with_feature[j] = max(
                            with_feature[j], (others + one_gain[a] + everything) * mu
                        )
            elif taken == 2:
                for q in range(first_pair[i], first_pair[i + 1]):
                    x, y = members[pairs[0, q]], members[pairs[1, q]]
                    share = math.exp(others + pair_gain[q])
                    b[x] += share * (pair_inverse[0, q] * u[x] + pair_inverse[1, q] * u[y])
                    b[y] += share * (pair_inverse[1, q] * u[x] + pair_inverse[2, q] * u[y])
                    if len(with_feature):
                        value = (others + pair_gain[q] + everything) * mu
                        with_feature[x] = max(with_feature[x], value)
                        with_feature[y] = max(with_feature[y], value)
            else:
                share = math.exp(others + weight[i, 3])
                for a in range(first[i], first[i + 1]):
                    b[members[a]] += share * solved[a]
                    if len(with_feature):
                        value = (others + weight[i, 3] + everything) * mu
                        with_feature[members[a]] = max(with_feature[members[a]], value)
    return everything * mu
