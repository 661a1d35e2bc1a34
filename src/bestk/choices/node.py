"""An open node of a tree over choices, and nodes as a checkpoint keeps them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bestk.base.archive import cut
from bestk.base.state import State
from bestk.choices.charges import UsedSplit
from bestk.results.certificate import ends_of, joined


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


def nodes_in(state: State) -> Iterator[Node]:
    arrays = state.arrays
    pairs = zip(arrays["splits"].tolist(), arrays["charges"], strict=True)
    splits = [UsedSplit(number, t, size) for (number, size), t in pairs]
    ends = arrays["ends"]
    nonzeros, values = (cut(arrays[name], ends, most=len(ends)) for name in ("nonzeros", "values"))
    for i, (bound, number, level, split) in enumerate(arrays["plain"].tolist()):
        warm = nonzeros[i], values[i], arrays["multipliers"][i], level
        yield Node(bound, int(number), arrays["states"][i], *warm, splits[int(split)])
