"""Compiled: what dual vectors of nodes prove, for many small splits in one call.

The same inequalities and roundings as in `splits`, with sums in loops instead of BLAS: for small
splits with few nodes each, calls would cost more than what they compute.
"""

import math

import numpy as np
from numba import njit

from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.numerics.rounding import UNIT, gain, gamma

# What is wrong with a node that uses a split.
FINE, UNPROVEN, UNCOVERED = 0, 1, 2
# The products of the search had other last digits: charges may be lowered to fit these, by so many
# times what rounding can do to a Cholesky factorisation.
LOWER = (0.0, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)


@njit(cache=True, nogil=True, error_model="numpy")
def cell_totals(phi, state, k, best_out, weakest_in):
    """The largest total of a cell, and of its supports that violate a fixing; -inf: there is none.

    `best_out` is the largest gain among features that are fixed out, `weakest_in` the least among
    those fixed in; negative where there are none.
    """
    r = k
    for j in range(len(phi)):
        r -= state[j] == IN
    if r < 0:
        return -np.inf, -np.inf
    total, top = 0.0, np.zeros(r + 1)  # zeros stand for what is not there
    for j in range(len(phi)):
        if state[j] == IN:
            total += phi[j]
        elif state[j] == FREE and phi[j] > top[r]:
            a = r
            while a > 0 and top[a - 1] < phi[j]:
                top[a] = top[a - 1]
                a -= 1
            top[a] = phi[j]
    for a in range(r):
        total += top[a]
    last, following = np.inf if r == 0 else top[r - 1], top[r]
    more, violating = total * (1.0 + 4 * UNIT), -np.inf
    if best_out >= 0.0 and r > 0:
        # Forcing in the best of them replaces the r-th largest (theory: fix-out).
        violating = more - _beyond(last, best_out)
    if weakest_in >= 0.0:
        # Forcing out the weakest of them lets the next one in (theory: fix-in).
        less = _beyond(weakest_in, following) if r > 0 and weakest_in >= last else 0.0
        violating = max(violating, more - less)
    return total, violating


@njit(cache=True, nogil=True, error_model="numpy")
def _beyond(gain, other):
    """What is lost with `other` in place of `gain`: nothing for sure where that is infinite."""
    return gain - other if other < gain < np.inf else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def left(base, total, k):
    """base - total, less the rounding of the sums; inf where there is no support (-inf)."""
    if total == -np.inf:
        return np.inf
    value = base - total - gamma(k + 12) * (4.0 + abs(base) + total)
    return value if math.isfinite(value) else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def is_definite(Q, m):
    """Does a Cholesky factorisation of the first m rows and columns run through? Q is overwritten.

    Row by row of the upper triangle; entries below it are not touched.
    """
    for t in range(m):
        if not Q[t, t] > 0.0:
            return False
        root = math.sqrt(Q[t, t])
        for j in range(t + 1, m):
            Q[t, j] /= root
        for i in range(t + 1, m):
            factor = Q[t, i]
            for j in range(i, m):
                Q[i, j] -= factor * Q[t, j]
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def prove(block, m, charges, Q, t):
    """Fill t with charges, lowered if need be, that leave block - diag(t) positive semidefinite.

    (Rump, theory: definite.) False where that fails.
    """
    for factor in LOWER:
        trace, least = 0.0, np.inf
        for i in range(m):
            t[i] = charges[i] - factor * UNIT * (m + 4.0) * (m + 1.0)
            for j in range(i, m):
                Q[i, j] = block[i, j]
            Q[i, i] -= t[i]
            trace += Q[i, i]
            least = min(least, Q[i, i])
        for i in range(m):
            Q[i, i] -= gamma(m + 3) * trace + 4 * UNIT
        if m == 0 or (least > 0.0 and is_definite(Q, m)):
            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def _covers(state, where):
    n_missing = 0
    for j in range(len(state)):
        n_missing += state[j] != OUT and where[j] < 0
    return n_missing == 0


@njit(cache=True, nogil=True, error_model="numpy")
def _extreme(phi, where, position, ends, index, node, sign):
    """The largest (sign 1) or least (-1) gain among a row of fixed features; -1: there are none."""
    if ends[node] == ends[node + 1]:
        return -1.0
    found = -np.inf
    for e in range(ends[node], ends[node + 1]):
        found = max(found, sign * phi[where[position[index[e]]]])
    return sign * found


@njit(cache=True, nogil=True, error_model="numpy")
def fill_bounds(problem, splits, tree, duals, lined, states, chosen, own, violation, verdict):
    """own, violation and verdict of the nodes lined[chosen], those of a split after one another.

    problem: (A, c, eps, k, lo, hi, position), A with unit diagonal, entries known up to eps.
    splits: (starts of rows, features, charges), duals: (starts of rows, features, values).
    """
    A, c, eps, k, lo, hi, position = problem
    split_ends, split_features, split_charges = splits
    dual_ends, dual_index, dual_value = duals
    size = 0
    for i in chosen:
        s = tree.split[lined[i]]
        size = max(size, split_ends[s + 1] - split_ends[s])
    block, Q = np.empty((size, size)), np.empty((size, size))
    t, g, slopes, phi, charges = (
        np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size),
    )  # fmt: skip
    cell, features = np.empty(size, states.dtype), np.empty(size, np.int64)
    where = np.empty(len(c), np.int64)
    current, m, is_proven = -1, 0, False
    for i in chosen:
        node = lined[i]
        s = tree.split[node]
        if s != current:
            current, m = s, 0
            where[:] = -1
            for e in range(split_ends[s], split_ends[s + 1]):
                j = position[split_features[e]]
                if j >= 0:  # OUT features need no charge: a smaller matrix is enough
                    features[m], charges[m], where[j] = j, split_charges[e], m
                    m += 1
            for a in range(m):
                for b in range(m):
                    block[a, b] = A[features[a], features[b]]
            is_proven = prove(block, m, charges, Q, t)
        state = states[i]
        if not is_proven or not _covers(state, where):
            verdict[node] = UNCOVERED if is_proven else UNPROVEN
            continue
        g[:m] = 0.0
        for e in range(dual_ends[node], dual_ends[node + 1]):
            j = position[dual_index[e]]
            if j >= 0 and where[j] >= 0:
                g[where[j]] += dual_value[e]
        slopes[:m] = 0.0
        n_terms, norm, quadratic = 0, 0.0, 0.0
        for a in range(m):
            x = g[a]
            if x != 0.0:
                n_terms += 1
                norm += abs(x)
                for b in range(m):
                    slopes[b] += x * block[a, b]
        for a in range(m):
            slopes[a] -= t[a] * g[a]
            quadratic += g[a] * slopes[a]
        # As in `splits`: a product of a vector of n nonzeros has fewer than n + 6 roundings.
        unit = 1.01 * (n_terms + 6) * UNIT
        error = unit * (1.0 + 2.0 * norm)
        base = 1.0 - quadratic - (norm * (error + unit * (1.0 + 4.0 * norm)) + 2.0 * eps)
        for a in range(m):
            j = features[a]
            cell[a] = state[j]
            phi[a] = 0.0
            if cell[a] != OUT:
                phi[a] = gain(c[j] - slopes[a], error, t[a] - 2.02 * eps * k, lo[j], hi[j])
        best_out = _extreme(phi, where, position, tree.out_ends, tree.out_index, node, 1.0)
        weakest_in = _extreme(phi, where, position, tree.in_ends, tree.in_index, node, -1.0)
        total, violating = cell_totals(phi[:m], cell[:m], k, best_out, weakest_in)
        own[node], violation[node] = left(base, total, k), left(base, violating, k)
