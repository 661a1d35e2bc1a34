"""Compiled: many small cells in one call, those passed over whose supports all reach the target."""

import numpy as np
from numba import njit

from bestk.verification.numerics.choice import FREE, IN
from bestk.verification.numerics.rounding import gamma
from bestk.verification.numerics.scan import condition, scan


@njit(cache=True, nogil=True, error_model="numpy")
def margins(k, eps):
    """What is taken off the diagonal, and off the value, for all that is not known."""
    eta = eps + gamma(4 * k + 16)
    return 2.0 * k * eta * 1.01, 2.0 * eta * 1.01


@njit(cache=True, nogil=True, error_model="numpy")
def _listed(state, kind, order, count):
    """Append the features of a kind to order[:count]; how many it has then."""
    for j in range(len(state)):
        if state[j] == kind:
            order[count] = j
            count += 1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def pass_cells(A, c, eps, k, target, few, cells, chosen, passed):
    """passed[i]: every support of cells[chosen[i]] is proven to reach the target.

    Where it is not, or `few` says that products have too few digits to tell, others look closer.
    """
    order = np.empty(cells.shape[1], np.int64)
    for i in range(len(chosen)):
        n_inside = _listed(cells[chosen[i]], IN, order, 0)
        m = _listed(cells[chosen[i]], FREE, order, n_inside)
        n_free = m - n_inside
        r = min(k - n_inside, n_free)
        if r == 0 or r == n_free:
            continue
        shift, slack = margins(n_inside + r, eps)
        block, moments = np.empty((m, m)), np.empty(m)
        for a in range(m):
            moments[a] = c[order[a]]
            for b in range(m):
                block[a, b] = A[order[a], order[b]]
        H, d, left = condition(block, moments, n_inside, shift)
        goal = target + slack
        if left < few or left - goal <= 0.0:
            continue
        hits = np.empty((1, r), np.int64)
        found = scan(H, d, left - goal, max(few - goal, 0.0), r, 0, n_free, hits)
        passed[i] = found == 0
