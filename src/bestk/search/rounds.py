"""Rounds: open nodes become units of work, an engine explores them, outcomes come back in order."""

from collections.abc import Callable, Sequence

import numpy as np

from bestk.base.constants import FREE
from bestk.base.settings import Settings
from bestk.base.tuning import tuning
from bestk.bounds.interior import own_charges_multiplies
from bestk.bounds.kernels.relaxation import Effort
from bestk.search.bounder import Bounder
from bestk.subtrees.engines import Engine
from bestk.subtrees.frontier import Node, UsedSplit
from bestk.subtrees.unit import Budget, Climb, Outcome, Subproblem, Unit
from bestk.supports.prices import prices_of


class Rounds:
    """Forms units in a fixed order and on terms that only counted work decides.

    So the tree does not depend on the engine, on how many workers it has, or on the clock. A better
    model is shared from round to round.
    """

    def __init__(self, settings: Settings, engine: Engine, bounder: Bounder, k: int) -> None:
        self.settings, self.engine, self.bounder, self.k = settings, engine, bounder, k
        self._shared: tuple[tuple, Subproblem] | None = None

    @property
    def may_run(self) -> bool:
        """Whether subtrees of the form can be explored on their own.

        Wide data, and the paper's methods and branching go on in batches.
        """
        settings, bounder = self.settings, self.bounder
        wanted = settings.bound == "descent" and settings.advanced.branching == "relaxation"
        if not (wanted and bounder.is_started):
            return False
        form = bounder.form
        return bool(
            form.matrix.has_factors and bounder.split.is_useful(form) and bounder.split.is_positive
        )

    def size(self, n_open: int) -> int:
        """Units of one round: more where many nodes are open, and fewer rounds to wait for."""
        if self.settings.advanced.batch_size is not None:
            return self.settings.advanced.batch_size
        return max(tuning().round_units, min(n_open // 4, 8 * tuning().round_units))

    def explore(
        self,
        nodes: Sequence[Node],
        value: float,
        cutoff: float,
        n_nodes: int,
        most: int | None,
        stop: Callable[[], bool],
    ) -> list[Outcome | None]:
        """Outcomes in the order of the nodes; None for those that a limit left open.

        No unit has more than `most` nodes, if that is given.
        """
        usual = self._most_nodes(n_nodes)
        budget = Budget(min(usual, most or usual), tuning().unit_multiplies)
        units, ascending = [], self.bounder.ascending
        for node in nodes:
            n_free = int(np.count_nonzero(node.state == FREE))
            own = self._may_own(n_free, ascending)
            ascending += self._own_cost(n_free) if own else 0.0
            units.append(self._unit(node, value, cutoff, budget, own))
        return self.engine.run(self._subproblem(), units, stop)

    def _subproblem(self) -> Subproblem:
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
            )
            self._shared = used, subproblem
        return self._shared[1]

    def _unit(self, node: Node, value: float, cutoff: float, budget: Budget, own: bool) -> Unit:
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
            budget=budget,
            close_below=self._close_below(),
            own=own,
        )

    def _most_nodes(self, n_nodes: int) -> int:
        """Nodes of a unit: few in small trees, so that there are soon many units."""
        return int(np.clip(n_nodes // 8, tuning().first_unit_nodes, tuning().unit_nodes))

    def nbytes(self, n_open: int, n_nodes: int, n_workers: int) -> int:
        """What the next round takes until it is merged: rows of numbers, mostly zero later on."""
        if not self.may_run:
            return 0
        p, most = self.bounder.form.p, self._most_nodes(n_nodes)
        units = min(n_open, self.size(n_open))
        return most * p * (9 * min(n_workers, units) + 3 * units)

    def _close_below(self) -> float:
        """Model seconds up to which an enumeration is likely cheaper than the subtree."""
        if not self.settings.advanced.enumeration:
            return 0.0
        return max(tuning().unit_close, tuning().unit_close_bounds * self.bounder.cost_of_one)

    @property
    def share_charges(self) -> bool:
        """Whether some subtrees are too large for charges of their own, or in a box, where these
        would do little: they share those of the tree.
        """
        form = self.bounder.form
        return form.is_boxed or form.p > tuning().own_features

    def _may_own(self, n_free: int, ascending: float) -> bool:
        """Ascents may cost as much as exploring has so far; a cheap one may come first."""
        now, bounder = tuning(), self.bounder
        if not bounder.may_optimise or bounder.form.is_boxed or n_free > now.own_features:
            return False
        allowed = now.own_share * bounder.searching + now.own_always
        return ascending + self._own_cost(n_free) <= allowed

    def _own_cost(self, n_free: int) -> float:
        return tuning().per_own_multiply * own_charges_multiplies(n_free)

    def charge(self, outcome: Outcome) -> None:
        """Count the work of a unit."""
        now, bounder = tuning(), self.bounder
        bounder.n_bounded += len(outcome.parent)
        multiplies = now.per_unit_multiply * outcome.multiplies
        bounder.bounding += multiplies + now.per_unit_node * len(outcome.parent)
        bounder.scanning += outcome.scanning
        bounder.ascending += now.per_own_multiply * outcome.preparing

    def open_nodes(self, unit: Node, outcome: Outcome, first: int, split: UsedSplit | None):
        """Nodes that a unit has left open: (index, node without its closing cost)."""
        for row, i in enumerate(outcome.open_nodes.tolist()):
            if i < 0:
                yield i, unit
                continue
            part = outcome.duals.row(i)
            # Copies: a view would keep all that the unit has left in memory.
            yield i, Node(
                float(outcome.bounds[i]), first + i if first >= 0 else -1,
                outcome.states[row].copy(), outcome.duals.features[part].copy(),
                outcome.duals.values[part].copy(), float(outcome.levels[i]), 0.0, split,
            )  # fmt: skip
