"""Compiled: the best way to share out k features among clusters (theory: cluster-bound)."""

import numpy as np
from numba import njit

FREE, IN, OUT = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def fill_options(
    u, state, members, first, ones, pair_index, pair_factor, first_pair, whole, i, options, price
):
    """options[i]: largest gain of cluster i with no, one, two or more features; -inf: impossible.

    What is IN must be among them. More than two are charged like the whole cluster, at the price
    of three, or of all that must be there.
    """
    start, stop = first[i], first[i + 1]
    must, may = 0, 0
    for a in range(start, stop):
        must += state[members[a]] == IN
        may += state[members[a]] != OUT
    options[i, :] = -np.inf
    if must == 0:
        options[i, 0] = 0.0
    for a in range(start, stop):
        j = members[a]
        if state[j] != OUT and must == (state[j] == IN):
            options[i, 1] = max(options[i, 1], ones[a] * u[j] * u[j])
    for q in range(first_pair[i], first_pair[i + 1]):
        x, y = members[pair_index[q, 0]], members[pair_index[q, 1]]
        if state[x] != OUT and state[y] != OUT and must == (state[x] == IN) + (state[y] == IN):
            w = u[x] * pair_factor[q, 0]
            v = (u[y] - pair_factor[q, 1] * w) * pair_factor[q, 2]
            options[i, 2] = max(options[i, 2], w * w + v * v)
    if may > 2:
        options[i, 3] = whole[i]
    price[i] = max(3, must)


@njit(cache=True, nogil=True, error_model="numpy")
def _shared_out(options, price, tops, forced, n_forced, k):
    """The largest total: clusters by dynamic programming, then the best single features.

    tops[m] is the sum of the m largest FREE single features.
    """
    if n_forced > k:
        return -np.inf
    best = np.full(k + 1, -np.inf)  # clusters so far with exactly m features
    best[0] = 0.0
    for i in range(len(options)):
        new = np.full(k + 1, -np.inf)
        for m in range(k + 1):
            for taken in range(4):
                left = m - (price[i] if taken == 3 else taken)
                if left >= 0 and options[i, taken] > -np.inf:
                    new[m] = max(new[m], best[left] + options[i, taken])
        best = new
    total = -np.inf
    for m in range(k - n_forced + 1):
        total = max(total, best[m] + forced + tops[min(k - n_forced - m, len(tops) - 1)])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _singles(single, gain, state, order, k, tops):
    """Fill tops; (sum of the gains that must be there, how many)."""
    forced, n_forced = 0.0, 0
    for a in range(len(single)):
        if state[single[a]] == IN:
            forced += gain[a]
            n_forced += 1
    tops[0] = 0.0
    count = 0
    for a in order:
        if count == k:
            break
        if state[single[a]] == FREE:
            tops[count + 1] = tops[count] + gain[a]
            count += 1
    for m in range(count, k):
        tops[m + 1] = tops[count]
    return forced, n_forced


@njit(cache=True, nogil=True, error_model="numpy")
def totals(
    u, state, members, first, ones, pair_index, pair_factor, first_pair, whole,
    options, price, owner, single, gain, k, fixed, forced_to, out,
):  # fmt: skip
    """out[0]: the largest total; out[1 + i]: the same with feature fixed[i] in another state."""
    order = np.argsort(-gain)
    tops = np.zeros(k + 1)
    forced, n_forced = _singles(single, gain, state, order, k, tops)
    out[0] = _shared_out(options, price, tops, forced, n_forced, k)
    other = np.zeros(k + 1)
    for i in range(len(fixed)):
        j = fixed[i]
        before = state[j]
        state[j] = forced_to[i]
        cluster = owner[j]
        if cluster >= 0:
            fill_options(
                u, state, members, first, ones, pair_index, pair_factor, first_pair, whole,
                cluster, options, price,
            )  # fmt: skip
            out[1 + i] = _shared_out(options, price, tops, forced, n_forced, k)
        else:
            more, n_more = _singles(single, gain, state, order, k, other)
            out[1 + i] = _shared_out(options, price, other, more, n_more, k)
        state[j] = before
        if cluster >= 0:
            fill_options(
                u, state, members, first, ones, pair_index, pair_factor, first_pair, whole,
                cluster, options, price,
            )  # fmt: skip
