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
    node: Node
    unit: Unit


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
        self._ascending = 0.0  # model seconds of ascents, of units in flight

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
        self.closing.close(self._merge(self._taken().node, outcome))
        if self.closing.is_worth_all:
            self._call_back()
            self.closing.close_all()
        return True

    @property
    def waits_for_charges(self) -> bool:
        """Whether better charges for all are due, which units in flight do not know of."""
        return self.forming.share_charges and self.bounder.is_due

    def tighten(self) -> None:
        """Prepare better charges; nothing is in flight."""
        space = self.space
        self.bounder.tighten(self._sample, space.k, space.cutoff, self.watch.is_late)

    def _launch(self) -> None:
        space = self.space
        while space.frontier and len(self._flying) < self.forming.in_flight(len(space.frontier)):
            node = space.frontier.pop(1)[0]
            if not space.prune(node):
                best = space.incumbent.value, space.cutoff
                self._put(node, self.forming.unit(node, *best, space.n_nodes, self._ascending))

    def _put(self, node: Node, unit: Unit) -> None:
        self._flying.append(_Flying(node, unit))
        self._ascending += ascent_cost(unit)
        self.space.in_work.append(node)
        self.engine.put(self.forming.subproblem(), unit)

    def _taken(self) -> _Flying:
        """The oldest unit, no longer in flight."""
        flying = self._flying.popleft()
        self._ascending -= ascent_cost(flying.unit)
        del self.space.in_work[0]
        return flying

    def _merge(self, node: Node, outcome: Outcome) -> list[Node]:
        """The nodes that resisted an enumeration; all else is taken over."""
        space, recorder = self.space, self.space.recorder
        split = node.split if self.bounder.clusters is None else None
        number = self.bounder.split_number if split is None else split.number
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
        nodes = self.space.frontier.weakest(4 * count)[::4]
        duals = np.zeros((len(nodes), self.space.form.p))
        for dual, node in zip(duals, nodes, strict=True):
            dual[node.nonzeros] = node.values
        return np.array([node.state for node in nodes]), duals

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
            node = self._taken().node
            left = [node] if outcome is None else self._merge(node, outcome)
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
        nodes = state_of([flying.node for flying in self._flying], self.space.form.p)
        terms = np.array([terms_of(flying.unit) for flying in self._flying], dtype=np.float64)
        return State(nodes.plain, nodes.arrays | {"terms": terms.reshape(-1, 6)})

    def restore(self, state: State) -> None:
        for node, terms in zip(nodes_in(state), state.arrays["terms"], strict=True):
            self._put(node, self.forming.again(node, terms))
