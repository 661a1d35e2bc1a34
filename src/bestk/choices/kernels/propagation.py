"""What decisions on groups imply by the rules, compiled: unit propagation to a fixed point.

A row says  #chosen among plus - #chosen among minus <= limit  (theory: rules). What is decided so
far leaves it at least  #(plus IN) - #(minus not OUT).  Above the limit nothing satisfies the row;
at the limit, groups of plus that are FREE must be OUT, and those of minus must be IN. That at most
k groups count is one more row. The fixed point does not depend on the order of the rows.
"""

from typing import NamedTuple

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.constants import FREE, IN, OUT
from bestk.base.structure import Structure

POSSIBLE, COUNT_BROKEN = -1, -2


class Rules(NamedTuple):
    """Rows end to end: row i has the groups ``groups[ends[i]:ends[i + 1]]`` with ``signs`` +-1.

    ``counted`` says which groups count towards k.
    """

    ends: np.ndarray
    groups: np.ndarray
    signs: np.ndarray
    limits: np.ndarray
    counted: np.ndarray


def rules_of(structure: Structure, free_groups: np.ndarray) -> Rules:
    """Those of a structure; free groups do not count towards k."""
    groups, signs, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [0]
    for row in structure.rows:
        groups += [np.asarray(row.plus, np.int64), np.asarray(row.minus, np.int64)]
        signs += [np.ones(len(row.plus), np.int64), -np.ones(len(row.minus), np.int64)]
        sizes.append(len(row.plus) + len(row.minus))
    counted = np.ones(structure.n_groups, dtype=np.bool_)
    counted[free_groups] = False
    return Rules(
        ends=np.cumsum(sizes).astype(np.int64),
        groups=np.concatenate(groups),
        signs=np.concatenate(signs),
        limits=np.array([row.limit for row in structure.rows], dtype=np.int64),
        counted=counted,
    )


@kernel
def n_counted(rules, state):
    """How many groups that count are IN."""
    count = 0
    for g in range(state.shape[0]):
        count += state[g] == IN and rules.counted[g]
    return count


@kernel
def propagate(rules, k, state):
    """Decide in `state` all that follows; POSSIBLE, COUNT_BROKEN or the row that is broken."""
    while True:
        before = 0
        count = n_counted(rules, state)
        if count > k:
            return COUNT_BROKEN
        if count == k:
            for g in range(state.shape[0]):
                if state[g] == FREE and rules.counted[g]:
                    state[g] = OUT
                    before += 1
        for row in range(rules.limits.shape[0]):
            least, n_free = 0, 0
            for e in range(rules.ends[row], rules.ends[row + 1]):
                own = state[rules.groups[e]]
                if rules.signs[e] > 0:
                    least += own == IN
                else:
                    least -= own != OUT
                n_free += own == FREE
            if least > rules.limits[row]:
                return row
            if least == rules.limits[row] and n_free > 0:
                before += n_free
                for e in range(rules.ends[row], rules.ends[row + 1]):
                    g = rules.groups[e]
                    if state[g] == FREE:
                        state[g] = OUT if rules.signs[e] > 0 else IN
        if before == 0:
            return POSSIBLE


@kernel
def may_stop(rules, k, state, room):
    """Whether leaving out everything FREE satisfies all rules; `room` becomes that choice."""
    for g in range(state.shape[0]):
        room[g] = OUT if state[g] == FREE else state[g]
    return propagate(rules, k, room) == POSSIBLE
