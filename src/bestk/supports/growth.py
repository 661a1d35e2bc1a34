"""Compiled steps of beam search and swaps where A is an array: no time is lost between them."""

import math

import numpy as np

from bestk.base.arithmetic import add_row
from bestk.base.compiling import kernel

# A feature whose residual variance given a support is below this adds nothing but rounding.
DEPENDENT = 1e-10
# The same where scores only suggest swaps: below it they would differ by more than ties may.
_UNSURE = 1e-7
# Scores are cut to twelve digits: ties go to the first feature, not to rounding.
STEADY = 2.0**40


@kernel
def best_children(supports, gain, variance, moment, mask, tags, width):
    """(parents, features) of the `width` best distinct supports with one feature more.

    Sums of random `tags` tell sets apart; a collision would cost one candidate, no more.
    """
    parents, size = supports.shape
    p = mask.shape[0]
    # The best so far, in order: which set it is, its score, and where it comes from.
    sets, best, where = np.empty(width, np.uint64), np.empty(width), np.empty(width, np.int64)
    count, is_member = 0, np.empty(p, np.bool_)
    for row in range(parents):
        key = np.uint64(0)
        for j in range(p):
            is_member[j] = False
        for i in range(size):
            key += tags[supports[row, i]]
            is_member[supports[row, i]] = True
        for j in range(p):
            v, total = variance[row, j], gain[row]
            if v > DEPENDENT:
                total += moment[row, j] * moment[row, j] / v
            score = np.rint(total * STEADY)
            if is_member[j] or not mask[j] or (count == width and score <= best[count - 1]):
                continue
            count = _enter(sets, best, where, count, key + tags[j], score, row * p + j)
    return where[:count] // p, where[:count] % p


@kernel
def _enter(sets, best, where, count, key, score, place):
    """Put a set where it belongs, instead of a worse way to the same one; how many there are."""
    last = min(count, len(sets) - 1)
    more = min(count + 1, len(sets))
    for i in range(count):
        if sets[i] == key:
            if best[i] >= score:
                return count
            last, more = i, count
            break
    while last > 0 and best[last - 1] < score:
        sets[last], best[last], where[last] = sets[last - 1], best[last - 1], where[last - 1]
        last -= 1
    sets[last], best[last], where[last] = key, score, place
    return more


@kernel
def extend(A, supports, basis, variance, moment, gain, parents, chosen):
    """Children (parent, feature) with what :func:`best_children` needs to know about them.

    ``basis`` are orthonormal directions that span a support, as sums of its features.
    """
    count, size, p = len(parents), supports.shape[1], A.shape[0]
    grown, directions = np.empty((count, size + 1), np.int64), np.zeros((count, size + 1, size + 1))
    variances, moments, gains = np.empty((count, p)), np.empty((count, p)), np.empty(count)
    new = np.empty(p)
    for row in range(count):
        parent, j = parents[row], chosen[row]
        length = math.sqrt(max(variance[parent, j], DEPENDENT))
        last = directions[row, size]
        last[size] = 1.0 / length
        for i in range(size):
            grown[row, i] = supports[parent, i]
            projection = 0.0
            for s in range(i + 1):
                directions[row, i, s] = basis[parent, i, s]
                projection += basis[parent, i, s] * A[supports[parent, s], j]
            for s in range(i + 1):
                last[s] -= projection * basis[parent, i, s] / length
        grown[row, size] = j
        for a in range(p):
            new[a] = 0.0
        for s in range(size + 1):
            add_row(new, last[s], A, grown[row, s], p)
        step = moment[parent, j] / length
        gains[row] = gain[parent] + step * step
        for a in range(p):
            variances[row, a] = variance[parent, a] - new[a] * new[a]
            moments[row, a] = moment[parent, a] - step * new[a]
    return grown, directions, variances, moments, gains


@kernel
def join_scores(A, c, supports, scores):
    """scores[i, j] = gain of support i with feature j, all coefficients refitted, less 1."""
    size, p = supports.shape[1], A.shape[0]
    W, variance, moment = np.empty((size, p)), np.empty(p), np.empty(p)
    for row in range(supports.shape[0]):
        S, value = supports[row], 1.0
        for a in range(p):
            variance[a], moment[a] = 1.0, c[a]
        for i in range(size):
            w = W[i]
            for a in range(p):
                w[a] = A[S[i], a]
            for k in range(i):
                add_row(w, -W[k, S[i]], W, k, p)
            # A little more on the diagonal: perfect fits are not told apart by rounding.
            length = math.sqrt(max(w[S[i]], 0.0) + DEPENDENT)
            step = moment[S[i]] / length
            value -= step * step
            for a in range(p):
                w[a] /= length
                variance[a] -= w[a] * w[a]
                moment[a] -= step * w[a]
        for a in range(p):
            gain = moment[a] * moment[a] / variance[a] if variance[a] > _UNSURE else 0.0
            scores[row, a] = gain - value
