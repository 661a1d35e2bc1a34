"""The queue of open nodes: its order, its smallest bound, its way into a checkpoint and back."""

import numpy as np
import pytest
from helpers.checks import SEARCHES

from bestk.subtrees.frontier import Frontier, Node, Recorded, UsedSplit, nodes_in, state_of

P = 7


def node(rng, number, split=None, bound=None):
    at = np.flatnonzero(rng.random(P) < 0.4).astype(np.int32)
    return Node(
        bound=float(rng.integers(0, 5)) if bound is None else bound,
        number=number,
        state=rng.integers(0, 3, P).astype(np.int8),
        nonzeros=at,
        values=rng.standard_normal(len(at)),
        level=float(rng.random()),
        cost=float(rng.choice([1e-3, 0.5, np.inf])),
        split=split,
    )


def assert_same_node(one, other):
    assert (one.bound, one.number, one.level, one.cost) == other[:2] + other[5:7]
    for name in ("state", "nonzeros", "values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    if other.split is None:
        assert one.split is None
    else:
        assert one.split.number == other.split.number
        np.testing.assert_array_equal(one.split.t, other.split.t)


@pytest.mark.parametrize("order", SEARCHES)
@pytest.mark.parametrize("seed", range(20))
def test_it_knows_its_nodes_whatever_the_order(seed, order):
    """Against a plain list: length, smallest bound, cost, weakest nodes, order of pushing."""
    rng = np.random.default_rng(seed)
    frontier, plain = Frontier(order), []
    empty = frontier.nbytes
    for step in range(300):
        if plain and rng.random() < 0.45:
            for taken in frontier.pop(int(rng.integers(1, 4))):
                if order == "best-first":
                    least = min(n.bound for n in plain)
                    expected = next(n for n in plain if n.bound == least)
                else:
                    expected = plain[0 if order == "breadth-first" else -1]
                assert taken is expected
                plain = [n for n in plain if n is not expected]
        else:
            plain.append(node(rng, step))
            frontier.push(plain[-1])
        assert len(frontier) == len(plain)
        assert frontier.smallest_bound == min((n.bound for n in plain), default=np.inf)
        assert all(a is b for a, b in zip(frontier.nodes(), plain, strict=True))
        hopeless = any(np.isinf(n.cost) for n in plain)
        finite = sum(n.cost for n in plain if np.isfinite(n.cost))
        assert frontier.cost == (np.inf if hopeless else pytest.approx(finite, abs=1e-9))
        assert frontier.nbytes >= sum(n.nbytes for n in plain)
    frontier.pop(len(frontier))
    assert frontier.pop(3) == []
    assert frontier.smallest_bound == np.inf
    assert frontier.nbytes - empty <= 150 * 300 + 100 * 300  # nothing but tickets


@pytest.mark.parametrize("order", SEARCHES)
@pytest.mark.parametrize("count", [0, 1, 4, 100])
def test_the_weakest_nodes_have_the_smallest_bounds(order, count):
    rng = np.random.default_rng(count)
    frontier, plain = Frontier(order), [node(rng, i) for i in range(30)]
    for one in plain:
        frontier.push(one)
    expected = sorted(plain, key=lambda n: n.bound)[:count]  # stable: earlier ones first
    assert [n.number for n in frontier.weakest(count)] == [n.number for n in expected]
    assert len(frontier) == 30


@pytest.mark.parametrize("seed", range(20))
def test_nodes_come_back_from_a_checkpoint_with_their_splits(seed):
    rng = np.random.default_rng([seed, 1])
    numbers = rng.permutation(40)[:3].tolist()
    splits = [None, *(UsedSplit(number, rng.random(P)) for number in numbers)]
    nodes = [node(rng, i, splits[rng.integers(len(splits))]) for i in range(rng.integers(0, 15))]
    state = state_of(nodes, P)
    nothing = np.zeros(0, dtype=np.intp)
    back = nodes_in(state, P, nothing, P, Recorded(len(nodes), 40))
    for one, other in zip(back, nodes, strict=True):
        assert_same_node(one, other)
    # Nodes share a split as they did before: it is kept once.
    used = {n.split.number for n in nodes if n.split is not None}
    assert len({id(n.split) for n in back if n.split is not None}) == len(used)
    assert sorted(state.arrays["splits"].tolist()) == sorted(used)
    assert state.arrays["charges"].shape == (P * len(used),)


def test_a_split_counts_as_memory():
    rng = np.random.default_rng(0)
    plain = node(rng, 0)
    assert plain._replace(split=UsedSplit(0, np.zeros(800))).nbytes > plain.nbytes
