"""Units in flight: launched in the order of open nodes, landed in the order of their launch.

A unit is launched as soon as the one a fixed number of launches before it has landed. So no worker
waits for others, and the tree is the same whoever is faster. What a device was asked lands once as
much has been explored as many threads would explore meanwhile.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from bestk.base.constants import FREE
from bestk.base.state import State
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.results.status import Status
from bestk.runs.watch import Watch
from bestk.search.bounder import Bounder
from bestk.search.improvement import Improver
from bestk.search.space import Bunch, Space
from bestk.search.units.closing import Asked, Closing
from bestk.search.units.forming import Forming, ascent_cost, terms_of
from bestk.subtrees.engines import Engine
from bestk.subtrees.explore import explore
from bestk.subtrees.frontier import Node, UsedSplit, state_of
from bestk.subtrees.unit import RESISTING, Outcome, Unit


class _Flying(NamedTuple):
    """A unit, the node it is about, and the split that it was promised."""

    node: Node
    unit: Unit
    split: UsedSplit
    ascent: float


class _Sent(NamedTuple):
    """What a device was asked; it lands when so many model seconds are spent on units."""

    asked: Asked
    due: float


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
        self.forming = Forming(space.settings, bounder, space)
        self._flying: deque[_Flying] = deque()
        self._sent: deque[_Sent] = deque()
        self._shared = UsedSplit(-1, np.zeros(0))  # the split of the tree, as it was last used

    @property
    def may_run(self) -> bool:
        return self.forming.may_run

    def __len__(self) -> int:
        return len(self._flying) + len(self._sent)

    @property
    def n_nodes(self) -> int:
        """Nodes of units in flight; they are the first ones in work."""
        return len(self._flying)

    def step(self, *, launch: bool) -> bool:
        """Launch units while there is room, and land the oldest; False if a limit came."""
        if launch:
            self._launch()
        if not len(self):
            return True
        if not self._land():
            return False
        if self.closing.is_worth_all:
            self._call_back()
            self.closing.close_all()
        elif not self.waits_for_box:
            self.tighten()
        return True

    def _land(self) -> bool:
        """Take over the oldest of what is in flight, once it is done; False if a limit came."""
        if self._sent and (not self._flying or self.bounder.searching >= self._sent[0].due):
            return self._land_device()
        outcome = self.engine.get(self.stop)
        if outcome is None or self._reaches_node_limit(len(outcome.parent)):
            return False
        self.closing.close(self._merge(self._taken(), outcome))
        return True

    def _land_device(self) -> bool:
        asked = self._sent[0].asked
        while not asked.is_done:
            if self.stop():
                return False
            self.closing.report()
        if self._reaches_node_limit(len(asked.nodes)):
            return False
        self._sent.popleft()
        del self.space.asked[0]
        self.closing.take(asked)
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
        at_first = self.bounder.n_units == 0 and self.closing.is_worth_all
        if at_first or self.closing.goes_on:
            self.closing.close_all()
        while space.frontier and len(self._flying) < self.forming.in_flight:
            node = space.frontier.pop(1)[0]
            if space.prune(node) or self._waits(node):
                continue
            best = space.incumbent.value, space.cutoff
            self._put(node, self.forming.unit(node, *best, space.n_nodes, self._ascending))
        self._ask()

    def _waits(self, node: Node) -> bool:
        """Whether the node waits for the device: to branch it would take longer than that."""
        if node.cost > self.forming.leave_below or not self.closing.is_for_device(node):
            return False
        self.space.waiting.push(node)
        return True

    def _ask(self) -> None:
        """Send waiting nodes to the device, weakest ones first: many at a time, if it is busy."""
        waiting, now = self.space.waiting, tuning()
        while waiting and len(self._sent) < now.device_questions:
            if self._sent and waiting.cost < now.device_batch:
                return
            nodes: list[Node] = []
            cost = 0.0
            while waiting and (not nodes or cost < now.device_batch):
                node = waiting.pop(1)[0]
                if not self.space.prune(node):
                    nodes.append(node)
                    cost += node.cost
            if nodes:
                before = max(self.bounder.searching, self._sent[-1].due if self._sent else 0.0)
                self._send_off(Bunch(nodes), before + now.device_lag * cost)

    def _send_off(self, bunch: Bunch, due: float) -> None:
        self._sent.append(_Sent(self.closing.ask(bunch.nodes, Workers(1)), due))
        self.space.asked.append(bunch)

    @property
    def _ascending(self) -> float:
        """Model seconds of ascents of units in flight; a sum, as a resumed run has it."""
        return sum([flying.ascent for flying in self._flying])

    def _put(self, node: Node, unit: Unit) -> None:
        split = node.split
        if split is None:
            if self._shared.t is not unit.t:
                self._shared = UsedSplit(self.bounder.split_number, unit.t)
            split = self._shared
        self._send(node, unit, split)

    def _send(self, node: Node, unit: Unit, split: UsedSplit) -> None:
        self._flying.append(_Flying(node, unit, split, ascent_cost(unit)))
        self.space.in_work.append(node)
        self.engine.put(self.forming.subproblem(), unit)

    def _taken(self) -> _Flying:
        """The oldest unit in flight, which it no longer is."""
        del self.space.in_work[0]
        return self._flying.popleft()

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
        if outcome.rounded is not None and space.incumbent.improves:
            self.improver.polish(space.form, outcome.rounded, space.inside)
        resisting = []
        for i, left in self._open_nodes(node, outcome, first, split):
            if i >= 0 and outcome.fate[i] == RESISTING:
                resisting.append(left)
            elif not self._waits(left):
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
                float(outcome.levels[i]), self.space.price(state).cost, split,
            )  # fmt: skip

    def _call_back(self) -> None:
        """All that is in flight is open again."""
        self._recall_device()
        self.engine.end()
        while self._flying:
            self.space.frontier.push(self._taken().node)

    def _recall_device(self, *, keep: bool = False) -> None:
        """What the device was asked waits for it again; with `keep`, unless it has answered."""
        space, sent = self.space, self._sent
        self._sent, space.asked = deque(), []
        for asked, _ in sent:
            if keep and asked.is_done:
                self.closing.take(asked)
            else:
                self.closing.call_back(asked)
                for node in asked.nodes:
                    space.waiting.push(node)

    def _sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """States and dual vectors of some open nodes, the weakest one first."""
        waiting = self.space.frontier.weakest(4 * count)
        asked = [node for bunch in self.space.asked for node in bunch.nodes]
        nodes = sorted([*waiting, *self.space.in_work, *asked], key=lambda node: node.bound)
        some = nodes[: 4 * count : 4]
        duals = np.zeros((len(some), self.space.form.p))
        for dual, node in zip(duals, some, strict=True):
            dual[node.nonzeros] = node.values
        return np.array([node.state for node in some]), duals

    # Limits -----------------------------------------------------------------------------------

    def _reaches_node_limit(self, more: int) -> bool:
        limit = self.space.settings.node_limit
        if limit is not None and self.space.n_nodes + more >= limit:
            self.watch.status = Status.NODE_LIMIT
        return self.watch.status is Status.NODE_LIMIT

    def end(self) -> None:
        """No step will follow: what a limit leaves undone is open again."""
        self._recall_device(keep=self.watch.status is Status.TIME_LIMIT)
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
        """Nodes of units (-1), of what the device was asked (from 0 on), and waiting ones (-2)."""
        units, waiting = self._flying, self.space.waiting.nodes()
        nodes = [flying.node._replace(split=flying.split) for flying in units]
        batches = [-1] * len(nodes)
        for number, (asked, _) in enumerate(self._sent):
            nodes += asked.nodes
            batches += [number] * len(asked.nodes)
        own = {
            "batches": np.array([*batches, *[-2] * len(waiting)], dtype=np.int64),
            "dues": np.array([due for _, due in self._sent]),
            "terms": np.array([terms_of(u.unit) for u in units], dtype=np.float64).reshape(-1, 8),
            "shares": np.array([u.node.split is None for u in units], dtype=bool),
        }
        state = state_of([*nodes, *waiting], self.space.form.p)
        return State(state.plain, state.arrays | own)

    def restore(self, state: State) -> None:
        restored, dues = self.space.nodes_in(state), state.reals("dues", None)
        batches = state.integers("batches", len(restored), least=-2, below=len(dues))
        n_units = int((batches == -1).sum())
        is_open = all((node.state == FREE).any() for node in restored)
        state.require(is_open, "states", "must leave a feature to decide on")
        shares = state.flags("shares", n_units)
        units = zip(self.forming.terms_in(state, n_units), shares.tolist(), strict=True)
        for batch, node in zip(batches.tolist(), restored, strict=True):
            has_split = batch != -1 or node.split is not None
            state.require(has_split, "plain", "must number the splits of units in flight")
        numbered = zip(batches.tolist(), restored, strict=True)
        for batch, group in groupby(numbered, key=lambda pair: pair[0]):
            nodes = [node for _, node in group]
            if batch != -1 and self.closing.workers.device is None:  # the run before had one
                self.space.open_again(nodes)
            elif batch == -2:
                for node in nodes:
                    self.space.waiting.push(node)
            elif batch >= 0:
                self._send_off(Bunch(nodes), float(dues[batch]))
            else:
                for node in nodes:
                    self._relaunch(node, *next(units))

    def _relaunch(self, node: Node, terms: np.ndarray, shares: bool) -> None:
        split = node.split
        assert split is not None
        unit = self.forming.again(node, terms)
        if shares:
            self._shared = split
        self._send(node._replace(split=None) if shares else node, unit, split)
