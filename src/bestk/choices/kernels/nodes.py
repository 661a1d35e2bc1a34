"""What becomes of a node, compiled: propagate, try all, relax, prove, fix, propagate again."""

from typing import NamedTuple

import numpy as np

from bestk.base.compiling import kernel, put, step
from bestk.base.constants import FREE, OUT
from bestk.bounds.kernels.active_set import room_for, settle
from bestk.bounds.kernels.relaxation import Relaxed
from bestk.choices.kernels.bound import conclude
from bestk.choices.kernels.enumeration import MOST_SCANNED, multiplies_of, scan_all, try_all
from bestk.choices.kernels.propagation import POSSIBLE, n_counted, propagate
from bestk.choices.kernels.relaxation import relax, roots
from bestk.supports.prices import Prices, scan_seconds

OPEN, PRUNED, CLOSED, EMPTY, EMPTIED = 0, 1, 2, 3, 4
"""Fates: left to branch on, bounded away, tried out, nothing in it, nothing left after fixings."""


class Terms(NamedTuple):
    """On which terms nodes are worked on; ``most`` coordinates a choice has, at most.

    Dual vectors are kept in single precision from a mean charge of ``single_from`` on.
    Nodes are tried out below ``cheap`` multiplications before they are bounded, and below ``dear``
    ones afterwards, by a scan for ``scans`` times as many.
    """

    k: int
    most: int
    cutoff: float
    value: float
    shift: float
    slack: float
    fixing: bool
    is_plain: bool
    single_from: float
    cheap: float
    dear: float
    scans: float
    prices: Prices


class Batch(NamedTuple):
    """Nodes as rows: ``states``, warm starts that become results, and what is found.

    States are those ``before`` anything is fixed by a bound, with what is ``fixed``, and with all
    that follows from it.
    """

    states: np.ndarray
    before: np.ndarray
    fixed: np.ndarray
    t: np.ndarray
    duals: np.ndarray
    multipliers: np.ndarray
    levels: np.ndarray
    bounds: np.ndarray
    fates: np.ndarray
    broken: np.ndarray
    proved: np.ndarray
    hits: np.ndarray
    n_hits: np.ndarray
    multiplies: np.ndarray


@kernel
def work_on(space, penalty, terms, batch, first, end):
    """Find out what becomes of nodes first to end of a batch."""
    k = terms.k
    for i in range(first, end):
        state = batch.states[i]
        batch.proved[i], batch.n_hits[i] = False, 0
        batch.broken[i] = propagate(space.rules, k, state)
        put(batch.before[i], state)
        put(batch.fixed[i], state)
        if batch.broken[i] != POSSIBLE:
            batch.fates[i] = EMPTY
            continue
        if _is_tried(space, terms, batch, i, terms.cheap):
            batch.fates[i] = CLOSED
            continue
        if _has_charges(space, terms, batch.t[i], state):
            _bound(space, penalty, terms, batch, i)
            batch.proved[i] = True
            put(batch.fixed[i], state)
            if batch.bounds[i] >= terms.cutoff:
                batch.fates[i] = PRUNED
                continue
            if propagate(space.rules, k, state) != POSSIBLE:
                batch.fates[i] = EMPTIED
                continue
        batch.fates[i] = CLOSED if _is_tried(space, terms, batch, i, terms.dear) else OPEN


@step
def _has_charges(space, terms, t, state):
    """Whether the charges bound anything: what may be used needs one, or bounds instead."""
    for g in range(state.shape[0]):
        if state[g] != OUT:
            for j in range(space.starts[g], space.starts[g + 1]):
                is_boxed = space.lo[j] > -np.inf and space.hi[j] < np.inf
                if not (t[j] > 2.0 * space.eps * terms.most or is_boxed):
                    return False
    return True


@kernel
def _is_tried(space, terms, batch, i, most):
    """Try all choices of a node, if that takes few multiplications; whether it was done."""
    state = batch.states[i]
    n_groups, n_coordinates, is_single = 0, 0, True
    for g in range(state.shape[0]):
        if state[g] == FREE:
            size = space.starts[g + 1] - space.starts[g]
            n_groups += 1
            n_coordinates += size
            is_single = is_single and size == 1
    r = terms.k - n_counted(space.rules, state)
    if n_groups > 0:
        cost = multiplies_of(n_groups, n_coordinates, min(r, n_groups))
        if is_single and 1 < r < min(n_groups, MOST_SCANNED + 1) and cost > terms.cheap:
            inside = state.shape[0] - n_groups
            scanning = scan_seconds(terms.prices, n_groups, inside, r) / terms.prices.per_multiply
            if scanning < min(cost, terms.scans * most):
                batch.multiplies[i] += scanning
                found = scan_all(
                    space, terms.k, terms.shift, terms.slack, terms.value, state, batch.hits[i]
                )
                batch.n_hits[i] = max(found, 0)
                return found >= 0
        if cost > most:
            return False
        batch.multiplies[i] += cost
    found = try_all(space, terms.k, terms.shift, terms.slack, terms.value, state, batch.hits[i])
    batch.n_hits[i] = max(found, 0)
    return found >= 0


@step
def _is_single(space, terms, t, state):
    """Whether single precision is enough for dual vectors: charges are large enough."""
    total, least, count = 0.0, np.inf, 0
    for g in range(state.shape[0]):
        if state[g] != OUT:
            for j in range(space.starts[g], space.starts[g + 1]):
                total, least, count = total + t[j], min(least, t[j]), count + 1
    return total >= count * terms.single_from and least >= 0.1 * terms.single_from


@step
def _bound(space, penalty, terms, batch, i):
    """Find a dual vector, raise the bound to what it proves, fix what it fixes."""
    state, x, lam, t = batch.states[i], batch.duals[i], batch.multipliers[i], batch.t[i]
    r, is_settled = terms.k - n_counted(space.rules, state), False
    if terms.is_plain:
        own = np.empty(x.shape[0], np.int8)
        for g in range(state.shape[0]):
            for j in range(space.starts[g], space.starts[g + 1]):
                own[j] = state[g]
        relaxed = Relaxed(space.A, space.c, t, space.lo, space.hi)
        room = room_for(x.shape[0])
        batch.levels[i], done, is_settled = settle(
            relaxed, roots(t), own, r, x, batch.levels[i], terms.cutoff, room
        )
        batch.multiplies[i] += done
    if not is_settled:
        batch.levels[i], done = relax(
            space, penalty, t, state, r, x, lam, batch.levels[i], terms.cutoff, not terms.is_plain
        )
        batch.multiplies[i] += done
    if _is_single(space, terms, t, state):
        for j in range(x.shape[0]):
            x[j] = np.float64(np.float32(x[j]))
    bound = conclude(space, terms.most, t, state, r, x, lam, terms.cutoff, terms.fixing)
    batch.bounds[i] = max(batch.bounds[i], bound)
