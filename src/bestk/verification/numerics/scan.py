"""Compiled loops that try supports: the gain of the last two features (theory: pair-gain, single).

H holds residual covariances of the features in question, d their residual products with y, both
given features chosen before. `needed` already contains what rounding can do to them in double
precision; the last three features are looked at in single precision first.
"""

import math

import numpy as np
from numba import njit, uintp

from bestk.verification.numerics.rounding import UNIT
from bestk.verification.numerics.single import f4, given, mark, padded, standardise

# Sums may be reordered and products fused; NaN and inf keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}
# Beyond this error the test of a row of pairs says nothing.
_USELESS = 1e-3


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _promising(H, i, w, variance, moment, beta, gamma, kappa):
    """How many j > i make the pair (i, j) gain too much, or cannot be judged (theory: single)?

    Conditioned on one more feature on the fly: its share of H_ij is w_i w_j.
    """
    i, m = uintp(i), uintp(moment.shape[0])
    w_i = w[i]
    found = 0
    for j in range(i + uintp(1), m):
        g = H[i, j] - w_i * w[j]
        h = moment[j] - beta * g
        found += not (kappa * h * h + gamma * g * g <= variance[j])
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _terms(variance, moment, needed):
    """(beta, gamma, kappa) of the pair test for a feature, kappa = inf where it cannot be made.

    The pair gains no more than `needed` if kappa h^2 + gamma g^2 <= v_j. Where that is true,
    h^2 <= v_j / kappa and g^2 <= v_i v_j, and features with d^2 > v are set apart, so to first
    order the rounding of h costs 12 sqrt(kappa) u v_j, of kappa 4 kappa u v_j, the rest 8 u v_j.
    Both factors are raised by more than this.
    """
    rest = needed - moment * moment / variance
    if variance <= 0.0 or rest <= 0.0:
        return 0.0, 0.0, np.inf
    kappa = 1.0 / rest
    margin = UNIT * (32.0 + 32.0 * math.sqrt(kappa) + 16.0 * kappa)
    if margin > _USELESS:
        return 0.0, 0.0, np.inf
    return moment / variance, (1.0 + margin) / variance, (1.0 + margin) * kappa


@njit(cache=True, nogil=True, error_model="numpy")
def _set_apart(variance, moment, first):
    """A feature that says more about y than there is to say is rounding: let nothing pass it."""
    for j in range(first, moment.shape[0]):
        if moment[j] * moment[j] > variance[j]:
            variance[j] = -1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _add(chosen, length, hits, count):
    """Append the first `length` chosen features as a row of hits, padded by -1; -1: no room."""
    if count < 0 or count >= hits.shape[0]:
        return -1
    for a in range(hits.shape[1]):
        hits[count, a] = chosen[a] if a < length else -1
    return count + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _pairs(H, w, variance, moment, needed, suspect, start, stop, chosen, length, hits, count):
    """List the promising pairs (i, j), start <= i < stop, j > i, after chosen[:length].

    Rows that are not suspect (a mask) are known to have none.
    """
    m = moment.shape[0]
    _set_apart(variance, moment, start)
    for i in range(start, min(stop, m - 1)):
        if not suspect[i]:
            continue
        chosen[length] = i
        beta, gamma, kappa = _terms(variance[i], moment[i], needed)
        if kappa == np.inf:
            # Too close to the features before it: this beginning stands for all its completions.
            count = _add(chosen, length + 1, hits, count)
        elif _promising(H, i, w, variance, moment, beta, gamma, kappa) > 0:
            for j in range(i + 1, m):
                g = H[i, j] - w[i] * w[j]
                h = moment[j] - beta * g
                if not (kappa * h * h + gamma * g * g <= variance[j]):
                    chosen[length + 1] = j
                    count = _add(chosen, length + 2, hits, count)
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _room(m):
    """Arrays for `_triples`. What is in the padding must not be denormal, as that would be slow."""
    width = padded(m)
    singles = np.full((width, width), np.nan, f4), np.zeros(width, f4), np.zeros(width, f4)
    doubles = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    return singles, doubles, np.zeros(width, np.bool_)


@njit(cache=True, nogil=True, error_model="numpy")
def _triples(H, d, needed, least, start, stop, room, chosen, length, hits, count):
    """List the promising triples whose first feature is in [start, stop)."""
    m = d.shape[0]
    (C, m_t, v_t), (unit, moments, w, variance, moment), suspect = room
    standardise(H, d, needed, start, C, unit, moments)
    for t in range(start, min(stop, m - 2)):
        chosen[length] = t
        rest = needed - d[t] * d[t] / H[t, t]
        if H[t, t] <= 0.0 or not rest > least:
            count = _add(chosen, length + 1, hits, count)
            continue
        last_flat = given(C, t, moments, m_t, v_t)
        found = mark(C, t, f4(1.0 - moments[t] * moments[t]), m_t, v_t, suspect)
        if not found and last_flat == t:
            continue
        suspect[t + 1 : last_flat + 1] = True  # a flat feature is in the rows of all before it
        root = 1.0 / math.sqrt(H[t, t])
        share = d[t] * root
        for j in range(t + 1, m):
            w[j] = H[t, j] * root
            variance[j] = H[j, j] - w[j] * w[j]
            moment[j] = d[j] - w[j] * share
        count = _pairs(
            H, w, variance, moment, rest, suspect, t + 1, m, chosen, length + 1, hits, count
        )
        if count < 0:
            break
    return count


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _eliminate_row(out, H, a, t, factor):
    """out[a, a:] = H[a, a:] - factor * H[t, a:]"""
    a, t, m = uintp(a), uintp(t), uintp(H.shape[1])
    for j in range(a, m):
        out[a, j] = H[a, j] - factor * H[t, j]


