"""The loop over the nodes of a unit, compiled: branch, relax, prove, fix, prune, close."""

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from bestk.base.compiling import OPTIONS, kernel, step
from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.active_set import Room, room_for, settle
from bestk.bounds.kernels.cluster_ascent import Clusters, Work, begin, climb, prove, work_for
from bestk.bounds.kernels.conclude import Charges, Known, conclude
from bestk.bounds.kernels.relaxation import Relaxed, descend
from bestk.form.dense import residual, slope_errors
from bestk.form.matrix import CAUTION
from bestk.subtrees.covers import feature_of_cover, has_many, is_covered
from bestk.subtrees.local import Local
from bestk.subtrees.unit import BRANCHED, CLOSED, EMPTY, OPEN, PRUNED, RESISTING
from bestk.supports.prices import device_seconds, scan_seconds
from bestk.supports.scan import condition, fit_rows, scan

# What is left of y'y, below which products have lost the digits that tell models apart.
_NEARLY_PERFECT = 1e-6
# Supports that one unit may list, and one node: more are looked at with the data at hand.
MOST_HITS, _MOST_AT_NODE = 256, 32


class ClusterLocal(NamedTuple):
    """A whole form, bounded by clusters of its features at temperature mu."""

    A: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    clusters: Clusters
    mu: float
    closeness: float
    steps: int
    memory: int


class Terms(NamedTuple):
    """On which terms a unit is explored; k counts the features that are gone."""

    k: int
    cutoff: float
    value: float
    eps: float
    shift: float
    slack: float
    is_boxed: bool
    fixing: bool
    close_below: float
    leave_below: float
    nodes: int
    multiplies: float
    weakest_first: bool


class Nodes(NamedTuple):
    """Nodes as rows, in the order in which they were bounded."""

    parent: np.ndarray
    feature: np.ndarray
    inside: np.ndarray
    fate: np.ndarray
    bounds: np.ndarray
    levels: np.ndarray
    states: np.ndarray
    duals: np.ndarray


@kernel
def run(local, terms, effort, prices, covers, state, dual, level, bound, proves_root, stop):
    """Explore the subtree below a node, depth first, features IN before OUT.

    With `proves_root` the node itself is bounded first, as node 0. How nodes are bounded depends on
    the type of `local`. What contains a support of `covers` is done. Returns (nodes, how many,
    numbers left open, hits, how many, best rounded support, its value, dropped, multiplies, seconds
    of scans).
    """
    c, q = local.c, local.c.shape[0]
    nodes = _room(terms.nodes + 3, q)
    work = _work(local, terms)
    rounding = _Rounding(np.empty(q), np.empty((1, terms.k), np.int64), np.empty((1, terms.k)),
                         np.empty(1))  # fmt: skip
    hits, n_hits = np.empty((MOST_HITS, terms.k), np.int64), 0
    best_support, best_value = np.empty(terms.k, np.int64), terms.value
    stack, top, count = np.empty(terms.nodes + 4, np.int64), 0, 0
    dropped, multiplies, scanning = np.inf, 0.0, 0.0
    if proves_root:
        _begin(nodes, 0, -1, state, dual, level, bound)
        nodes.feature[0] = -1
        count = 1
    else:
        stack[0], top = -1, 1
    done, bounded = 0, 0
    while True:
        for i in range(done, count):
            # Where a scan costs less than bounds did so far, a bound could only cost more.
            cheap = prices.per_multiply * multiplies / max(bounded, 1)
            fate, n_hits, scanning = _close_at_once(
                local, terms, prices, covers, nodes, i, cheap, hits, n_hits, scanning
            )
            if fate == OPEN:
                before = nodes.states[i].copy()
                multiplies += _bound(local, terms, effort, nodes, i, work)
                bounded += 1
                fate, dropped, n_hits, scanning = _judge(
                    local, terms, prices, covers, nodes, i, before, dropped, hits, n_hits, scanning
                )
            nodes.fate[i] = fate
            if fate == OPEN:
                if not _is_left(terms, prices, covers, nodes, i):
                    stack[top] = i
                    top += 1
                value = _rounded_value(local, terms, nodes, i, rounding)
                if value < best_value:
                    best_value = value
                    best_support[:] = rounding.support[0]
        done = count
        spent = count + 2 > terms.nodes or multiplies >= terms.multiplies
        # However small its budget, a unit branches once: else the same node would come again.
        has_branched = count > (1 if proves_root else 0)
        if top == 0 or stop[0] != 0 or (spent and has_branched):
            break
        top -= 1
        if terms.weakest_first:
            _weakest_on_top(stack, top, nodes.bounds)
        me = stack[top]
        if me >= 0:
            nodes.fate[me] = BRANCHED
        parent_state = state if me < 0 else nodes.states[me]
        parent_dual = dual if me < 0 else nodes.duals[me]
        r = terms.k - _count(parent_state, IN)
        feature = feature_of_cover(parent_state, covers, r, parent_dual)
        if feature < 0:
            feature = _branching_feature(parent_state, parent_dual, c)
        for inside in range(2):
            _begin(
                nodes, count, me, parent_state, parent_dual,
                level if me < 0 else nodes.levels[me], bound if me < 0 else nodes.bounds[me],
            )  # fmt: skip
            nodes.feature[count], nodes.inside[count] = feature, inside == 1
            nodes.states[count, feature] = IN if inside == 1 else OUT
            count += 1
    return (
        nodes, count, stack[:top], hits, n_hits, best_support, best_value, dropped, multiplies,
        scanning,
    )  # fmt: skip


