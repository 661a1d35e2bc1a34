"""Compiled: a walk through the cells of a proof, and the values of its nodes from the leaves up."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from bestk.results.certificate import ProofTree
from bestk.verification.numerics.choice import FREE, IN, OUT

# What is wrong with the decisions of a node. Those below such a node remain unseen.
SOUND, NOT_FREE_TO_BRANCH, NOT_FREE_TO_FIX, UNSEEN = 0, 1, 2, 3


class Links(NamedTuple):
    """A tree as plain arrays of known types: family, decisions, and rows of fixings."""

    parent: np.ndarray
    first: np.ndarray  # child, -1: none
    following: np.ndarray  # child of the same parent, -1: none
    feature: np.ndarray
    inside: np.ndarray
    split: np.ndarray
    enumerated: np.ndarray
    in_ends: np.ndarray
    in_index: np.ndarray
    out_ends: np.ndarray
    out_index: np.ndarray


def links(tree: ProofTree) -> Links:
    parent, feature, split = (
        np.asarray(column, dtype=np.int64) for column in (tree.parent, tree.feature, tree.split)
    )
    inside, enumerated = (
        np.ascontiguousarray(column, dtype=np.bool_) for column in (tree.inside, tree.enumerated)
    )
    first, following = _family(parent)
    fixed = (*rows(tree.in_ends, tree.in_index), *rows(tree.out_ends, tree.out_index))
    return Links(parent, first, following, feature, inside, split, enumerated, *fixed)


def rows(ends: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that lie end to end as (starts, then the end of the last; entries)."""
    starts = np.concatenate([[0], np.asarray(ends, dtype=np.int64)])
    return starts, np.ascontiguousarray(index, dtype=np.int32)


@njit(cache=True, nogil=True)
def _family(parent):
    """(first child, next child of the same parent) of each node, in the order of nodes."""
    first, following = np.full(len(parent), -1), np.full(len(parent), -1)
    for node in range(len(parent) - 1, 0, -1):
        following[node] = first[parent[node]]
        first[parent[node]] = node
    return first, following


@njit(cache=True, nogil=True)
def _copy(state, to):
    """A loop: assignments of slices take seconds to compile."""
    for j in range(len(state)):
        to[j] = state[j]


@njit(cache=True, nogil=True)
def _decide(state, position, ends, index, node, decision):
    """Take the decision for a row of features; the first that is not free, -1: all were.

    Nothing is changed where one was not.
    """
    for e in range(ends[node], ends[node + 1]):
        j = position[index[e]]
        if j < 0 or state[j] != FREE:
            for before in range(ends[node], e):
                state[position[index[before]]] = FREE
            return index[e]
        state[j] = decision
    return -1


@njit(cache=True, nogil=True)
def _enter(tree, position, node, state, before):
    """Branch, keep the cell as it is then in `before`, fix; (what is wrong, with which feature)."""
    feature = tree.feature[node]
    j = -1
    if feature >= 0:
        j = position[feature]
        if j < 0 or state[j] != FREE:
            return NOT_FREE_TO_BRANCH, feature
        state[j] = IN if tree.inside[node] else OUT
    _copy(state, before)
    wrong = _decide(state, position, tree.in_ends, tree.in_index, node, IN)
    if wrong < 0:
        wrong = _decide(state, position, tree.out_ends, tree.out_index, node, OUT)
    if wrong >= 0:
        _copy(before, state)
        if j >= 0:
            state[j] = FREE
        return NOT_FREE_TO_FIX, wrong
    return SOUND, -1


@njit(cache=True, nogil=True)
def _leave(tree, position, node, state):
    """All decisions of a node are taken back: they were about free features."""
    if tree.feature[node] >= 0:
        state[position[tree.feature[node]]] = FREE
    for e in range(tree.in_ends[node], tree.in_ends[node + 1]):
        state[position[tree.in_index[e]]] = FREE
    for e in range(tree.out_ends[node], tree.out_ends[node + 1]):
        state[position[tree.out_index[e]]] = FREE


@njit(cache=True, nogil=True)
def walk(tree, position, k, node, state, flaw, culprit, empty, lined, states, listed, cells):
    """Go on from a node, depth first, until a table is full or the walk is over (node -1).

    One cell is in memory, that of the node: decisions are taken back on the way up. Nodes with a
    split go to `lined`, with their cells before the fixings in `states`; nodes to be enumerated to
    `listed`, with their cells after the fixings in `cells`. Returns (next node, length of both).
    Nothing below a node with a `flaw` is visited.
    """
    n_lined, n_listed = 0, 0
    before = np.empty_like(state)
    while node >= 0 and n_lined < len(states) and n_listed < len(cells):
        child = -1
        flaw[node], culprit[node] = _enter(tree, position, node, state, before)
        if flaw[node] == SOUND:
            child = tree.first[node]
            if tree.split[node] >= 0:
                lined[n_lined] = node
                _copy(before, states[n_lined])
                n_lined += 1
            n_in = 0
            for decision in state:
                n_in += decision == IN
            empty[node] = n_in > k
            if tree.enumerated[node] and n_in <= k:
                listed[n_listed] = node
                _copy(state, cells[n_listed])
                n_listed += 1
        if child >= 0:
            node = child
            continue
        while node >= 0:
            if flaw[node] == SOUND:
                _leave(tree, position, node, state)
            if tree.following[node] >= 0:
                node = tree.following[node]
                break
            node = tree.parent[node]
    return node, n_lined, n_listed


@njit(cache=True, nogil=True)
def fill_values(tree, own, violation, tried, empty, flaw, sides, below, values):
    """value = max(own, min(violation, below)) of every node, children before parents.

    `sides` has a row of -inf for each side of a branching. Plain Python may run this on arrays of
    fractions (``fill_values.py_func``).
    """
    for node in range(len(values) - 1, -1, -1):
        if flaw[node] != SOUND:
            continue
        below[node] = tried[node]
        child = tree.first[node]
        while child >= 0:
            feature, side = tree.feature[child], int(tree.inside[child])
            if feature < 0:  # another proof of the same cell
                below[node] = max(below[node], values[child])
            else:
                sides[side, feature] = max(sides[side, feature], values[child])
            child = tree.following[child]
        child = tree.first[node]
        while child >= 0:
            feature = tree.feature[child]
            if feature >= 0:
                both = min(sides[0, feature], sides[1, feature])
                below[node] = max(below[node], both)
            child = tree.following[child]
        child = tree.first[node]
        while child >= 0:
            if tree.feature[child] >= 0:
                sides[0, tree.feature[child]] = sides[1, tree.feature[child]] = -math.inf
            child = tree.following[child]
        if empty[node]:
            below[node] = math.inf
        values[node] = max(0.0, own[node], min(violation[node], below[node]))
