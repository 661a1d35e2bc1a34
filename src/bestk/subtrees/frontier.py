"""Open nodes of the tree, in the order in which they will be taken."""

import heapq
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from bestk.base.constants import IN
from bestk.base.state import State
from bestk.results.certificate import ends_of, joined

# Seconds of enumeration that will never be spent; kept out of sums so that they stay exact enough.
_HOPELESS = 1e6


class UsedSplit(NamedTuple):
    """Charges that were proven for a subtree, and their number in the record."""

    number: int
    t: np.ndarray


class Node(NamedTuple):
    """A set of supports: forced IN, forced OUT, the rest FREE (``state``), with a proven bound.

    ``nonzeros`` and ``values`` hold the dual vector, ``level`` goes with them: a warm
    start for the children. ``cost`` estimates the seconds it takes to close the node outright.
    ``split`` is what its subtree inherits, None for the split that the whole tree shares.
    """

    bound: float
    number: int
    state: np.ndarray
    nonzeros: np.ndarray
    values: np.ndarray
    level: float
    cost: float
    split: UsedSplit | None = None

    @property
    def nbytes(self) -> int:
        # Some ten nodes of a unit share a split.
        split = 0 if self.split is None else self.split.t.nbytes // 8
        return 750 + self.state.nbytes + self.nonzeros.nbytes + self.values.nbytes + split


class Recorded(NamedTuple):
    """How many nodes and splits a record has, which nodes refer to by their numbers."""

    n_nodes: int
    n_splits: int


def state_of(nodes: list[Node], p: int) -> State:
    """Nodes of a form with p features, as arrays; :func:`nodes_in` reads them back."""
    splits = list({id(n.split): n.split for n in nodes if n.split is not None}.values())
    place = {id(split): i for i, split in enumerate(splits)}
    plain = [(n.bound, n.number, n.level, n.cost, place.get(id(n.split), -1)) for n in nodes]
    arrays = {
        "plain": np.array(plain, dtype=np.float64).reshape(-1, 5),
        "splits": np.array([split.number for split in splits], dtype=np.int64),
        "charges": joined([split.t for split in splits], np.float64),
        "states": joined([node.state for node in nodes], np.int8).reshape(-1, p),
        "ends": ends_of([node.nonzeros for node in nodes]),
        "nonzeros": joined([node.nonzeros for node in nodes], np.int32),
        "values": joined([node.values for node in nodes], np.float64),
    }
    return State({}, arrays)


def nodes_in(state: State, p: int, inside: np.ndarray, k: int, known: Recorded) -> list[Node]:
    """Nodes of a form with p features, k of them at most in a model, those `inside` in all."""
    states = state.integers("states", None, p, below=3).astype(np.int8)
    state.require((states[:, inside] == IN).all(), "states", "must have all that is in every model")
    state.require(((states == IN).sum(axis=1) <= k).all(), "states", "must have at most k features")
    numbers = state.integers("splits", None, least=-1, below=known.n_splits)
    charges = state.reals("charges", len(numbers) * p, least=0.0).reshape(-1, p)
    splits = [UsedSplit(n, t) for n, t in zip(numbers.tolist(), charges, strict=True)]
    plain = state.reals("plain", len(states), 5, finite=False)
    numbers, places = plain[:, 1], plain[:, 4]
    state.require(are_numbers(numbers, known.n_nodes), "plain", "must number nodes of the record")
    state.require(are_numbers(places, len(splits)), "plain", "must number splits")
    is_finite = np.isfinite(plain[:, [0, 2]]).all() and (plain[:, 3] >= 0.0).all()
    state.require(is_finite, "plain", "must have finite bounds and levels, and costs from 0 on")
    nonzeros, values = warm_starts_in(state, len(states), p)
    return [
        Node(
            bound, int(number), states[i], nonzeros[i], values[i], level, cost,
            splits[int(place)] if place >= 0 else None,
        )
        for i, (bound, number, level, cost, place) in enumerate(plain.tolist())
    ]  # fmt: skip


def warm_starts_in(state: State, count: int, p: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Dual vectors of nodes: where they are not zero, and the values there."""
    nonzeros = state.integers("nonzeros", None, below=p).astype(np.int32)
    values = state.reals("values", len(nonzeros))
    return state.rows("ends", nonzeros, count), state.rows("ends", values, count)


def are_numbers(values: np.ndarray, count: int) -> bool:
    """Whole numbers from -1, which stands for none, to count - 1."""
    return bool(((values == np.floor(values)) & (values >= -1.0) & (values < count)).all())


class Queued(Protocol):
    """What a queue has to know of a node."""

    @property
    def bound(self) -> float: ...

    @property
    def cost(self) -> float: ...

    @property
    def nbytes(self) -> int: ...


N = TypeVar("N", bound=Queued)


class Frontier(Generic[N]):
    """A priority queue of nodes that always knows the smallest open bound."""

    def __init__(self, order: str) -> None:
        self._order = order
        self._pushed = 0
        self._queue: list[tuple[float, int, N]] = []
        # In other orders than best-first: bounds of all nodes in the queue, and of some that left.
        self._bounds: list[tuple[float, int]] = []
        self._taken: set[int] = set()
        self._nbytes = 0
        self._cost = 0.0
        self._hopeless = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def nbytes(self) -> int:
        return self._nbytes + 150 * len(self._bounds) + 100 * len(self._taken)

    def push(self, node: N) -> None:
        self._pushed += 1
        key = {
            "best-first": node.bound,
            "breadth-first": 0.0,
            "depth-first": -float(self._pushed),
        }[self._order]
        heapq.heappush(self._queue, (key, self._pushed, node))
        if self._order != "best-first":
            heapq.heappush(self._bounds, (node.bound, self._pushed))
        self._count(node, 1)

    def pop(self, count: int) -> list[N]:
        nodes: list[N] = []
        while self._queue and len(nodes) < count:
            _, ticket, node = heapq.heappop(self._queue)
            if self._order != "best-first":
                self._taken.add(ticket)
            self._count(node, -1)
            nodes.append(node)
        if len(self._taken) > len(self._queue) + 1000:
            self._bounds = [(node.bound, ticket) for _, ticket, node in self._queue]
            heapq.heapify(self._bounds)
            self._taken.clear()
        return nodes

    def take_all(self) -> list[N]:
        return self.pop(len(self))

    def nodes(self) -> list[N]:
        """All open nodes, in the order in which they were pushed."""
        return [node for _, _, node in sorted(self._queue, key=lambda entry: entry[1])]

    def weakest(self, count: int) -> list[N]:
        """Open nodes with the smallest bounds."""
        order = heapq.nsmallest(count, self._queue, key=lambda entry: (entry[2].bound, entry[1]))
        return [node for _, _, node in order]

    def _count(self, node: N, sign: int) -> None:
        self._nbytes += sign * node.nbytes
        if node.cost < _HOPELESS:
            self._cost += sign * node.cost
        else:
            self._hopeless += sign

    @property
    def cost(self) -> float:
        """Estimated seconds to close every open node by enumeration."""
        return float("inf") if self._hopeless else self._cost

    @property
    def smallest_bound(self) -> float:
        if self._order == "best-first":
            return self._queue[0][0] if self._queue else float("inf")
        while self._bounds and self._bounds[0][1] in self._taken:
            self._taken.remove(heapq.heappop(self._bounds)[1])
        return self._bounds[0][0] if self._bounds else float("inf")
