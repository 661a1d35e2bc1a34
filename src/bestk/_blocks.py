"""The kernel behind the block bound: the best choice among clusters, smoothed or exact."""

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def _log_add(a, b):
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + math.log1p(math.exp(b - a))


@njit(cache=True, nogil=True, error_model="numpy")
def choose(
    u, members, first, ones, pairs, pair_inverse, first_pair, inverses, first_inverse, single,
    inverse_t, k, mu, b, with_feature,
):  # fmt: skip
    """mu log sum exp(gain / mu) over choices of at most k features; tends to the largest gain.

    A cluster may give nothing, one feature, a pair, or all of its features at the price of three;
    every other feature is a choice of its own. The gain of a choice S is u_S' T_S^-1 u_S. The sum
    over choices is at least the largest, so the value is an upper bound on it for every mu > 0.

    `b` receives the mean of T_S^-1 u_S under these weights. If `with_feature` is not empty, it
    receives for each feature an upper bound on the gain of choices that contain it.
    """
    n_clusters = len(first) - 1
    items = n_clusters + len(single)
    one_gain, pair_gain = np.empty(len(members)), np.empty(pairs.shape[1])
    solved = np.zeros(len(members))
    # Log weights of taking 0, 1, 2 or (at the price of) 3 features from each item.
    weight = np.full((items, 4), -np.inf)
    weight[:, 0] = 0.0
    for i in range(n_clusters):
        start, size = first[i], first[i + 1] - first[i]
        for a in range(start, start + size):
            one_gain[a] = ones[a] * u[members[a]] ** 2 / mu
            weight[i, 1] = _log_add(weight[i, 1], one_gain[a])
        for q in range(first_pair[i], first_pair[i + 1]):
            x, y = u[members[pairs[0, q]]], u[members[pairs[1, q]]]
            gain = pair_inverse[0, q] * x * x + 2.0 * pair_inverse[1, q] * x * y
            pair_gain[q] = (gain + pair_inverse[2, q] * y * y) / mu
            weight[i, 2] = max(weight[i, 2], pair_gain[q])
        top, total = weight[i, 2], 0.0
        for q in range(first_pair[i], first_pair[i + 1]):
            total += math.exp(pair_gain[q] - top)
        if total > 0.0:
            weight[i, 2] = top + math.log(total)
        if size > 2:
            total = 0.0
            for a in range(size):
                for e in range(size):
                    inverse = inverses[first_inverse[i] + a * size + e]
                    solved[start + a] += inverse * u[members[start + e]]
                total += u[members[start + a]] * solved[start + a]
            weight[i, 3] = total / mu
    for i in range(len(single)):
        weight[n_clusters + i, 1] = inverse_t * u[single[i]] ** 2 / mu

    # before[i, m]: items below i with m features; after[i, m]: items from i on with at most m.
    before, after = np.full((items + 1, k + 1), -np.inf), np.zeros((items + 1, k + 1))
    before[0, 0] = 0.0
    for i in range(items):
        for m in range(k + 1):
            for taken in range(min(m, 3) + 1):
                before[i + 1, m] = _log_add(
                    before[i + 1, m], before[i, m - taken] + weight[i, taken]
                )
    for i in range(items - 1, -1, -1):
        for m in range(k + 1):
            after[i, m] = -np.inf
            for taken in range(min(m, 3) + 1):
                after[i, m] = _log_add(after[i, m], after[i + 1, m - taken] + weight[i, taken])
    everything = after[0, k]

    for i in range(items):
        for taken in range(1, min(k, 3) + 1):
            if weight[i, taken] == -np.inf:
                continue
            others = -np.inf
            for m in range(k + 1 - taken):
                others = _log_add(others, before[i, m] + after[i + 1, k - taken - m])
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
                        with_feature[j] = (others + one_gain[a] + everything) * mu
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
