"""Branch and bound over choices of groups: one tree for groups, rules and constraints alike.

Nodes are worked on in batches whose size is fixed, with one cutoff for a batch, and merged in their
order: tree, answer and certificate do not depend on the number of threads.
"""

from typing import Any

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.choices.charges import (
    UsedSplit,
    charges_below,
    first_charges,
    multiplies_below,
)
from bestk.choices.form import ChoiceForm
from bestk.choices.incumbent import ChoiceIncumbent
from bestk.choices.kernels import first_models
from bestk.choices.kernels.nodes import CLOSED, EMPTY, OPEN, PRUNED, Batch, Terms, work_on
from bestk.choices.node import Node, nodes_in, state_of
from bestk.choices.penalty import penalty_of, pulled
from bestk.choices.record import ChoiceRecord
from bestk.results.gaps import PERFECT_FIT
from bestk.results.progress import Progress
from bestk.results.result import Snapshot
from bestk.results.status import Status
from bestk.runs.checkpoint import STRUCTURE, Writer
from bestk.runs.watch import Watch
from bestk.subtrees.frontier import Frontier
from bestk.supports.margins import margins
from bestk.supports.prices import prices_of

# Constrained fits that miss the conditions of the optimum by more than this prove nothing.
_UNSURE = 1e-7
# Models that are worse than the best by more than this factor are not worth swaps.
_PROMISING = 1.02
# Relaxations are rounded to models at every batch to begin with, later at every few.
_OFTEN, _SELDOM = 32, 8


