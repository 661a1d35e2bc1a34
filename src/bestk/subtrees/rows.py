"""Rows of numbers that are mostly zero, end to end: how a unit hands over what it has found."""

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.constants import IN, OUT
from bestk.subtrees.unit import BRANCHED, CLOSED


@kernel
def pack(nodes, count, state, here):
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
