"""Units in flight: launched in the order of open nodes, landed in the order of their launch.

A unit is launched as soon as the one a fixed number of launches before it has landed. So no worker
waits for others, and the tree is the same whoever is faster.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bestk.base.state import State
from bestk.results.status import Status
from bestk.search.bounder import Bounder
from bestk.search.closing import Closing
from bestk.search.forming import Forming, ascent_cost, terms_of
from bestk.search.improvement import Improver
from bestk.search.space import Space
from bestk.search.watch import Watch
from bestk.subtrees.engines import Engine
from bestk.subtrees.explore import explore
from bestk.subtrees.frontier import Node, UsedSplit, nodes_in, state_of
from bestk.subtrees.unit import RESISTING, Outcome, Unit


class _Flying(NamedTuple):
    """A unit, the node it is about, and the split that it was promised."""

    node: Node
    unit: Unit
    split: UsedSplit


class Flight:
    """Explores the open nodes of a space by units of work."""

    def __init__(
        self,
        space: Space,
        bounder: Bounder,
        closing: Closing,
        improver: Improver,
        engine: Engine,
        watch: Watch,
        stop: Callable[[], bool],
    ) -> None:
        self.space, self.bounder, self.closing, self.improver = space, bounder, closing, improver
        self.engine, self.watch, self.stop = engine, watch, stop
        self.forming = Forming(space.settings, bounder, space.k)
        self._flying: deque[_Flying] = deque()
        self._shared = UsedSplit(-1, np.zeros(0))  # the split of the tree, as it was last used

    @property
    def may_run(self) -> bool:
        return self.forming.may_run

    def __len__(self) -> int:
        return len(self._flying)

    def step(self, *, launch: bool) -> bool:
        """Launch units while there is room, and land the oldest; False if a limit came."""
        if launch:
            self._launch()
        if not self._flying:
            return True
        outcome = self.engine.get(self.stop)
        if outcome is None or self._reaches_node_limit(outcome):
            return False
        self.closing.close(self._merge(self._taken(), outcome))
        if self.closing.is_worth_all:
            self._call_back()
            self.closing.close_all()
        elif not self.waits_for_box:
            self.tighten()
        return True

    @property
    def waits_for_box(self) -> bool:
        """Whether a narrower box is due, which units in flight do not know of."""
        return self.forming.share_charges and self.bounder.is_due and self.bounder.narrows

    def tighten(self) -> None:
        """Prepare better charges for units to come, once these are due."""
        space = self.space
        if self.forming.share_charges and self.bounder.is_due:
            self.bounder.tighten(self._sample, space.k, space.cutoff, self.watch.is_late)

    def _launch(self) -> None:
        space = self.space
        while space.frontier and len(self._flying) < self.forming.in_flight:
            node = space.frontier.pop(1)[0]
            if not space.prune(node):
                best = space.incumbent.value, space.cutoff
                self._put(node, self.forming.unit(node, *best, space.n_nodes, self._ascending))

    @property
    def _ascending(self) -> float:
        """Model seconds of ascents of units in flight; a sum, as a resumed run has it."""
        return sum(ascent_cost(flying.unit) for flying in self._flying)

    def _put(self, node: Node, unit: Unit) -> None:
        split = node.split
        if split is None:
            if self._shared.t is not unit.t:
                self._shared = UsedSplit(self.bounder.split_number, unit.t)
            split = self._shared
        self._send(_Flying(node, unit, split))

    def _send(self, flying: _Flying) -> None:
        self._flying.append(flying)
        self.space.in_work.append(flying.node)
        self.engine.put(self.forming.subproblem(), flying.unit)

    def _taken(self) -> _Flying:
        """The oldest unit, no longer in flight."""
        flying = self._flying.popleft()
        del self.space.in_work[0]
        return flying

    def _merge(self, flying: _Flying, outcome: Outcome) -> list[Node]:
        """The nodes that resisted an enumeration; all else is taken over."""
        space, recorder = self.space, self.space.recorder
        node, split = flying.node, flying.node.split
        number = flying.split.number
        if self.bounder.clusters is not None:
            split, number = None, self.bounder.split_number
        if outcome.t is not None:
            here = outcome.split_features
            number = recorder.add_split(space.form.features[here], outcome.t[here])
            split = UsedSplit(number, outcome.t)
        first = recorder.add_outcome(outcome, node.number, space.form.features, number)
        self.forming.charge(outcome)
        space.n_nodes += len(outcome.parent)
        space.drop(outcome.dropped)
        space.offer(outcome.hits)
        if outcome.rounded is not None:
            self.improver.polish(space.form, outcome.rounded, space.inside)
        resisting = []
        for i, left in self._open_nodes(node, outcome, first, split):
            if i >= 0 and outcome.fate[i] == RESISTING:
                resisting.append(left)
            else:
                space.frontier.push(left)
        return resisting

    def _open_nodes(
        self, unit: Node, outcome: Outcome, first: int, split: UsedSplit | None
    ) -> Iterator[tuple[int, Node]]:
        """Nodes that a unit has left open, by number; -1 is its root."""
        for row, i in enumerate(outcome.open_nodes.tolist()):
            if i < 0:
                yield i, unit
                continue
            part, state = outcome.duals.row(i), outcome.states[row]
            # Copies: a view would keep all that the unit has left in memory.
            yield i, Node(
                float(outcome.bounds[i]), first + i if first >= 0 else -1, state.copy(),
                outcome.duals.features[part].copy(), outcome.duals.values[part].copy(),
                float(outcome.levels[i]), self.space.closing_cost(state), split,
            )  # fmt: skip

    def _call_back(self) -> None:
        """Units in flight are open nodes again."""
        self.engine.end()
        while self._flying:
            self.space.frontier.push(self._taken().node)

    def _sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """States and dual vectors of some open nodes, the weakest one first."""
        waiting = self.space.frontier.weakest(4 * count)
        nodes = sorted([*waiting, *self.space.in_work], key=lambda node: node.bound)
        some = nodes[: 4 * count : 4]
        duals = np.zeros((len(some), self.space.form.p))
        for dual, node in zip(duals, some, strict=True):
            dual[node.nonzeros] = node.values
        return np.array([node.state for node in some]), duals

    # Limits -----------------------------------------------------------------------------------

    def _reaches_node_limit(self, outcome: Outcome) -> bool:
        limit = self.space.settings.node_limit
        if limit is not None and self.space.n_nodes + len(outcome.parent) >= limit:
            self.watch.status = Status.NODE_LIMIT
        return self.watch.status is Status.NODE_LIMIT

    def end(self) -> None:
        """No step will follow: what a limit leaves undone is open again."""
        if self.watch.status is Status.TIME_LIMIT:
            self._take_over(self.engine.end())  # all that is done counts
        elif self.watch.status is Status.NODE_LIMIT and self._flying:
            self._take_over([self._cut()])
        self._call_back()

    def _take_over(self, outcomes: list[Outcome | None]) -> None:
        for outcome in outcomes:
            flying = self._taken()
            left = [flying.node] if outcome is None else self._merge(flying, outcome)
            for open_node in left:
                self.space.frontier.push(open_node)

    def _cut(self) -> Outcome | None:
        """The oldest unit with as many nodes as the limit leaves, if it can be so small."""
        limit, n_nodes = self.space.settings.node_limit, self.space.n_nodes
        assert limit is not None
        left = limit - n_nodes
        if left <= 0:
            return None
        unit = self._flying[0].unit
        budget = unit.budget._replace(nodes=min(left + 2, unit.budget.nodes))
        outcome = explore(self.forming.subproblem(), unit._replace(budget=budget))
        return outcome if outcome is not None and len(outcome.parent) <= left + 2 else None

    # In a checkpoint --------------------------------------------------------------------------

    def state(self) -> State:
        promised = [flying.node._replace(split=flying.split) for flying in self._flying]
        nodes = state_of(promised, self.space.form.p)
        terms = [terms_of(flying.unit) for flying in self._flying]
        own = {
            "terms": np.array(terms, dtype=np.float64).reshape(-1, 7),
            "shares": np.array([flying.node.split is None for flying in self._flying], dtype=bool),
        }
        return State(nodes.plain, nodes.arrays | own)

    def restore(self, state: State) -> None:
        arrays = state.arrays
        for node, terms, shares in zip(
            nodes_in(state), arrays["terms"], arrays["shares"], strict=True
        ):
            split = node.split
            assert split is not None
            unit = self.forming.again(node, terms)
            if shares:
                self._shared = split
            self._send(_Flying(node._replace(split=None) if shares else node, unit, split))
