"""Compiled steps of beam search and swaps where A is an array: no time is lost between them."""

import math

import numpy as np

from bestk.base.compiling import add_row, kernel

# A feature whose residual variance given a support is below this adds nothing but rounding.
DEPENDENT = 1e-10
# Scores are cut to twelve digits: ties go to the first feature, not to rounding.
STEADY = 2.0**40


@kernel
def best_children(supports, gain, variance, moment, mask, tags, width):
    """(parents, features) of the `width` best distinct supports with one feature more.

    Sums of random `tags` tell sets apart; a collision would cost one candidate, no more.
    """
    parents, size = supports.shape
    p = mask.shape[0]
    score = np.empty(parents * p)
    for row in range(parents):
        for j in range(p):
            v, total = variance[row, j], gain[row]
            if v > DEPENDENT:
                total += moment[row, j] * moment[row, j] / v
            score[row * p + j] = -np.rint(total * STEADY) if mask[j] else np.inf
        for i in range(size):
            score[row * p + supports[row, i]] = np.inf
    # A support is reached from at most size + 1 parents: so many contain `width` distinct ones.
    many = min(len(score), width * (size + 1))
    candidates = np.flatnonzero(score <= np.partition(score, many - 1)[many - 1])
    order = candidates[np.argsort(score[candidates], kind="mergesort")]
    keys = np.zeros(parents, np.uint64)
    for row in range(parents):
        for i in range(size):
            keys[row] += tags[supports[row, i]]
    seen, chosen, count = {np.uint64(0)}, np.empty(min(width, len(order)), np.int64), 0
    for flat in order:
        key = keys[flat // p] + tags[flat % p]
        if count == width or score[flat] == np.inf:
            break
        if key not in seen:
            seen.add(key)
            chosen[count] = flat
            count += 1
    return chosen[:count] // p, chosen[:count] % p


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
            length = math.sqrt(max(w[S[i]], DEPENDENT))
            step = moment[S[i]] / length
            value -= step * step
            for a in range(p):
                w[a] /= length
                variance[a] -= w[a] * w[a]
                moment[a] -= step * w[a]
        for a in range(p):
            gain = moment[a] * moment[a] / variance[a] if variance[a] > DEPENDENT else 0.0
            scores[row, a] = gain - value
