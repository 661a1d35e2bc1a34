"""An open node of a tree over choices, and nodes as a checkpoint keeps them."""

from typing import NamedTuple

import numpy as np

from bestk.base.constants import FREE
from bestk.base.state import State
from bestk.choices.charges import UsedSplit
from bestk.results.certificate import ends_of, joined
from bestk.subtrees.frontier import Recorded, are_numbers, warm_starts_in


class Node(NamedTuple):
    """Decided groups with a proven bound, and a warm start for what is below; see ``frontier``."""

    bound: float
    number: int
    state: np.ndarray
    nonzeros: np.ndarray
    values: np.ndarray
    multipliers: np.ndarray
    level: float
    split: UsedSplit
    cost: float = 0.0

    @property
    def nbytes(self) -> int:
        own = self.state.nbytes + self.nonzeros.nbytes + self.values.nbytes
        return 750 + own + self.multipliers.nbytes + self.split.t.nbytes // 8


def state_of(nodes: list[Node], n_groups: int, p: int, n_constraints: int) -> State:
    """Nodes over p coordinates as arrays; :func:`nodes_in` reads them back."""
    splits = list({id(node.split): node.split for node in nodes}.values())
    place = {id(split): i for i, split in enumerate(splits)}
    plain = [(n.bound, n.number, n.level, place[id(n.split)]) for n in nodes]
    multipliers = np.array([n.multipliers for n in nodes], dtype=np.float64)
    arrays: dict[str, np.ndarray] = {
        "plain": np.array(plain, dtype=np.float64).reshape(-1, 4),
        "splits": np.array([(s.number, s.size) for s in splits], dtype=np.int64).reshape(-1, 2),
        "charges": np.array([s.t for s in splits], dtype=np.float64).reshape(len(splits), p),
        "states": np.array([n.state for n in nodes], dtype=np.int8).reshape(-1, n_groups),
        "multipliers": multipliers.reshape(len(nodes), n_constraints),
        "ends": ends_of([node.nonzeros for node in nodes]),
        "nonzeros": joined([node.nonzeros for node in nodes], np.int32),
        "values": joined([node.values for node in nodes], np.float64),
    }
    return State({}, arrays)


def nodes_in(
    state: State, root: np.ndarray, p: int, n_constraints: int, known: Recorded
) -> list[Node]:
    """Nodes below a root that decides on groups, over p coordinates."""
    states = state.integers("states", None, len(root), below=3).astype(np.int8)
    n = len(states)
    is_below = (states == root)[:, root != FREE].all()
    state.require(is_below, "states", "must keep what is decided for all models")
    state.require((states == FREE).any(axis=1).all(), "states", "must leave a group to decide on")
    splits = state.integers("splits", None, 2, least=-1)
    state.require((splits[:, 0] < known.n_splits).all(), "splits", "must number recorded splits")
    charges = state.reals("charges", len(splits), p, least=0.0)
    pairs = zip(splits.tolist(), charges, strict=True)
    used = [UsedSplit(number, t, size) for (number, size), t in pairs]
    plain = state.reals("plain", n, 4)
    state.require(are_numbers(plain[:, 1], known.n_nodes), "plain", "must number recorded nodes")
    state.require(are_numbers(plain[:, 3], len(used)), "plain", "must number splits")
    state.require((plain[:, 3] >= 0).all(), "plain", "must give each node a split")
    multipliers = state.reals("multipliers", n, n_constraints)
    nonzeros, values = warm_starts_in(state, n, p)
    return [
        Node(bound, int(number), states[i], nonzeros[i], values[i], multipliers[i], level,
             used[int(split)])
        for i, (bound, number, level, split) in enumerate(plain.tolist())
    ]  # fmt: skip
