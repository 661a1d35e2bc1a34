"""Which choices of groups a cell still holds: rules, the count, and what follows from them.

A row says #(Z and plus) - #(Z and minus) <= limit. In a cell its left side is at least

    least = #(plus that are IN) - #(minus that are not OUT).

So a cell with least > limit holds no choice, and with least = limit every FREE group of plus must
be OUT and every FREE group of minus IN. At most k groups that are not free to use are chosen, which
is a row over all of them. Groups are FREE, IN or OUT.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from bestk.results.certificate import Certificate
from bestk.verification.evidence import Unfit
from bestk.verification.limits import limits
from bestk.verification.numerics.choice import FREE, IN, OUT


class Rules(NamedTuple):
    """Rows end to end: entries of row i are at ``starts[i]:starts[i + 1]``; the last is the count.

    ``sign`` is 1 for plus and -1 for minus. ``effect[g, i]`` is what choosing g adds to row i.
    """

    starts: np.ndarray
    groups: np.ndarray
    sign: np.ndarray
    limits: np.ndarray
    effect: np.ndarray


def rules_of(certificate: Certificate) -> Rules:
    """The rules of a structure and, as one more row, that at most k groups are counted.

    Unfit where there are so many that what groups add to rows would not fit into memory.
    """
    structure = certificate.structure
    assert structure is not None
    if structure.n_groups * (len(structure.rows) + 1) > limits().rule_entries:
        raise Unfit(
            f"{len(structure.rows)} rules about {structure.n_groups} groups are too many to check"
        )
    counted = np.setdiff1d(np.arange(structure.n_groups), structure.groups_of(certificate.free))
    sides = [(row.plus, row.minus) for row in structure.rows] + [(counted, counted[:0])]
    most = [*(int(row.limit) for row in structure.rows), int(certificate.k)]
    groups = np.concatenate([np.concatenate(pair) for pair in sides]).astype(np.int64)
    sign = np.concatenate([np.repeat([1, -1], [len(a), len(b)]) for a, b in sides])
    starts = np.cumsum([0, *(len(a) + len(b) for a, b in sides)])
    effect = np.zeros((structure.n_groups, len(sides)), dtype=np.int32)
    np.add.at(effect, (groups, np.repeat(np.arange(len(sides)), np.diff(starts))), sign)
    return Rules(starts, groups, sign.astype(np.int64), np.array(most, dtype=np.int64), effect)


def root_cell(certificate: Certificate) -> np.ndarray:
    """Groups that every choice has, or none may have, before anything is concluded."""
    structure = certificate.structure
    assert structure is not None
    state = np.full(structure.n_groups, FREE, dtype=np.int8)
    state[structure.groups_of(certificate.given)] = IN
    state[structure.groups_of(certificate.exclude)] = OUT
    return state


@njit(cache=True, nogil=True)
def close(rules, state):
    """Draw all conclusions, in place; False where the cell holds no choice."""
    changed = True
    while changed:
        changed = False
        for i in range(len(rules.limits)):
            least = 0
            for e in range(rules.starts[i], rules.starts[i + 1]):
                decision = state[rules.groups[e]]
                if rules.sign[e] > 0:
                    least += decision == IN
                else:
                    least -= decision != OUT
            if least > rules.limits[i]:
                return False
            if least < rules.limits[i]:
                continue
            for e in range(rules.starts[i], rules.starts[i + 1]):
                if state[rules.groups[e]] == FREE:
                    state[rules.groups[e]] = OUT if rules.sign[e] > 0 else IN
                    changed = True
    return True


@njit(cache=True, nogil=True)
def _may_grow(rules, cell, state):
    """Is there a FREE group of the cell that a complete choice may have besides its own?"""
    total = np.zeros(len(rules.limits), np.int64)
    for g in range(len(state)):
        if state[g] == IN:
            for i in range(len(total)):
                total[i] += rules.effect[g, i]
    for g in range(len(state)):
        if cell[g] == FREE and state[g] == OUT:
            fits = True
            for i in range(len(total)):
                fits = fits and total[i] + rules.effect[g, i] <= rules.limits[i]
            if fits:
                return True
    return False


@njit(cache=True, nogil=True)
def _is_harmless(rules):
    """Groups that no row but the count, the last one, keeps out: they can always be added to it."""
    harmless = np.ones(len(rules.effect), np.bool_)
    for g in range(len(harmless)):
        for i in range(len(rules.limits) - 1):
            harmless[g] = harmless[g] and rules.effect[g, i] <= 0
    return harmless


@njit(cache=True, nogil=True)
def _is_covered(rules, harmless, cell, state):
    """Do all choices of a part of the cell leave room for a harmless group that is out there?

    Then each of them is part of another choice of the cell.
    """
    count = len(rules.limits) - 1
    most, is_one_out = 0, False
    for g in range(len(state)):
        most += state[g] != OUT and rules.effect[g, count] > 0
        is_one_out = is_one_out or (cell[g] == FREE and state[g] == OUT and harmless[g])
    return is_one_out and most < rules.limits[count]


@njit(cache=True, nogil=True)
def list_choices(rules, cell, most, most_steps):
    """(rows of FREE groups that choices of a closed cell have, filled up with -1; how many; steps).

    Choices that are part of another choice of the cell are left out: f over them is no smaller.
    -1 rows: more than `most` of them, or too many steps.
    """
    m = len(cell)
    n_free = 0
    for g in range(m):
        n_free += cell[g] == FREE
    room = rules.limits[len(rules.limits) - 1]
    for g in range(m):
        room -= cell[g] == IN and rules.effect[g, len(rules.limits) - 1] > 0
    width = min(n_free, max(room, 0))
    found = np.empty((64, width), np.int32)
    stack = np.empty((n_free + 2, m), np.int8)
    harmless = _is_harmless(rules)
    stack[0] = cell
    depth, count, steps = 1, 0, 0
    state = np.empty(m, np.int8)
    while depth > 0:
        depth -= 1
        steps += 1
        if steps > most_steps:
            return found, -1, steps
        state[:] = stack[depth]
        if not close(rules, state) or _is_covered(rules, harmless, cell, state):
            continue
        branch = -1
        for g in range(m):
            if state[g] == FREE:
                branch = g
                break
        if branch >= 0:
            for decision in (OUT, IN):
                stack[depth] = state
                stack[depth, branch] = decision
                depth += 1
            continue
        if _may_grow(rules, cell, state):
            continue
        if count == most:
            return found, -1, steps
        if count == len(found):
            larger = np.empty((2 * count, width), np.int32)
            larger[:count] = found
            found = larger
        entry = 0
        found[count] = -1
        for g in range(m):
            if cell[g] == FREE and state[g] == IN:
                found[count, entry] = g
                entry += 1
        count += 1
    return found[:count], count, steps
