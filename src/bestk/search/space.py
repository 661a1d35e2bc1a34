"""The search space: every part of it is open, in work, proven to be of no use, or given up."""

from typing import NamedTuple

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.form.presolve import Presolved
from bestk.form.standard_form import StandardForm
from bestk.results.gaps import PERFECT_FIT
from bestk.search.lessons import Lessons
from bestk.subtrees.covers import among
from bestk.subtrees.frontier import Frontier, Node, nodes_in
from bestk.subtrees.recorder import Recorder
from bestk.supports import enumeration
from bestk.supports.incumbent import Incumbent


class Bunch:
    """Nodes that a device closes together."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.cost = sum(node.cost for node in nodes)
        self.bound = min(node.bound for node in nodes)


class Price(NamedTuple):
    """Model seconds that it costs to close a node outright, and whether a device does it."""

    cost: float
    on_device: bool


class Space:
    """What a search knows: nodes that are open, in work, or waiting for a device; what is proven.

    Values are in units of y'y. ``dropped`` is the smallest bound among everything that was given up
    without proof that it is worse than the incumbent; the global bound never exceeds it.
    """

    def __init__(
        self,
        presolved: Presolved,
        k: int,
        incumbent: Incumbent,
        lessons: Lessons,
        settings: Settings,
        workers: Workers,
    ) -> None:
        self.workers = workers
        self.lessons, self.settings, self.incumbent = lessons, settings, incumbent
        self.form: StandardForm = lessons.form
        self.inside, self.k = presolved.inside, k
        self.frontier: Frontier[Node] = Frontier(settings.search)
        self.in_work: list[Node] = []
        # What a device is to close, and what it was asked to.
        self.waiting: Frontier[Node] = Frontier("best-first")
        self.asked = list[Bunch]()
        self.dropped = np.inf
        self.proven = 0.0
        self.n_nodes = 0
        self.n_supports = 0
        self.recorder = Recorder(settings.record_limit)
        # The root as far as it is decided, its number in the record, and what is proven about it.
        self.root_state = np.zeros(0, dtype=np.int8)
        self.root_number = 0
        self.root_bound = 0.0
        self._prices: dict[tuple[int, int, bool], Price] = {}
        self._covers: tuple[StandardForm, np.ndarray] | None = None

    @property
    def cutoff(self) -> float:
        """Nodes whose bound reaches this cannot hold a model better by more than gap_tol."""
        value = self.incumbent.value
        # One ulp up: the gap that is computed from it later must not round above gap_tol.
        return np.nextafter(value - self.settings.gap_tol * max(value, PERFECT_FIT), value)

    @property
    def covers(self) -> np.ndarray:
        """Supports that are known already, in the numbers of the form (see `subtrees.covers`)."""
        rows = self.incumbent.covers
        if self._covers is None or self._covers[0] is not self.form:
            found = among(rows, self.form.features, self.incumbent.problem.n_features)
            self._covers = self.form, found
        return self._covers[1]

    @property
    def hope(self) -> float:
        """Share of the incumbent's value that is proven at the root: what a tree can hope for."""
        return max(self.root_bound, 0.0) / max(self.incumbent.value, PERFECT_FIT)

    @property
    def is_whole(self) -> bool:
        """Whether the form is still that of the presolved problem, which lessons are about."""
        return self.form is self.lessons.form

    @property
    def smallest_bound(self) -> float:
        """Among nodes that are open, in work, or with a device."""
        asked = [bunch.bound for bunch in self.asked]
        queued = self.frontier.smallest_bound, self.waiting.smallest_bound
        return min(*queued, *asked, *[node.bound for node in self.in_work])

    @property
    def n_open(self) -> int:
        asked = sum([len(bunch.nodes) for bunch in self.asked])
        return len(self.frontier) + len(self.waiting) + len(self.in_work) + asked

    @property
    def has_more_than_device(self) -> bool:
        """Whether something is open that no device closes."""
        return len(self.frontier) + len(self.in_work) > 0

    @property
    def cost(self) -> float:
        """Model seconds to close everything that is open."""
        working = sum([node.cost for node in self.in_work])
        return self.frontier.cost + self.waiting.cost + working + sum(b.cost for b in self.asked)

    def settle(self, outside: float) -> None:
        """Raise the proven bound: the minimum over open nodes, nodes in work, and nodes given up.

        Called only between steps, when every part of the search space is in one of these. Models
        that the form leaves out have at least the value `outside`.
        """
        open_bound = min(self.smallest_bound, self.dropped, outside)
        self.proven = max(self.proven, min(open_bound, self.incumbent.value))

    @property
    def lower_bound(self) -> float:
        """The proven bound in the problem's units; the objective itself where nothing is open."""
        if self.proven >= self.incumbent.value:
            return self.incumbent.objective
        return float(self.proven * self.incumbent.problem.yy)

    def prune(self, node: Node) -> bool:
        """Whether the node can be given up, which it then is."""
        if node.bound < self.cutoff:
            return False
        self.drop(node.bound)
        return True

    def drop(self, bound: float) -> None:
        self.dropped = min(self.dropped, bound)

    def offer(self, supports) -> None:
        """Supports in the numbers of the form, to be judged on the data."""
        self.incumbent.offer_all(self.form, supports)

    def price(self, state: np.ndarray) -> Price:
        """Of closing a node."""
        n_inside = int(np.count_nonzero(state == IN))
        n_free = int(np.count_nonzero(state == FREE))
        with_device = self.workers.device is not None
        known = n_free, n_inside, with_device
        if known not in self._prices:
            left = n_free, n_inside, max(self.k - n_inside, 0)
            self._prices[known] = Price(
                enumeration.closing_cost(*left, device=with_device),
                with_device and enumeration.is_for_device(*left),
            )
        return self._prices[known]

    def open_again(self, nodes: list[Node]) -> None:
        """Nodes of a device that is lost, and all others at the price of closing without it."""
        queued = [*self.waiting.take_all(), *self.frontier.take_all()]
        for node in [*nodes, *queued]:
            cost = node.cost if np.isinf(node.cost) else self.price(node.state).cost
            self.frontier.push(node._replace(cost=cost))

    def nodes_in(self, state: State) -> list[Node]:
        """Nodes of a checkpoint, in the numbers of the form."""
        return nodes_in(state, self.form.p, self.inside, self.k, self.recorder.recorded)

    def close_decided(self, node: Node) -> None:
        """A node with a single support, which is judged on the data."""
        self.n_nodes += 1
        self.offer([np.flatnonzero(node.state == IN)])
        self.recorder.close_by_enumeration(node.number)

    def root_node(self) -> Node:
        state = np.zeros(self.form.p, dtype=np.int8)
        state[self.inside] = IN
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        cost = self.price(state).cost
        return Node(self.root_bound, self.root_number, state, *nothing, 0.0, cost)

    def forget_nodes(self) -> None:
        """All below the root: it is searched in another way."""
        self.frontier = Frontier(self.settings.search)
        self.in_work, self.waiting, self.asked = [], Frontier("best-first"), []

    def shrinks(self, state: np.ndarray) -> bool:
        """Are a good part of the features excluded for good?

        A smaller matrix has a larger smallest eigenvalue, hence a better split.
        """
        few = np.count_nonzero(state != OUT) <= tuning().shrink_below * self.form.p
        possible = np.count_nonzero(state == IN) <= self.k
        return bool(few and possible and self.settings.advanced.rebuild)

    def shrink(self, state: np.ndarray) -> None:
        """Go on with the features that are left."""
        self.drop(self.cutoff)
        keep = np.flatnonzero(state != OUT)
        self.inside = np.flatnonzero(state[keep] == IN)
        self.form = self.form.restricted(keep)
