"""The compiled walk and the values of nodes are those of plain Python."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.mutations import changed, proof, with_tree
from helpers.prover import FREE, IN, OUT, certify, checked, make_problem, tree_of

from bestk.verification.numerics.tree import (
    NOT_FREE_TO_BRANCH,
    NOT_FREE_TO_FIX,
    SOUND,
    UNSEEN,
    fill_values,
    links,
    walk,
)

P = 7


def random_tree(rng, n_nodes: int):
    """Any tree over P features, many of its decisions contradicting each other."""
    rows = []
    for i in range(n_nodes):
        free = rng.permutation(P)
        n_in, n_out = (rng.random(2) < 0.3).astype(int) * rng.integers(1, 3, 2)
        rows.append({
            "parent": int(rng.integers(max(0, i - 4), i)) if i else -1,
            "feature": int(rng.integers(-1, P)) if i else -1, "inside": rng.random() < 0.4,
            "split": int(rng.integers(-1, 2)), "enumerated": rng.random() < 0.3,
            "g": [], "at": [], "in": free[:n_in], "out": free[P - n_out :],
        })  # fmt: skip
    return tree_of(rows)


def walked(tree, position, k, room):
    """The compiled walk with tables of a few rows: (flaws, culprits, empty, lined, listed)."""
    m, p = len(tree), int((position >= 0).sum())
    flaw, culprit = np.full(m, UNSEEN, np.int8), np.full(m, -1)
    empty, state = np.zeros(m, dtype=np.bool_), np.zeros(p, dtype=np.int8)
    lined, listed = np.empty((2, room), dtype=np.int64)
    states, cells = np.empty((2, room, p), dtype=np.int8)
    all_lined, all_listed, node = [], [], 0
    while node >= 0:
        node, a, b = walk(links(tree), position, k, node, state, flaw, culprit, empty,
                          lined, states, listed, cells)  # fmt: skip
        all_lined += [(int(i), s.tolist()) for i, s in zip(lined[:a], states[:a], strict=True)]
        all_listed += [(int(i), s.tolist()) for i, s in zip(listed[:b], cells[:b], strict=True)]
    assert (state == FREE).all()
    return flaw.tolist(), culprit.tolist(), empty.tolist(), all_lined, all_listed


def walked_plainly(tree, position, k):
    """The same by recursion, every cell a copy."""
    m, p = len(tree), int((position >= 0).sum())
    flaw, culprit, empty = [UNSEEN] * m, [-1] * m, [False] * m
    lined, listed = [], []

    def visit(node, state):
        flaw[node], state, feature = SOUND, list(state), int(tree.feature[node])
        if feature >= 0:
            j = position[feature]
            if j < 0 or state[j] != FREE:
                flaw[node], culprit[node] = NOT_FREE_TO_BRANCH, feature
                return
            state[j] = IN if tree.inside[node] else OUT
        before = list(state)
        for features, decision in ((tree.fixed_in(node), IN), (tree.fixed_out(node), OUT)):
            for feature in features.tolist():
                if position[feature] < 0 or state[position[feature]] != FREE:
                    flaw[node], culprit[node] = NOT_FREE_TO_FIX, feature
                    return
                state[position[feature]] = decision
        if tree.split[node] >= 0:
            lined.append((node, before))
        empty[node] = state.count(IN) > k
        if tree.enumerated[node] and not empty[node]:
            listed.append((node, state))
        for child in np.flatnonzero(tree.parent == node).tolist():
            visit(child, state)

    visit(0, [FREE] * p)
    return flaw, culprit, empty, lined, listed


@pytest.mark.parametrize("seed", range(30))
def test_the_walk_visits_cells_like_a_recursion(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 25)
    position = np.arange(P)
    if seed % 3 == 0:  # a feature that is not live
        position = np.insert(np.arange(P - 1), int(rng.integers(P)), -1)
    expected = walked_plainly(tree, position, k=2)
    for room in (1, 3, 100):
        assert walked(tree, position, 2, room) == expected


@pytest.mark.parametrize("seed", range(30))
def test_values_of_nodes_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 25)
    m = len(tree)
    own, violation, tried = (rng.choice([*rng.random(m), -math.inf], m) for _ in range(3))
    violation[rng.random(m) < 0.5] = math.inf
    empty = rng.random(m) < 0.1
    flaw = rng.choice(np.array([SOUND, UNSEEN, NOT_FREE_TO_FIX], np.int8), m, p=[0.9, 0.05, 0.05])

    def below(node):
        if empty[node]:
            return math.inf
        children = np.flatnonzero(tree.parent == node)
        best = [tried[node], *(value(c) for c in children if tree.feature[c] < 0)]
        for feature in range(P):
            sides = [
                [value(c) for c in children if (tree.feature[c], tree.inside[c]) == (feature, side)]
                for side in (False, True)
            ]
            best.append(min(max(side, default=-math.inf) for side in sides))
        return max(best)

    def value(node):
        if flaw[node] != SOUND:
            return 0.0
        return max(0.0, own[node], min(violation[node], below(node)))

    expected = [value(node) for node in range(m)]
    for fill in (fill_values, fill_values.py_func):
        values, unused = np.zeros(m), np.full(m, -math.inf)
        sides = np.full((2, P), -math.inf)
        fill(links(tree), own, violation, tried, empty, flaw, sides, unused, values)
        assert values.tolist() == expected
        assert (sides == -math.inf).all()


def reported(found):
    return found.is_valid, found.failures, found.lower_bound, found.n_supports, found.assumptions


@pytest.mark.parametrize("seed", range(8))
def test_results_do_not_depend_on_threads_or_parts(seed, force):
    instance = make_problem(seed)
    certificate = certify(instance, seed)
    expected = reported(checked(instance, certificate, n_threads=1))
    assert expected[0]
    force.verifier_takes_few_nodes()
    for n_threads in (1, 2, 5):
        assert reported(checked(instance, certificate, n_threads=n_threads)) == expected


@pytest.mark.parametrize("seed", range(8))
def test_failures_do_not_depend_on_threads_or_parts(seed, force):
    """Of a proof with several mistakes, splits included."""
    instance, certificate = proof()
    rng, tree = np.random.default_rng(seed), certificate.tree
    nodes = rng.permutation(np.flatnonzero(tree.feature >= 0))
    features = changed(tree.feature, nodes[:2], rng.integers(0, 8, 2))
    forged = with_tree(certificate, feature=features, split=changed(tree.split, nodes[2:4], -1))
    first = forged.splits[0]
    splits = (first._replace(t=first.t + (seed % 2)), *forged.splits[1:])
    forged = replace(forged, splits=splits)
    expected = reported(checked(instance, forged, n_threads=1))
    force.verifier_takes_few_nodes()
    for n_threads in (1, 2, 5):
        assert reported(checked(instance, forged, n_threads=n_threads)) == expected
    assert expected[1][0].startswith("split 0") or seed % 2 == 0
