"""Open nodes become units of work, on terms that only counted work decides."""

import numpy as np

from bestk.base.constants import FREE, OUT
from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.base.tuning import tuning
from bestk.bounds.interior import own_charges_multiplies
from bestk.bounds.kernels.relaxation import Effort
from bestk.search.bounder import Bounder
from bestk.search.space import Space
from bestk.subtrees.frontier import Node
from bestk.subtrees.unit import Budget, Climb, Outcome, Subproblem, Unit
from bestk.supports.prices import prices_of


class Forming:
    """Forms units, and counts the work of those that are done.

    Nothing else decides: neither the engine, nor how many workers it has, nor the clock.
    """

    def __init__(self, settings: Settings, bounder: Bounder, space: Space) -> None:
        self.settings, self.bounder, self.space, self.k = settings, bounder, space, space.k
        self._shared: tuple[tuple, Subproblem] | None = None

    @property
    def may_run(self) -> bool:
        """Whether subtrees of the form can be explored on their own, and are worth it.

        Small trees, wide data, and the paper's methods and branching go on in batches. Beside a
        device units begin at once: it is for large trees.
        """
        settings, bounder = self.settings, self.bounder
        if self.space.n_nodes < tuning().units_from and bounder.workers.device is None:
            return False
        wanted = settings.bound == "descent" and settings.advanced.branching == "relaxation"
        if not (wanted and bounder.is_started):
            return False
        form = bounder.form
        return bool(
            form.matrix.has_factors and bounder.split.is_useful(form) and bounder.split.is_positive
        )

    @property
    def in_flight(self) -> int:
        """Units that are explored at a time: more in a large tree, where there may be many workers.

        A unit knows what those have found that were begun so many units before it, whoever was
        faster.
        """
        now, wanted = tuning(), self.settings.advanced.batch_size
        return wanted or max(now.units_in_flight, int(now.flight_share * self.bounder.n_units))

    def subproblem(self) -> Subproblem:
        bounder, now = self.bounder, tuning()
        form, used = bounder.form, (bounder.form, bounder.clusters)
        if self._shared is None or self._shared[0] != used:
            advanced = self.settings.advanced
            subproblem = Subproblem(
                A=form.A,
                c=form.c,
                lo=form.lo,
                hi=form.hi,
                eps=form.eps,
                k=self.k,
                least=self.bounder.first.smallest,
                effort=Effort(now.closeness, now.sweeps, now.sweeps_at_once),
                prices=prices_of(now),
                fixing=advanced.fixing,
                clusters=None if bounder.clusters is None else bounder.clusters.clusters,
                climb=Climb(
                    now.cluster_temperatures[-1],
                    now.cluster_node_closeness,
                    now.cluster_steps,
                    now.cluster_memory,
                ),
                single_from=now.single_from,
                inside_share=now.inside_share,
                own_from=now.own_from,
                whole_from=now.whole_from,
                covers=self.space.covers,
            )
            self._shared = used, subproblem
        return self._shared[1]

    def unit(self, node: Node, value: float, cutoff: float, n_nodes: int, ascending: float) -> Unit:
        """The subtree of a node, with the best model of now.

        There are `n_nodes` in the tree. `ascending` are model seconds of ascents for units that are
        not done yet.
        """
        dual = np.zeros(self.bounder.form.p)
        dual[node.nonzeros] = node.values
        return Unit(
            state=node.state,
            t=self.bounder.split.t if node.split is None else node.split.t,
            dual=dual,
            level=node.level,
            bound=node.bound,
            cutoff=cutoff,
            value=value,
            budget=Budget(self._most_nodes(n_nodes), self._most_multiplies(node)),
            close_below=self._close_below(),
            leave_below=self.leave_below,
            own=self._may_own(node, ascending),
            weakest_first=self.share_charges and node.bound < self._far(cutoff),
        )

    def again(self, node: Node, terms: np.ndarray) -> Unit:
        """A unit on the terms of :func:`terms_of`, which were those of a run that is resumed."""
        value, cutoff, nodes, multiplies, close_below, leave_below, *flags = terms.tolist()
        own, weakest_first = map(bool, flags)
        unit = self.unit(node, value, cutoff, 0, 0.0)
        return unit._replace(
            budget=Budget(int(nodes), multiplies),
            close_below=close_below,
            leave_below=leave_below,
            own=own,
            weakest_first=weakest_first,
        )

    def terms_in(self, state: State, count: int) -> np.ndarray:
        """Terms of units in a checkpoint."""
        terms = state.reals("terms", count, 8, finite=False)
        nodes, flags = terms[:, 2], terms[:, 6:]
        most = max(tuning().first_unit_nodes, tuning().unit_nodes)
        is_right = ((nodes >= 1) & (nodes <= most)).all() and np.isin(flags, (0.0, 1.0)).all()
        state.require(is_right, "terms", f"must have units of 1 to {most} nodes, and flags")
        return terms

    def _far(self, cutoff: float) -> float:
        """Nodes with smaller bounds are far from closed."""
        return tuning().weakest_first_below * cutoff

    def _most_nodes(self, n_nodes: int) -> int:
        """Nodes of a unit: few in small trees, so that there are soon many units."""
        return max(tuning().first_unit_nodes, min(n_nodes // 8, tuning().unit_nodes))

    @property
    def _size(self) -> float:
        """How many times as much work is in a unit: more beside a device, where threads are many
        and one of them deals with all units.
        """
        alone = self.bounder.workers.device is None or self._share_matrix
        return 1.0 if alone else tuning().device_units

    def _most_multiplies(self, node: Node) -> float:
        """Multiplications of a unit: some milliseconds, and several times what it begins with."""
        now = tuning()
        beginning = self._beginning(int(np.count_nonzero(node.state != OUT)))
        begins = now.unit_beginnings * beginning / now.per_unit_multiply
        return self._size * max(now.unit_multiplies, begins)

    def _beginning(self, n_features: int) -> float:
        """Model seconds to prepare a matrix for a unit; those that share one need none."""
        return 0.0 if self._share_matrix else tuning().per_unit_entry * n_features**2

    @property
    def _share_matrix(self) -> bool:
        form = self.bounder.form
        return form.is_boxed and form.p >= tuning().whole_from

    def nbytes(self, n_open: int, n_nodes: int, n_workers: int) -> int:
        """What units in flight take until they are merged: rows of numbers, mostly zero later."""
        if not self.may_run:
            return 0
        p, most = self.bounder.form.p, self._most_nodes(n_nodes)
        units = min(n_open, self.in_flight)
        return most * p * (9 * min(n_workers, units) + 3 * units)

    def _close_below(self) -> float:
        """Model seconds up to which an enumeration is likely cheaper than the subtree."""
        if not self.settings.advanced.enumeration:
            return 0.0
        return max(tuning().unit_close, tuning().unit_close_bounds * self.bounder.cost_of_one)

    @property
    def leave_below(self) -> float:
        """Model seconds of a device, if there is one, that are likely cheaper than the subtree."""
        if self.bounder.workers.device is None or not self.settings.advanced.enumeration:
            return 0.0
        return max(tuning().device_close, tuning().device_bounds * self.bounder.cost_of_one)

    @property
    def share_charges(self) -> bool:
        """Whether some subtrees are too large for charges of their own, or in a box, where these
        would do little: they share those of the tree.
        """
        form = self.bounder.form
        return form.is_boxed or form.p > tuning().own_features

    def _may_own(self, node: Node, ascending: float) -> bool:
        """Ascents may cost as much as exploring has so far; a cheap one may come first."""
        now, bounder = tuning(), self.bounder
        n_free = int(np.count_nonzero(node.state == FREE))
        if not bounder.may_optimise or bounder.form.is_boxed or n_free > now.own_features:
            return False
        allowed = now.own_share * bounder.searching + now.own_always
        return bounder.ascending + ascending + _own_cost(n_free) <= allowed

    def charge(self, outcome: Outcome) -> None:
        """Count the work of a unit."""
        now, bounder = tuning(), self.bounder
        bounder.n_bounded += len(outcome.parent)
        bounder.n_units += 1
        entries = self._beginning(len(outcome.split_features))
        multiplies = now.per_unit_multiply * outcome.multiplies
        bounder.bounding += entries + multiplies + now.per_unit_node * len(outcome.parent)
        bounder.scanning += outcome.scanning
        bounder.ascending += now.per_own_multiply * outcome.preparing


def ascent_cost(unit: Unit) -> float:
    """Model seconds that the unit will spend on charges of its own."""
    return _own_cost(int(np.count_nonzero(unit.state == FREE))) if unit.own else 0.0


def _own_cost(n_free: int) -> float:
    return tuning().per_own_multiply * own_charges_multiplies(n_free)


def terms_of(unit: Unit) -> tuple[float, ...]:
    """What a checkpoint keeps of a unit, besides its node."""
    nodes, multiplies = unit.budget
    flags = unit.own, unit.weakest_first
    closing = unit.close_below, unit.leave_below
    return unit.value, unit.cutoff, nodes, multiplies, *closing, *flags