@kernel
def _weakest_on_top(stack, top, bounds):
    """The youngest of the nodes with the smallest bound changes places with stack[top]."""
    best = top
    for i in range(top - 1, -1, -1):
        if bounds[stack[i]] < bounds[stack[best]]:
            best = i
    stack[best], stack[top] = stack[top], stack[best]


class _Rounding(NamedTuple):
    """Room for the support that a relaxation suggests."""

    left: np.ndarray
    support: np.ndarray
    coef: np.ndarray
    fitted: np.ndarray


def _work(local, terms):
    """Room for bounding nodes; compiled for each type of `local`."""
    raise NotImplementedError


def _bound(local, terms, effort, nodes, i, work):
    """Find a dual vector for node i, raise its bound to what that proves, fix what it fixes.

    Returns the multiplications that took. Compiled for each type of `local`.
    """
    raise NotImplementedError


@overload(_work, jit_options=OPTIONS)
def _(local, terms):
    return _work_on_diagonal if local.instance_class is Local else _work_on_clusters


@overload(_bound, jit_options=OPTIONS)
def _(local, terms, effort, nodes, i, work):
    return _bound_by_diagonal if local.instance_class is Local else _bound_by_clusters


# A diagonal split ---------------------------------------------------------------------------


class _Work(NamedTuple):
    relaxed: Relaxed
    root: np.ndarray
    room: Room
    known: Known
    charges: Charges
    gains: np.ndarray
    free_gains: np.ndarray


def _work_on_diagonal(local, terms):
    c, t, lo, hi = local.c, local.t, local.lo, local.hi
    gone, H, d = local.gone, local.H, local.d
    q = c.shape[0]
    return _Work(
        Relaxed(H, d, t[gone:], lo[gone:], hi[gone:]),
        np.sqrt(np.maximum(t[gone:], 0.0)),
        room_for(d.shape[0]),
        Known(np.empty((1, q)), np.empty(1), np.empty(1), np.empty(1)),
        Charges(t, lo, hi),
        np.empty(q),
        np.empty(q),
    )


def _bound_by_diagonal(local, terms, effort, nodes, i, work):
    done = _relax(local, terms, effort, nodes, i, work)
    _lift(local, terms, nodes.duals[i])
    _prove(local, terms, nodes, i, work)
    return done


@step
def _relax(local, terms, effort, nodes, i, work):
    """Look for a good dual vector of node i; the multiplications that took."""
    relaxed, root, room, gone = work.relaxed, work.root, work.room, local.gone
    state, b = nodes.states[i][gone:], nodes.duals[i][gone:]
    r, goal = terms.k - _count(nodes.states[i], IN), terms.cutoff - local.base + 1.0
    done, is_settled = 0.0, False
    if not terms.is_boxed:
        nodes.levels[i], done, is_settled = settle(
            relaxed, root, state, r, b, nodes.levels[i], goal, room
        )
    if not is_settled:
        nodes.levels[i], more = descend(relaxed, state, r, b, nodes.levels[i], goal, effort)
        done += more
    return done + 2.0 * nodes.states.shape[1]


@step
def _room(size, q):
    return Nodes(
        np.empty(size, np.int32), np.empty(size, np.int32), np.zeros(size, np.bool_),
        np.empty(size, np.int8), np.empty(size), np.empty(size), np.empty((size, q), np.int8),
        np.empty((size, q)),
    )  # fmt: skip


@kernel
def _begin(nodes, i, parent, state, dual, level, bound):
    """Node i begins as a copy of another."""
    nodes.parent[i], nodes.levels[i], nodes.bounds[i] = parent, level, bound
    own, b = nodes.states[i], nodes.duals[i]
    for j in range(state.shape[0]):
        own[j], b[j] = state[j], dual[j]