class ChoiceTree:
    """The search below `root`, a state of the groups that propagation has closed."""

    def __init__(
        self,
        form: ChoiceForm,
        k: int,
        root: np.ndarray,
        incumbent: ChoiceIncumbent,
        settings: Settings,
        workers: Workers,
        progress: Progress,
        started: float,
        writer: Writer | None = None,
    ) -> None:
        self.form, self.space, self.k, self.root = form, form.space, k, root
        self.incumbent, self.settings, self.workers = incumbent, settings, workers
        self.writer = writer
        self.watch = Watch(settings, progress, started)
        self.record = ChoiceRecord(form, settings.record_limit)
        self.frontier: Frontier[Node] = Frontier(settings.search)
        self.in_work: list[Node] = []
        self.penalty = penalty_of(form.space)
        self.most = form.most_coordinates(k, np.flatnonzero(root == IN))
        self.dropped, self.proven = np.inf, 0.0
        self.n_nodes = self.n_batches = 0
        self.bounding = self.preparing = 0.0  # counted work
        self.seen: set[bytes] = set()

    # What is proven -------------------------------------------------------------------------

    @property
    def cutoff(self) -> float:
        """Nodes whose bound reaches this cannot hold a model better by more than gap_tol."""
        value = self.incumbent.value
        if not np.isfinite(value):
            return np.inf
        return np.nextafter(value - self.settings.gap_tol * max(value, PERFECT_FIT), value)

    @property
    def smallest_bound(self) -> float:
        return min([self.frontier.smallest_bound, *[node.bound for node in self.in_work]])

    @property
    def lower_bound(self) -> float:
        """The proven bound in the problem's units; the objective itself where nothing is open."""
        if self.proven >= self.incumbent.value:
            return self.incumbent.objective
        return float(self.proven * self.form.problem.yy)

    def settle(self) -> None:
        """Raise the proven bound: what is open, in work, or was given up within tolerance."""
        open_bound = min(self.smallest_bound, self.dropped)
        self.proven = max(self.proven, min(open_bound, self.incumbent.value))

    def _drop(self, bound: float) -> None:
        self.dropped = min(self.dropped, bound)

    # The loop -------------------------------------------------------------------------------

    def run(self) -> Status:
        try:
            if self.n_nodes == 0:
                self.in_work = [self._root_node()]
                self._find_first_model()
                self._open_root()
            while self.smallest_bound < self.cutoff and not self._should_stop():
                if self.writer and self.writer.is_due:
                    self.writer.write(self.state())
                self._step()
                self._report()
            self.settle()
        except KeyboardInterrupt:
            # Nodes may be in the air: the bound proven at the last step is the one that holds.
            self.watch.status = Status.INTERRUPTED
        if self.writer and self.watch.status is not Status.INTERRUPTED:
            self.writer.write(self.state())
        return self.watch.status or Status.OPTIMAL

    def _step(self) -> None:
        """Branch the weakest open nodes; bound, close or queue their children."""
        asked = self.settings.advanced.batch_size
        self.in_work = self.frontier.pop(asked or tuning().choice_batch)
        nodes = [node for node in self.in_work if not self._is_pruned(node)]
        if nodes:
            nodes[0] = self._with_own_charges(nodes[0])
            groups = [self._branching_group(node) for node in nodes]
            batch = self._room(2 * len(nodes))
            origins = []
            for i, (node, group) in enumerate(zip(nodes, groups, strict=True)):
                for row, decision in ((2 * i, IN), (2 * i + 1, OUT)):
                    self._begin(batch, row, node)
                    batch.states[row, group] = decision
                    origins.append((node, group, decision == IN))
            self._merge(batch, origins)
            if self.n_batches <= _OFTEN or self.n_batches % _SELDOM == 0:
                self._round(nodes[0])
        self.in_work = []

    def _is_pruned(self, node: Node) -> bool:
        if node.bound < self.cutoff:
            return False
        self._drop(node.bound)
        return True

    def _branching_group(self, node: Node) -> int:
        """The free group with the largest relaxed coefficients, or most correlated with y."""
        x = np.zeros(self.form.p)
        x[node.nonzeros] = node.values
        free = node.state == FREE
        for sizes in (x, self.space.c):
            weights = np.where(free, _by_group(self.space.starts, sizes), -1.0)
            best = int(weights.argmax())
            if weights[best] > 0.0:
                return best
        return int(np.flatnonzero(free)[0])

    def _merge(self, batch: Batch, origins: list[tuple[Node, int, bool]]) -> None:
        """Work on a batch of nodes and keep what is left of it; `origins` say where from."""
        cutoff, terms = self.cutoff, self._terms()

        def piece(part: slice) -> None:
            work_on(self.space, self.penalty, terms, batch, part.start, part.stop)

        self.workers.map(piece, self.workers.slices(len(origins), each=4))
        self.n_nodes += len(origins)
        self.n_batches += 1
        self.bounding += float(batch.multiplies.sum()) + 2e4 * len(origins)
        hits = []
        first = self.record.add(batch, origins)
        for i, (parent, _, _) in enumerate(origins):
            number, fate = first + i if first >= 0 else -1, batch.fates[i]
            if fate == PRUNED:
                self._drop(float(batch.bounds[i]))
            elif fate != EMPTY and (batch.fixed[i] != batch.before[i]).any():
                self._drop(cutoff)
            if fate == CLOSED:
                found = batch.hits[i, : batch.n_hits[i]].copy()
                hits += [(state, float(batch.bounds[i])) for state in found]
            if fate == OPEN:
                self.frontier.push(self._node(batch, i, number, parent.split))
        for state, bound in hits:
            self.incumbent.offer(np.flatnonzero(state == IN))
            if self.incumbent.last.kkt > _UNSURE:  # what it fitted may not be the best
                self._drop(bound)

    def _terms(self) -> Terms:
        shift, slack = margins(self.space.eps, self.most)
        advanced = self.settings.advanced
        cheap, dear = tuning().choice_cheap, tuning().choice_dear
        if not advanced.enumeration:
            cheap, dear = -1.0, -1.0
        return Terms(
            k=self.k, most=self.most, cutoff=self.cutoff, value=self.incumbent.value, shift=shift,
            slack=slack, fixing=advanced.fixing, is_plain=self.form.is_plain,
            single_from=tuning().single_from,
            cheap=cheap, dear=dear, scans=tuning().choice_scans, prices=prices_of(tuning()),
        )  # fmt: skip

    def _room(self, size: int) -> Batch:
        m, p, q = len(self.root), self.form.p, len(self.space.C)
        return Batch(
            states=np.empty((size, m), np.int8), before=np.empty((size, m), np.int8),
            fixed=np.empty((size, m), np.int8), t=np.zeros((size, p)), duals=np.zeros((size, p)),
            multipliers=np.zeros((size, q)), levels=np.zeros(size), bounds=np.zeros(size),
            fates=np.zeros(size, np.int8), broken=np.full(size, -1),
            proved=np.zeros(size, np.bool_),
            hits=np.empty((size, self.incumbent.most_hits, m), np.int8),
            n_hits=np.zeros(size, np.int64), multiplies=np.zeros(size),
        )  # fmt: skip

    def _begin(self, batch: Batch, row: int, node: Node) -> None:
        batch.states[row], batch.t[row] = node.state, node.split.t
        batch.duals[row, node.nonzeros] = node.values
        batch.multipliers[row] = node.multipliers
        batch.levels[row], batch.bounds[row] = node.level, node.bound

    def _node(self, batch: Batch, i: int, number: int, split: UsedSplit) -> Node:
        index = np.flatnonzero(batch.duals[i])
        return Node(
            float(batch.bounds[i]), number, batch.states[i].copy(), index.astype(np.int32),
            batch.duals[i, index], batch.multipliers[i].copy(), float(batch.levels[i]), split,
        )  # fmt: skip

    # The root and first models --------------------------------------------------------------

    def _root_node(self) -> Node:
        nothing = UsedSplit(-1, np.zeros(self.form.p), self.form.p)
        empty = np.zeros(0, np.int32), np.zeros(0), np.zeros(len(self.space.C))
        return Node(0.0, 0, self.root.copy(), *empty, 0.0, nothing)

    def _open_root(self) -> None:
        """Charges for all, a first bound, and better charges for what that leaves."""
        if self._should_stop():
            return
        node = self.in_work[0]
        live = np.flatnonzero(np.repeat(self.root, np.diff(self.space.starts)) != OUT)
        t = np.zeros(self.form.p)
        t[live] = first_charges(self.space.A[np.ix_(live, live)], self.space.eps)
        number = self.record.add_split(live, t[live])
        node = node._replace(split=UsedSplit(number, t, len(live)))
        batch = self._room(1)
        self._begin(batch, 0, node)
        self._merge(batch, [(node, -1, False)])
        self.in_work = []
        self._report()

    def _find_first_model(self) -> None:
        """Dives from the root, by gains on A and by those that the constraints draw to."""
        starts = [(self.penalty.A, pulled(self.space, self.penalty))]
        if len(self.space.C):
            starts.append((self.space.A, self.space.c))
        for A, c in starts:
            self._dive(A, c, self.root, np.zeros(0))
        self._report()

    def _round(self, node: Node) -> None:
        """Complete what is decided at a node by the groups that its relaxation likes best."""
        if not self.incumbent.improves:
            return
        x = np.zeros(self.form.p)
        x[node.nonzeros] = node.values
        c = pulled(self.space, self.penalty)
        self._dive(self.penalty.A, c, node.state, _by_group(self.space.starts, x))

    def _dive(self, A: np.ndarray, c: np.ndarray, state: np.ndarray, hints: np.ndarray) -> None:
        own = state.copy()
        if not first_models.dive(self.space, A, c, self.k, own, hints):
            return
        if own.tobytes() in self.seen:
            return
        self.seen.add(own.tobytes())
        value = self.incumbent.offer(np.flatnonzero(own == IN))
        if value > _PROMISING * self.incumbent.value:
            return
        first_models.improve(self.space, A, c, self.k, self.root, own)
        self.incumbent.offer(np.flatnonzero(own == IN))

    # Better charges -------------------------------------------------------------------------

    def _with_own_charges(self, node: Node) -> Node:
        """Charges of its own for the subtree below the weakest node, once the tree has cost that.

        The subtree must be worth it: fewer coordinates than its charges were made for.
        """
        space, live = self.space, np.repeat(node.state, np.diff(self.space.starts)) != OUT
        size, free = int(live.sum()), int(np.diff(space.starts)[node.state == FREE].sum())
        boxed = np.isfinite(space.lo[live]).any() or np.isfinite(space.hi[live]).any()
        r = self.k - int((space.rules.counted & (node.state == IN)).sum())
        wanted = self.settings.advanced.split == "optimised" and np.isfinite(self.cutoff)
        is_new = node.split.size == self.form.p or node.number == 0
        is_small = size <= 0.9 * node.split.size or is_new
        if not (wanted and is_small and 0 < free <= tuning().choice_largest) or boxed:
            return node
        cost = multiplies_below(space, node.state)
        if self.preparing + cost > max(self.bounding, cost):
            return node
        self.preparing += cost
        found = charges_below(
            space, node.state, r, node.multipliers, node.split, node.bound, self.cutoff
        )
        if found is None:
            # Not again for the same one: its charges are as good as any.
            return node._replace(split=node.split._replace(size=size))
        here, charges = found
        t = np.zeros(self.form.p)
        t[here] = charges
        return node._replace(split=UsedSplit(self.record.add_split(here, charges), t, size))

    # Reports and limits ---------------------------------------------------------------------

    def _report(self) -> None:
        self.settle()
        self.watch.report(
            Snapshot(
                seconds=self.watch.seconds,
                n_nodes=self.n_nodes,
                n_open=len(self.frontier) + len(self.in_work),
                objective=self.incumbent.objective,
                lower_bound=self.lower_bound,
                yy=self.form.problem.yy,
            )
        )

    def _should_stop(self) -> bool:
        return self.watch.should_stop(self.n_nodes, self._nbytes)

    def _nbytes(self) -> int:
        return self.frontier.nbytes + 2 * self.record.nbytes + 200 * len(self.seen)

    # In a checkpoint ------------------------------------------------------------------------

    _PLAIN = ("dropped", "proven", "n_nodes", "n_batches", "bounding", "preparing")

    def state(self) -> dict[str, State]:
        """All that steers the search: a resumed run takes the same path."""
        nodes = [*self.frontier.nodes(), *self.in_work] if self.n_nodes else []
        plain: dict[str, Any] = {name: getattr(self, name) for name in self._PLAIN}
        chosen, seen = self.incumbent.chosen, [np.frombuffer(s, np.int8) for s in sorted(self.seen)]
        plain["has_model"] = chosen is not None
        arrays = {
            "seen": np.array(seen, dtype=np.int8).reshape(-1, len(self.root)),
            "chosen": np.zeros(0, dtype=np.intp) if chosen is None else chosen,
        }
        return {
            "tree": State(plain, arrays),
            "nodes": state_of(nodes, len(self.root), self.form.p, len(self.space.C)),
            "record": self.record.state(),
            "watch": self.watch.state(),
            STRUCTURE: State({}, self.form.structure.to_arrays()),
        }

    def restore(self, parts: dict[str, State]) -> None:
        """Put a fresh tree into a saved state."""
        state, m, q = parts["tree"], len(self.root), len(self.space.C)
        self.proven, self.dropped = state.number("proven"), state.number("dropped", finite=False)
        self.n_nodes, self.n_batches = state.count("n_nodes"), state.count("n_batches")
        self.bounding, self.preparing = state.number("bounding", 0), state.number("preparing", 0)
        if state.flag("has_model"):
            chosen = state.distinct("chosen", m)
            state.require(self._admits(chosen), "chosen", "is no choice that the rules allow")
            self.incumbent.offer(chosen)
        seen = state.integers("seen", None, m, below=3).astype(np.int8)
        self.seen = {row.tobytes() for row in seen}
        self.watch.restore(parts["watch"])
        self.record.restore(parts["record"])
        known = self.record.recorder.recorded
        for node in nodes_in(parts["nodes"], self.root, self.form.p, q, known):
            counted = self.space.rules.counted & (node.state == IN)
            parts["nodes"].require(counted.sum() <= self.k, "states", "must have at most k groups")
            self.frontier.push(node)

    def _admits(self, chosen: np.ndarray) -> bool:
        """Whether the rules allow a choice of groups."""
        is_chosen = np.isin(np.arange(len(self.root)), chosen)
        is_decided = is_chosen[self.root == IN].all() and not is_chosen[self.root == OUT].any()
        is_small = (self.space.rules.counted & is_chosen).sum() <= self.k
        return bool(is_decided and is_small and not self.form.structure.broken(chosen))


def _by_group(starts: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The length of the part of x that belongs to each group."""
    squares = np.concatenate([[0.0], np.cumsum(x * x)])
    return np.sqrt(np.maximum(np.diff(squares[starts]), 0.0))
