"""Rows of numbers that are mostly zero, end to end: how a unit hands over what it has found."""

import numpy as np

from bestk.base.compiling import kernel, step
from bestk.base.constants import IN, OUT
from bestk.subtrees.unit import BRANCHED, CLOSED, OPEN, RESISTING


@kernel
def hand_over(found, state, here, p):
    """What the loop has found, without the room that it left, in the numbers of the form.

    All of it is made here, without the GIL: nodes, what :func:`_packed` keeps of them, what is left
    open, and the rest.
    """
    nodes, count, stack, hits, n_hits, support, value, dropped, multiplies, scanning = found
    is_untouched = len(stack) > 0 and stack[0] < 0
    return (
        (nodes.parent[:count].copy(), _named(nodes.feature, count, here),
         nodes.inside[:count].copy(), nodes.fate[:count].copy(), nodes.bounds[:count].copy(),
         nodes.levels[:count].copy()),
        _packed(nodes, count, state, here),
        _left_open(nodes, count, is_untouched, state, here, p),
        (hits[:n_hits].copy(), support, value, dropped, multiplies, scanning),
    )  # fmt: skip


@kernel
def _packed(nodes, count, state, here):
    """(which duals are kept, these, features fixed IN, and OUT), rows end to end, of `count` nodes.

    Children and enumerations prove what a node's own dual vector would: it is kept where it fixes
    something, as a start, and where a child has its bound from there. `state` is that of the root,
    `here` the names of features.
    """
    q = len(here)
    needed = np.zeros(count, np.bool_)
    dual_ends, in_ends, out_ends = (
        np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64),
    )  # fmt: skip
    n_in, n_out = 0, 0
    for i in range(count):
        own, parent = nodes.states[i], nodes.parent[i]
        before, feature = state if parent < 0 else nodes.states[parent], nodes.feature[i]
        moved = 0
        for j in range(q):
            if own[j] != before[j] and j != feature:
                moved += 1
                n_in += own[j] == IN
                n_out += own[j] == OUT
        in_ends[i], out_ends[i] = n_in, n_out
        if moved > 0 or (nodes.fate[i] != BRANCHED and nodes.fate[i] != CLOSED):
            needed[i] = True
        inherits = nodes.fate[i] != CLOSED and parent >= 0
        if inherits and nodes.bounds[i] == nodes.bounds[parent]:
            needed[parent] = True
    size = 0
    for i in range(count):
        if needed[i]:
            for j in range(q):
                size += nodes.duals[i, j] != 0.0
        dual_ends[i] = size
    features, values = np.empty(size, np.int32), np.empty(size)
    fixed_in, fixed_out = np.empty(n_in, np.int32), np.empty(n_out, np.int32)
    size, n_in, n_out = 0, 0, 0
    for i in range(count):
        own, parent = nodes.states[i], nodes.parent[i]
        before, feature = state if parent < 0 else nodes.states[parent], nodes.feature[i]
        for j in range(q):
            if needed[i] and nodes.duals[i, j] != 0.0:
                features[size], values[size] = here[j], nodes.duals[i, j]
                size += 1
            if own[j] != before[j] and j != feature:
                if own[j] == IN:
                    fixed_in[n_in] = here[j]
                    n_in += 1
                else:
                    fixed_out[n_out] = here[j]
                    n_out += 1
    return needed, dual_ends, features, values, in_ends, fixed_in, out_ends, fixed_out


@step
def _left_open(nodes, count, is_untouched, state, here, p):
    """Numbers and states of nodes that are left open; -1 for the root of an untouched unit."""
    if is_untouched:
        states = np.full((1, p), OUT, np.int8)
        states[0, here] = state
        return np.full(1, -1), states
    fate = nodes.fate[:count]
    left = np.flatnonzero((fate == OPEN) | (fate == RESISTING))
    states = np.full((len(left), p), OUT, np.int8)
    for row in range(len(left)):
        states[row, here] = nodes.states[left[row]]
    return left, states


@step
def _named(features, count, here):
    """Features that were branched on, by their names in the form; -1 stays."""
    names = np.full(count, -1, np.int32)
    for i in range(count):
        if features[i] >= 0:
            names[i] = here[features[i]]
    return names
