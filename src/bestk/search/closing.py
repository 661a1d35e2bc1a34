"""Closing nodes by trying all their supports, where that is cheaper than the subtrees below."""

from collections.abc import Callable

import numpy as np

from bestk.base.constants import FREE, IN
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.results.gaps import PERFECT_FIT
from bestk.results.status import Status
from bestk.search.bounder import Bounder
from bestk.search.space import Space
from bestk.search.watch import Watch
from bestk.subtrees.frontier import Node
from bestk.supports import enumeration

# Model seconds below which an enumeration is left to one thread.
_CHEAP = 0.05


class Closing:
    """Enumerates nodes of a space. A limit in the midst of that raises `LimitReached`."""

    def __init__(
        self,
        space: Space,
        bounder: Bounder,
        workers: Workers,
        watch: Watch,
        stop: Callable[[], bool],
    ) -> None:
        self.space, self.bounder, self.workers = space, bounder, workers
        self.watch, self.stop = watch, stop

    @property
    def is_wanted(self) -> bool:
        return self.space.settings.advanced.enumeration

    def is_worth_it(self, node: Node) -> bool:
        """Is trying all supports of the node likely cheaper than the subtree below it?"""
        r = self.space.k - np.count_nonzero(node.state == IN)
        if r == 0 or np.count_nonzero(node.state == FREE) <= r:
            return True
        few_bounds = tuning().close_below * self.bounder.cost_of_one
        return self.is_wanted and node.cost <= max(few_bounds, tuning().close_always)

    @property
    def is_worth_all(self) -> bool:
        """Does all that is open cost no more than has been spent?"""
        space = self.space
        cost = space.frontier.cost + sum(node.cost for node in space.in_work)
        return self.is_wanted and space.n_open > 0 and cost <= self._patience()

    def _patience(self) -> float:
        """Model seconds that closing everything may cost: a multiple of the work done so far.

        The weaker the root bound, the less a tree can hope for beside plain enumeration. Work on
        matrices counts less: it tells nothing about the tree.
        """
        done = self.bounder.searching + tuning().preparing_counts * self.bounder.preparing
        return min(done / max(self.space.hope, 0.02), self._expected())

    def _expected(self) -> float:
        """Model seconds that the rest of the tree is likely to take: some units per open node."""
        bounder, n_open = self.bounder, self.space.n_open
        if bounder.n_units == 0:
            return np.inf
        return tuning().units_per_node * n_open * bounder.searching / bounder.n_units

    def close_all(self) -> None:
        """All that is open."""
        self.close(self.space.frontier.pop(len(self.space.frontier)))

    def close(self, nodes: list[Node]) -> list[Node]:
        """Enumerate nodes; those with too many near-optimal supports go to the queue instead."""
        if not nodes:
            return []
        space, value = self.space, self.space.incumbent.value
        serial = Workers(1)
        cheap = all(node.cost < _CHEAP for node in nodes)

        def hits(node: Node):
            inside = np.flatnonzero(node.state == IN)
            free = np.flatnonzero(node.state == FREE)
            workers = serial if cheap else self.workers
            r = space.k - len(inside)
            return enumeration.hits(space.form, inside, free, r, value, workers, self.stop)

        before, space.in_work = space.in_work, [*space.in_work, *nodes]
        found = self.workers.map(hits, nodes) if cheap else map(hits, nodes)
        resisting = []
        for node, supports in zip(nodes, found, strict=True):
            space.n_nodes += 1
            if supports is None:
                resisting.append(node)
            else:
                space.offer(supports)
                space.recorder.close_by_enumeration(node.number)
        for node in resisting:
            space.frontier.push(node._replace(cost=np.inf))
        space.in_work = before
        if resisting and space.incumbent.value <= PERFECT_FIT:
            self.watch.status = Status.PERFECT_FIT  # too many models tie at the level of rounding
        return resisting