@kernel
def _count(state, wanted):
    total = 0
    for j in range(state.shape[0]):
        total += state[j] == wanted
    return total


@step
def _branching_feature(state, dual, c):
    """The free feature with the largest relaxed coefficient, or most correlated with y."""
    best, size = -1, 0.0
    for j in range(state.shape[0]):
        if state[j] == FREE and abs(dual[j]) > size:
            best, size = j, abs(dual[j])
    if best < 0:
        size = -1.0
        for j in range(state.shape[0]):
            if state[j] == FREE and abs(c[j]) > size:
                best, size = j, abs(c[j])
    return best


@step
def _lift(local, terms, g):
    """Complete a dual vector by its part for the features that are gone; round as recorded."""
    gone, lift = local.gone, local.lift
    for i in range(gone):
        total = local.lifted[i]
        for j in range(lift.shape[1]):
            total -= lift[i, j] * g[gone + j]
        g[i] = total
    if local.is_single:
        for j in range(g.shape[0]):
            g[j] = np.float64(np.float32(g[j]))


@step
def _prove(local, terms, nodes, i, work):
    """Raise the bound of node i to what is proven, rounding included; its state gains fixings."""
    A, c, t = local.A, local.c, local.t
    known, g, u = work.known, nodes.duals[i], work.known.u[0]
    residual(A, c, t, g, u)
    nonzeros, size, quadratic = 0, 0.0, 0.0
    for j in range(g.shape[0]):
        if g[j] != 0.0:
            nonzeros += 1
            size += abs(g[j])
            quadratic += g[j] * (c[j] - u[j])
    known.quadratic[0] = quadratic
    eps = CAUTION * terms.eps
    known.error[0], known.lost[0] = slope_errors(nonzeros + 6, size, eps)
    r = terms.k - _count(nodes.states[i], IN)
    bound = conclude(
        known, 0, work.charges, nodes.states[i], r, eps, terms.k, terms.cutoff, terms.fixing,
        work.gains, work.free_gains,
    )  # fmt: skip
    nodes.bounds[i] = max(bound, nodes.bounds[i])  # its parent's holds, too


@step
def _close_at_once(local, terms, prices, covers, nodes, i, cheap, hits, n_hits, scanning):
    """(CLOSED or OPEN, hits listed, seconds of scans) for a node that has not been bounded."""
    state = nodes.states[i]
    if is_covered(state, covers):
        return CLOSED, n_hits, scanning
    n_inside, n_free = _count(state, IN), _count(state, FREE)
    r = terms.k - n_inside
    if nodes.feature[i] < 0 or not 0 < r < n_free:
        return OPEN, n_hits, scanning
    seconds = scan_seconds(prices, n_free, n_inside, r)
    is_costly = seconds > min(cheap, terms.close_below) or has_many(state, covers, r, n_free)
    if is_costly or _is_left(terms, prices, covers, nodes, i):
        return OPEN, n_hits, scanning
    found = _try_all(local, terms, state, n_inside, n_free, r, hits, n_hits)
    if found < 0:
        return OPEN, n_hits, scanning + seconds
    return CLOSED, found, scanning + seconds


@step
def _judge(local, terms, prices, covers, nodes, i, before, dropped, hits, n_hits, scanning):
    """(fate of a node that has been bounded, dropped, hits listed, seconds of scans)"""
    if nodes.bounds[i] >= terms.cutoff:
        return PRUNED, min(dropped, nodes.bounds[i]), n_hits, scanning
    state = nodes.states[i]
    for j in range(state.shape[0]):
        if state[j] != before[j]:
            dropped = min(dropped, terms.cutoff)
            break
    n_inside, n_free = _count(state, IN), _count(state, FREE)
    r = terms.k - n_inside
    if r < 0:
        return EMPTY, dropped, n_hits, scanning
    if is_covered(state, covers):
        return CLOSED, dropped, n_hits, scanning
    seconds = 0.0
    if 0 < r < n_free:
        seconds = scan_seconds(prices, n_free, n_inside, r)
        is_costly = seconds > terms.close_below or has_many(state, covers, r, n_free)
        is_costly = is_costly or _is_left(terms, prices, covers, nodes, i)
        if nodes.feature[i] < 0 or is_costly:
            return OPEN, dropped, n_hits, scanning
    found = _try_all(local, terms, state, n_inside, n_free, r, hits, n_hits)
    if found < 0:
        return RESISTING, dropped, n_hits, scanning + seconds
    return CLOSED, dropped, found, scanning + seconds


