"""Closing nodes by trying all their supports, where that is cheaper than the subtrees below."""

from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from typing import Any

import numpy as np

from bestk.base.constants import FREE, IN
from bestk.base.device.driver import DeviceFailed
from bestk.base.state import State
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.devices.tasks import Progress
from bestk.results.gaps import PERFECT_FIT
from bestk.results.status import Status
from bestk.runs.watch import Watch
from bestk.search.bounder import Bounder
from bestk.search.space import Space
from bestk.subtrees.frontier import Node
from bestk.supports import enumeration
from bestk.supports.enumeration import Remainder
from bestk.supports.on_cluster import hits_on_cluster

# Model seconds below which an enumeration is left to one thread.
_CHEAP = 0.05
# Seconds between two looks whether a device is done.
_LOOK = 0.05


class Closing:
    """Enumerates nodes of a space. A limit in the midst of that raises `LimitReached`."""

    def __init__(
        self,
        space: Space,
        bounder: Bounder,
        workers: Workers,
        watch: Watch,
        stop: Callable[[], bool],
        report: Callable[[], None],
    ) -> None:
        self.space, self.bounder, self.workers = space, bounder, workers
        self.watch, self.stop, self.report = watch, stop, report
        # How far the device has come with all that is open, of a run that goes on as well.
        self._progress = Progress()
        self._asked: list[Asked] = []

    @property
    def n_supports(self) -> int:
        """Supports that the device has tried of what it has not closed yet."""
        return sum(asked.progress.n_sets for asked in self._asked)

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
        return self.is_wanted and space.n_open > 0 and space.cost <= self._patience()

    def _patience(self) -> float:
        """Model seconds that closing everything may cost: a multiple of the work done so far.

        The weaker the root bound, the less a tree can hope for beside plain enumeration. Work on
        matrices counts less: it tells nothing about the tree.
        """
        done = self.bounder.searching + tuning().preparing_counts * self.bounder.preparing
        if self.workers.device is not None and self.bounder.n_units == 0:
            done *= tuning().device_threads  # the others would have been idle meanwhile
        return min(done / max(self.space.hope, 0.02), self._expected())

    def _expected(self) -> float:
        """Model seconds that the rest of the tree is likely to take: some units per open node."""
        bounder, n_open = self.bounder, self.space.n_open
        if bounder.n_units == 0:
            return np.inf
        return tuning().units_per_node * n_open * bounder.searching / bounder.n_units

    @property
    def saved(self) -> dict[str, Any] | None:
        """For a run that goes on in the midst of closing everything."""
        return self._progress.saved

    @saved.setter
    def saved(self, saved: dict[str, Any] | None) -> None:
        self._progress = Progress(saved)

    def restore(self, state: State) -> None:
        saved = state.plain["saved"]
        state.require(saved is None or isinstance(saved, dict), "saved", "must be an object")
        self.saved = saved  # compared with what a device is asked, before it is used

    @property
    def goes_on(self) -> bool:
        """Whether a run before this one was in the midst of closing everything."""
        return self.saved is not None and self.workers.device is not None

    def close_all(self) -> None:
        """All that is open."""
        self.close([*self.space.frontier.take_all(), *self.space.waiting.take_all()])
        self.saved = None

    def close(self, nodes: list[Node]) -> list[Node]:
        """Enumerate nodes; those with too many near-optimal supports go to the queue instead."""
        if not nodes:
            return []
        space = self.space
        before, space.in_work = space.in_work, [*space.in_work, *nodes]
        here, there = self._parted(nodes)
        resisting = (
            self._beside_device(here, there) if there else self._settle(here, self._hits(here))
        )
        space.in_work = before
        return resisting

    def _parted(self, nodes: list[Node]) -> tuple[list[Node], list[Node]]:
        """Nodes for threads, and those for the device in an order that is found again."""
        there = [node for node in nodes if self.is_for_device(node)]
        here = [node for node in nodes if not self.is_for_device(node)]
        return here, sorted(there, key=lambda node: node.state.tobytes())

    def _beside_device(self, here: list[Node], there: list[Node]) -> list[Node]:
        """Close nodes by threads while the device closes others.

        A better model counts when all are done: a run that is resumed in the midst of it asks the
        same question, and goes on where this one was.
        """
        asked = self.ask(there, self.workers, self._progress)
        found = list(self._hits(here))
        while not asked.is_done:
            if self.stop():
                asked.give_up()
            self.report()
        resisting = self._settle(here, found) + self.take(asked)
        self.saved = None
        return resisting

    def _hits(self, nodes: list[Node]):
        """What to fit of each node, one after the other or all at a time."""
        space, value = self.space, self.space.incumbent.value
        is_long = sum(node.cost for node in nodes) > tuning().cluster_scan
        if self.workers.cluster is not None and is_long and space.form.matrix.has_factors:
            left = [self._left(node) for node in nodes]
            where = space.form, left, value, self.workers, self.stop
            return hits_on_cluster(*where, copies_matter=space.incumbent.copies_matter)
        cheap = all(node.cost < _CHEAP for node in nodes)
        workers = Workers(1) if cheap else self.workers

        def hits(node: Node):
            most = space.incumbent.most_hits
            left = self._left(node)
            copies = space.incumbent.copies_matter
            return enumeration.hits(
                space.form, left, value, workers, self.stop, most=most, copies_matter=copies
            )

        return self.workers.map(hits, nodes) if cheap else map(hits, nodes)

    def _left(self, node: Node) -> Remainder:
        inside = np.flatnonzero(node.state == IN)
        return Remainder(inside, np.flatnonzero(node.state == FREE), self.space.k - len(inside))

    def _settle(self, nodes: list[Node], found) -> list[Node]:
        """Take over what enumerations have found; nodes that resisted."""
        space, resisting = self.space, []
        for node, supports in zip(nodes, found, strict=True):
            space.n_nodes += 1
            if supports is None:
                resisting.append(node)
            else:
                space.offer(supports)
                space.recorder.close_by_enumeration(node.number)
        for node in resisting:
            space.frontier.push(node._replace(cost=np.inf))
        if resisting and space.incumbent.value <= PERFECT_FIT:
            self.watch.status = Status.PERFECT_FIT  # too many models tie at the level of rounding
        return resisting

    # On a device ------------------------------------------------------------------------------

    def is_for_device(self, node: Node) -> bool:
        if self.workers.device is None or not np.isfinite(node.cost):
            return False
        return self.space.price(node.state).on_device

    def ask(self, nodes: list[Node], workers: Workers, progress: Progress | None = None) -> "Asked":
        """Have nodes closed by the device, beside whatever else is done."""
        asked = Asked(nodes, self, workers, progress or Progress())
        self._asked.append(asked)
        return asked

    def call_back(self, asked: "Asked") -> None:
        """Have nodes no longer closed."""
        asked.give_up()
        wait([asked.answer])
        self._asked.remove(asked)

    def take(self, asked: "Asked") -> list[Node]:
        """Take over what the device has found; nodes that resisted it, or that it has lost."""
        self._asked.remove(asked)
        self.space.n_supports += asked.progress.n_sets
        try:
            return self._settle(asked.nodes, asked.answer.result())
        except DeviceFailed as failure:
            self.workers.give_up_device(failure)
            self.space.open_again(asked.nodes)
            return asked.nodes


class Asked:
    """Nodes that a device is closing, with the best value known when it was asked."""

    def __init__(
        self, nodes: list[Node], closing: Closing, workers: Workers, progress: Progress
    ) -> None:
        self.nodes, self.progress, self._is_given_up = nodes, progress, False
        space, pool = closing.space, closing.workers

        def stop() -> bool:
            # Limits are looked at by those who wait for an answer: they know why a run ends.
            return self._is_given_up or pool.is_over

        ask = partial(enumeration.hits_by_device, copies_matter=space.incumbent.copies_matter)
        self.answer = pool.beside(
            ask, space.form, [closing._left(node) for node in nodes],
            space.incumbent.value, pool.device, workers, stop, progress,
        )  # fmt: skip

    @property
    def is_done(self) -> bool:
        """Whether there is an answer; looks for it some times a second."""
        return bool(wait([self.answer], timeout=_LOOK).done)

    def give_up(self) -> None:
        self._is_given_up = True