@njit(cache=True, nogil=True, error_model="numpy")
def eliminate(H, d, t, H_out, d_out):
    """Condition on feature t, for the features after it (upper triangles)."""
    for a in range(t + 1, d.shape[0]):
        factor = H[t, a] / H[t, t]
        _eliminate_row(H_out, H, a, t, factor)
        d_out[a] = d[a] - factor * d[t]


@njit(cache=True, nogil=True, error_model="numpy")
def condition(A, c, n_inside, shift):
    """(H, d, left) of the features after n_inside given those before, on A - shift I.

    Upper triangle of H; left = 1 - gain of the features before, -1 where these are too dependent.
    A and c are overwritten.
    """
    H, d, left = A, c, 1.0
    for a in range(len(d)):
        H[a, a] -= shift
    for t in range(n_inside):
        if H[t, t] <= 0.0:
            return H, d, -1.0
        left -= d[t] * d[t] / H[t, t]
        eliminate(H, d, t, H, d)
    return np.ascontiguousarray(H[n_inside:, n_inside:]), d[n_inside:].copy(), left


def last_given(A, B, c, d, shift):
    """(variance, d, left) of single features given others: the diagonal of H in `condition`.

    A and c are those of the others, B what is between them and the features (columns), d is of
    these. The same operations, without what is between the features themselves.
    """
    A, B, c, d = A - shift * np.eye(len(c)), B.copy(), c.copy(), d.copy()
    variance, left = np.full(len(d), 1.0 - shift), 1.0
    for t in range(len(c)):
        if A[t, t] <= 0.0:
            return variance, d, -1.0
        left -= c[t] * c[t] / A[t, t]
        factor, others = B[t] / A[t, t], A[t, t + 1 :] / A[t, t]
        variance -= factor * B[t]
        d -= factor * c[t]
        B[t + 1 :] -= others[:, None] * B[t]
        A[t + 1 :, t + 1 :] -= others[:, None] * A[t, t + 1 :]
        c[t + 1 :] -= others * c[t]
    return variance, d, left


@njit(cache=True, nogil=True, error_model="numpy")
def scan(H, d, needed, least, r, start, stop, hits):
    """List every set of r features, the first one in [start, stop), that may gain over `needed`.

    A row of hits that ends in -1 is a beginning that could not be judged: too dependent, or with
    no more than `least` (>= 0) left to gain. Returns the number of rows; -1 if hits is too short.
    """
    m = d.shape[0]
    chosen = np.empty(r + 1, np.int64)
    # 0 would be a type of its own, and what is called with it would be compiled for both.
    count = level = np.int64(0)
    if r == 1:
        for t in range(start, stop):
            if H[t, t] <= 0.0 or d[t] * d[t] > (needed - 8.0 * UNIT) * H[t, t]:
                chosen[0] = t
                count = _add(chosen, 1, hits, count)
        return count
    if r == 2:
        nothing, variance, every = np.zeros(m), np.diag(H).copy(), np.ones(m, np.bool_)
        return _pairs(
            H, nothing, variance, d, needed, every, start, stop, chosen, level, hits, count
        )
    depth, room = r - 3, _room(m)
    if depth == 0:
        return _triples(H, d, needed, least, start, stop, room, chosen, level, hits, count)
    Hs, ds, needs = np.empty((depth, m, m)), np.empty((depth, m)), np.empty(depth + 1)
    needs[0] = needed
    chosen[0] = start - 1
    while level >= 0 and count >= 0:
        G, c = (H, d) if level == 0 else (Hs[level - 1], ds[level - 1])
        if level == depth:
            first = chosen[level - 1] + 1
            count = _triples(G, c, needs[level], least, first, m, room, chosen, level, hits, count)
            level -= 1
            continue
        chosen[level] += 1
        t = chosen[level]
        # r - level - 1 more features have to follow.
        if t >= (stop if level == 0 else m) or t + r - level > m:
            level -= 1
            continue
        rest = needs[level] - c[t] * c[t] / G[t, t]
        if G[t, t] <= 0.0 or not rest > least:
            count = _add(chosen, level + 1, hits, count)
            continue
        eliminate(G, c, t, Hs[level], ds[level])
        needs[level + 1] = rest
        level += 1
        chosen[level] = t
    return count