@kernel
def _is_left(terms, prices, covers, nodes, i):
    """Is a node left to a device, which closes it for less than a thread or its subtree would?"""
    if terms.leave_below <= 0.0 or nodes.feature[i] < 0:
        return False
    n_inside, n_free = _count(nodes.states[i], IN), _count(nodes.states[i], FREE)
    r = terms.k - n_inside
    if has_many(nodes.states[i], covers, r, n_free):
        return False
    return device_seconds(prices, n_free, n_inside, r) <= terms.leave_below


@step
def _try_all(local, terms, state, n_inside, n_free, r, hits, n_hits):
    """Try every support of a node (theory: pair-gain); the new number of hits, or -1.

    -1 stands for what products cannot judge, or too many hits: the data have to be looked at.
    """
    features = np.empty(n_inside + n_free, np.int64)
    inside, free = features[:n_inside], features[n_inside:]
    a, b = 0, 0
    for j in range(state.shape[0]):
        if state[j] == IN:
            inside[a] = j
            a += 1
        elif state[j] == FREE:
            free[b] = j
            b += 1
    if r == 0 or r >= n_free:
        chosen = features[: n_inside + min(r, n_free)]
        nothing = np.empty(0)
        gain = condition(local.A, local.c, chosen, free[:0], terms.shift, np.empty((0, 0)), nothing)
        if gain < 0.0 or 1.0 - gain < _NEARLY_PERFECT:
            return -1
        if 1.0 - gain - terms.slack >= terms.value:
            return n_hits
        if n_hits == MOST_HITS:
            return -1
        hits[n_hits] = -1
        for i in range(chosen.shape[0]):
            hits[n_hits, i] = chosen[i]
        return n_hits + 1
    H, d = np.empty((n_free, n_free)), np.empty(n_free)
    gain = condition(local.A, local.c, inside, free, terms.shift, H, d)
    if gain < 0.0 or 1.0 - gain < _NEARLY_PERFECT:
        return -1
    rows = np.empty((_MOST_AT_NODE, r), np.int64)
    count = scan(H, d, 1.0 - terms.value - gain - terms.slack, r, 0, n_free, rows)
    if count < 0 or n_hits + count > MOST_HITS:
        return -1
    for row in range(count):
        if rows[row, r - 1] < 0:
            return -1
        for i in range(n_inside):
            hits[n_hits + row, i] = inside[i]
        for i in range(r):
            hits[n_hits + row, n_inside + i] = free[rows[row, i]]
    return n_hits + count


@step
def _rounded_value(local, terms, nodes, i, rounding):
    """The value of IN completed by the largest relaxed coefficients; inf if there are too few."""
    state, dual, support = nodes.states[i], nodes.duals[i], rounding.support[0]
    size = 0
    for j in range(state.shape[0]):
        if state[j] == IN:
            support[size] = j
            size += 1
    left = rounding.left
    for j in range(state.shape[0]):
        left[j] = abs(dual[j]) if state[j] == FREE else 0.0
    while size < terms.k:
        j = int(np.argmax(left))
        if left[j] <= 0.0:
            return np.inf
        left[j] = 0.0
        support[size] = j
        size += 1
    fit_rows(local.A, local.c, local.lo, local.hi, rounding.support, rounding.coef, rounding.fitted)
    return rounding.fitted[0]


# Clusters -----------------------------------------------------------------------------------


# Multiplications for each feature that an evaluation of the bound is worth.
_PER_EVALUATION = 600.0


class _ClusterWork(NamedTuple):
    ascent: Work
    with_feature: np.ndarray


def _work_on_clusters(local, terms):
    p = local.c.shape[0]
    return _ClusterWork(work_for(local.clusters, terms.k, local.memory), np.empty(p))


def _bound_by_clusters(local, terms, effort, nodes, i, work):
    clusters, mu, k, g, state = local.clusters, local.mu, terms.k, nodes.duals[i], nodes.states[i]
    ascent, with_feature, p = work.ascent, work.with_feature, g.shape[0]
    before = ascent.evaluations[0]
    begin(clusters, ascent, g, state, k, mu)
    climb(clusters, ascent, state, k, mu, terms.cutoff, local.closeness, local.steps)
    for j in range(p):
        g[j] = np.float64(np.float32(ascent.here.g[j]))
    bound = prove(clusters, ascent, g, state, k, terms.cutoff, with_feature)
    if bound < terms.cutoff and terms.fixing:
        for j in range(p):
            if state[j] == FREE and with_feature[j] >= terms.cutoff:
                state[j] = OUT
    nodes.bounds[i] = max(bound, nodes.bounds[i])
    return _PER_EVALUATION * (ascent.evaluations[0] - before) * p + 3.0 * p * p
