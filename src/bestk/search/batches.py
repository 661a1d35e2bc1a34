"""Nodes in batches: the root, and trees whose nodes cannot be explored as units of their own.

These are trees of wide data, and those of the paper's methods and branching.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.tuning import tuning
from bestk.bounds.node_batch import NodeBatch
from bestk.search import branching
from bestk.search.bounder import Bounder
from bestk.search.improvement import Improver
from bestk.search.space import Space
from bestk.search.units.closing import Closing
from bestk.subtrees.covers import feature_of_cover, is_covered
from bestk.subtrees.frontier import Node


class Origin(NamedTuple):
    """Where a bounded node comes from: its parent, the decision, its state before fixing."""

    parent: Node
    feature: int
    inside: bool
    before: np.ndarray


class Batches:
    """Branches nodes, bounds their children together, and admits those that stay open."""

    def __init__(
        self, space: Space, bounder: Bounder, closing: Closing, improver: Improver
    ) -> None:
        self.space, self.bounder, self.closing, self.improver = space, bounder, closing, improver

    def step(self, is_late: Callable[[], bool]) -> None:
        """Branch the best open nodes, bound and admit their children."""
        space = self.space
        space.in_work = space.frontier.pop(self._size())
        nodes = [node for node in space.in_work if not space.prune(node)]
        if nodes:
            batch, origins = self._children(nodes)
            self.admit(batch, origins)
            alive = np.flatnonzero(batch.bounds < space.cutoff)

            def sample(count: int) -> tuple[np.ndarray, np.ndarray]:
                some = alive[:: max(1, len(alive) // count)][:count]
                return batch.states[some], batch.duals[some]

            self.bounder.tighten(sample, space.k, space.cutoff, is_late)
        space.in_work = []

    def _size(self) -> int:
        asked = self.space.settings.advanced.batch_size
        if asked is not None:
            return asked
        size = int(np.clip(tuning().batch_entries // self.space.form.p, 8, 128))
        # Limits are looked at between batches: where nodes are costly, these are small.
        return max(1, min(size, int(tuning().batch_seconds / max(self.bounder.cost_of_one, 1e-9))))

    def _children(self, nodes: list[Node]) -> tuple[NodeBatch, list[Origin]]:
        """Branch every node on one feature and bound the children, IN and OUT, as one batch."""
        rows = 2 * len(nodes)
        states = np.repeat(np.array([node.state for node in nodes]), 2, axis=0)
        duals = np.zeros((rows, self.space.form.p))
        levels = np.repeat([node.level for node in nodes], 2)
        origins = []
        for i, node in enumerate(nodes):
            duals[2 * i : 2 * i + 2, node.nonzeros] = node.values
            feature = self._branching_feature(node, duals[2 * i])
            states[2 * i, feature], states[2 * i + 1, feature] = IN, OUT
            for row, inside in ((2 * i, True), (2 * i + 1, False)):
                origins.append(Origin(node, feature, inside, states[row].copy()))
        batch = NodeBatch.of(states, duals, levels)
        self.bound(batch, origins)
        return batch, origins

    def _branching_feature(self, node: Node, dual: np.ndarray) -> int:
        space, advanced = self.space, self.space.settings.advanced
        r = space.k - int(np.count_nonzero(node.state == IN))
        feature = feature_of_cover(node.state, space.covers, r, dual)
        if feature >= 0:
            return int(feature)
        if advanced.branching == "heuristic":
            width = advanced.beam_width
            feature, support = branching.by_heuristic(space.form, node.state, space.k, width)
            space.offer([support])
            return feature
        return branching.by_relaxation(space.form, node.state, dual)

    def bound(self, batch: NodeBatch, origins: list[Origin]) -> None:
        space = self.space
        self.bounder.bound(batch, space.k, space.incumbent.value, space.cutoff)
        batch.numbers = [self._record(origin, batch, i) for i, origin in enumerate(origins)]
        space.n_nodes += len(batch)

    def _record(self, origin: Origin, batch: NodeBatch, row: int) -> int:
        recorder = self.space.recorder
        if not recorder.enabled:
            return -1
        features, state = self.space.form.features, batch.states[row]
        fixed = origin.before == FREE
        index = np.flatnonzero(batch.duals[row])
        return recorder.add(
            parent=origin.parent.number,
            feature=int(features[origin.feature]) if origin.feature >= 0 else -1,
            inside=origin.inside,
            split=self.bounder.split_number,
            dual=(features[index], batch.duals[row, index]),
            fixed_in=features[(state == IN) & fixed],
            fixed_out=features[(state == OUT) & fixed],
        )

    def admit(self, batch: NodeBatch, origins: list[Origin]) -> None:
        """Prune, close or queue freshly bounded nodes; round their duals to better models."""
        space = self.space
        open_nodes: list[Node] = []
        closable: list[Node] = []
        for i, origin in enumerate(origins):
            node = self._admitted(batch, i, origin, space.cutoff)
            if node is not None:
                (closable if self.closing.is_worth_it(node) else open_nodes).append(node)
        for node in open_nodes:
            space.frontier.push(node)
        space.in_work = []
        self.closing.close(closable)
        if space.settings.advanced.branching == "relaxation" and space.incumbent.improves:
            self.improver.round(space.form, space.inside, space.k, open_nodes)
        if self.closing.is_worth_all:
            self.closing.close_all()

    def _admitted(self, batch: NodeBatch, i: int, origin: Origin, cutoff: float) -> Node | None:
        """Node i of a batch, if it may hold a better model."""
        space, state, dual = self.space, batch.states[i], batch.duals[i]
        bound = max(float(batch.bounds[i]), origin.parent.bound)
        if bound >= cutoff:
            space.drop(bound)
            return None
        if (state != origin.before).any():
            space.drop(cutoff)
        if np.count_nonzero(state == IN) > space.k:
            return None
        if is_covered(state, space.covers):
            space.recorder.close_by_enumeration(batch.numbers[i])
            return None
        index = np.flatnonzero(dual)
        warm = index.astype(np.int32), dual[index], batch.levels[i]
        return Node(bound, batch.numbers[i], state.copy(), *warm, space.price(state).cost)
