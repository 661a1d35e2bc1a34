"""The search: pop, branch, bound, fix, prune, close, improve, report."""

from time import perf_counter
from typing import NamedTuple

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.settings import Settings
from bestk.base.threads import Workers
from bestk.bounds.clusters import BlockSplit, block_bound
from bestk.bounds.node_batch import Batch, rounded
from bestk.bounds.split import first_split
from bestk.form.presolve import Presolved
from bestk.form.standard_form import StandardForm
from bestk.results.progress import Progress
from bestk.results.result import PERFECT_FIT, Snapshot, Status
from bestk.search import branching
from bestk.search.bounder import PER_CUBE, PER_MULTIPLY, PER_NODE, Bounder
from bestk.search.checkpoint import Checkpoint, Writer, restore
from bestk.search.frontier import Frontier, Node
from bestk.search.improvement import Improver
from bestk.search.recorder import Recorder
from bestk.supports import enumeration
from bestk.supports.incumbent import Incumbent

# A node is closed by enumeration if that costs no more than this many bounds, or next to nothing.
_CLOSE_BELOW = 5
_CLOSE_ALWAYS = 5e-4
# How much a second spent on matrices allows for closing everything, beside one spent on nodes.
_PREPARING_COUNTS = 0.2
# Model seconds of a batch, at most.
_BATCH_SECONDS = 1.0
# Above this share of the incumbent's value, proven at the root, a diagonal usually does.
_HOPE = 0.75
# Block bounds cost ten to twenty times as much as others, and take over the tree if they leave less
# than this share of the root's gap.
_BLOCKS_BELOW = 0.42


class Origin(NamedTuple):
    """Where a bounded node comes from: its parent, the decision, its state before fixing."""

    parent: Node
    feature: int
    inside: bool
    before: np.ndarray


class Tree:
    """Branch and bound over supports of one standard form.

    Values are in units of y'y. ``dropped`` is the smallest bound among everything that was given up
    without proof that it is worse than the incumbent; the global bound never exceeds it.
    """

    def __init__(
        self,
        presolved: Presolved,
        k: int,
        incumbent: Incumbent,
        settings: Settings,
        workers: Workers,
        progress: Progress,
        started: float,
        saved: Checkpoint | None = None,
        writer: Writer | None = None,
    ) -> None:
        assert presolved.form is not None
        self.presolved = presolved
        self.form: StandardForm = presolved.form
        self.inside, self.k = presolved.inside, k
        self.incumbent, self.settings, self.workers = incumbent, settings, workers
        self.progress, self.started = progress, started
        self.frontier = Frontier(settings.search)
        self.pending: list[Node] = []
        self.dropped = np.inf
        self.proven = 0.0
        self.recorder = Recorder(settings.record_limit)
        self.bounder = Bounder(settings, workers, self.recorder)
        self.history: list[tuple[float, int, float, float]] = []
        self.n_nodes = 0
        # The root as far as it is decided, its number in the record, and what is proven about it.
        self.root_state = np.zeros(0, dtype=np.int8)
        self.root_number = 0
        self.root_bound = 0.0
        self.blocked: StandardForm | None = None
        self.status: Status | None = None
        self.writer = writer
        limit = settings.time_limit
        self.deadline = np.inf if limit is None else started + limit
        self.improver = Improver(incumbent, deadline=self.deadline)
        self.is_open = False  # is the root bounded, and everything else below it?
        if saved is not None:
            restore(self, saved)

    # What is known so far -----------------------------------------------------------------

    @property
    def cutoff(self) -> float:
        """Nodes whose bound reaches this cannot hold a model better by more than gap_tol."""
        value = self.incumbent.value
        # One ulp up: the gap that is computed from it later must not round above gap_tol.
        return np.nextafter(value - self.settings.gap_tol * max(value, PERFECT_FIT), value)

    def _settle(self) -> None:
        """Raise the proven bound: the minimum over open nodes, nodes in work, and nodes given up.

        Called only between steps, when every part of the search space is in one of these.
        """
        waiting = min((node.bound for node in self.pending), default=np.inf)
        given_up = min(self.dropped, self.bounder.outside)
        open_bound = min(self.frontier.smallest_bound, waiting, given_up)
        self.proven = max(self.proven, min(open_bound, self.incumbent.value))

    @property
    def lower_bound(self) -> float:
        """The proven bound in the problem's units; the objective itself where nothing is open."""
        if self.proven >= self.incumbent.value:
            return self.incumbent.objective
        return float(self.proven * self.incumbent.problem.yy)

    # The loop -----------------------------------------------------------------------------

    def run(self) -> Status:
        try:
            if not self.is_open:
                self._find_first_model()
                self._open_root()
            while self.frontier and self.frontier.smallest_bound < self.cutoff:
                if self._should_stop():
                    break
                if self.writer:
                    self.writer.write_if_due(self)
                self.pending = self.frontier.pop(self._batch_size())
                nodes = [node for node in self.pending if not self._prune(node)]
                if nodes:
                    batch, origins = self._bounded_children(nodes)
                    self._admit(batch, origins)
                    self.bounder.tighten(batch, self.k, self.cutoff, self._is_late)
                    if self._tighten_root():
                        self._open_root()
                        continue
                self.pending = []
                self._report()
            self._settle()
        except enumeration.LimitReached:
            self._settle()
        except KeyboardInterrupt:
            # Nodes may be in the air: the bound proven at the last step is the one that holds.
            self.status = Status.INTERRUPTED
        if self.writer and self.status is not Status.INTERRUPTED:
            self.writer.write(self)
        return self.status or Status.OPTIMAL

    def _find_first_model(self) -> None:
        self.pending = [self._root_node()]
        self.improver.search(self.form, self.inside, self.k, self.settings.advanced.beam_width)
        self._report()

    def _open_root(self) -> None:
        """Bound the root; drop excluded features and start again while that shrinks the problem."""
        self.is_open = False
        while True:
            root = self._root_node()
            self.pending = [root]
            if self._should_stop() or self._prune(root):
                return
            if self._worth_closing(root) and self._close([root]):
                return
            self.frontier = Frontier(self.settings.search)  # a root that resisted is bounded now
            shared = self.form is self.presolved.form
            self.bounder.start(
                self.form,
                self.presolved.uniform if shared else first_split(self.form),
            )
            self.root_state = root.state
            if self.blocked and self._tighten_root():
                continue
            origin = Origin(root, -1, False, root.state.copy())
            start = np.zeros((1, self.form.p))
            batch = self._bound(root.state[None].copy(), start, np.zeros(1), [origin])
            self.root_state, self.root_number = batch.states[0].copy(), batch.numbers[0]
            self.root_bound = max(self.root_bound, float(batch.bounds[0]))
            if self.root_bound >= self.cutoff:
                break
            if self._shrinks(self.root_state):
                self._shrink(self.root_state)
            elif not (self.presolved.blocks_helped and self._tighten_root()):
                break
        self.is_open = True
        self._admit(batch, [origin])
        self._report()

    def _shrinks(self, state: np.ndarray) -> bool:
        """Are a good part of the features excluded for good?

        A smaller matrix has a larger smallest eigenvalue, hence a better split.
        """
        few = np.count_nonzero(state != OUT) <= 0.75 * self.form.p
        possible = np.count_nonzero(state == IN) <= self.k
        return bool(few and possible and self.settings.advanced.rebuild)

    def _shrink(self, state: np.ndarray) -> None:
        self.dropped = min(self.dropped, self.cutoff)
        keep = np.flatnonzero(state != OUT)
        self.inside = np.flatnonzero(state[keep] == IN)
        self.form = self.form.restricted(keep)

    def _tighten_root(self) -> bool:
        """Once the tree has cost as much as a block bound, exclude features by one for good.

        True if that closes the root or leaves out a good part of the features: what has been
        searched so far is given up for a start on the others.
        """
        p, shared = self.form.p, self.form is self.presolved.form
        cost = 10 * PER_CUBE * p**3 + 200 * PER_MULTIPLY * p**2 + 200 * PER_NODE
        # The weaker the root bound, the sooner: a tree would not get far.
        wait = cost * (self._hope / _HOPE) ** 12
        helps = self.blocked is not None or (shared and self.presolved.blocks_helped)
        if self.blocked is self.form or (self.bounder.bounding < wait and not helps):
            return False
        self.blocked = self.form
        if not (self.bounder.may_optimise and self.settings.advanced.rebuild):
            return False
        self.bounder.preparing += cost
        smallest = self.bounder.uniform.smallest
        blocks = self.presolved.blocks if shared else block_bound(self.form, smallest)
        if blocks is None:
            return False
        state, before = self.root_state, self.root_bound
        value = self.incumbent.value
        g = rounded(blocks.maximise(state, self.k, value, self.cutoff, self._should_stop))
        value, with_feature = blocks.certify(g, state, self.k)
        self.root_bound = max(before, value)
        # The form may already lack features that were given up within tolerance.
        self.proven = max(self.proven, min(value, self.dropped, self.incumbent.value))
        out = (with_feature >= self.cutoff) & (state == FREE)
        shrunk = np.where(out, OUT, state)
        shrinks = value < self.cutoff and self._shrinks(shrunk)
        if shrinks or value >= self.cutoff:
            self.frontier = Frontier(self.settings.search)
            self.recorder.forget_below(self.root_number)
            blocks.helped = True
        split, number = self._record_blocks(blocks.split, g, out & shrinks)
        if shrinks or value >= self.cutoff:
            self.root_number = number
            if shrinks:
                self._shrink(shrunk)
            return True
        if self.cutoff - value < _BLOCKS_BELOW * (self.cutoff - before):
            self.bounder.use_blocks(blocks, split)
        return False

    def _root_node(self) -> Node:
        state = np.zeros(self.form.p, dtype=np.int8)
        state[self.inside] = IN
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        return self._node(self.root_bound, self.root_number, state, *nothing, 0.0)

    def _bounded_children(self, nodes: list[Node]) -> tuple[Batch, list[Origin]]:
        """Branch every node on one feature and bound the children, IN and OUT, as one batch."""
        rows = 2 * len(nodes)
        states = np.repeat(np.array([node.state for node in nodes]), 2, axis=0)
        duals = np.zeros((rows, self.form.p))
        levels = np.repeat([node.level for node in nodes], 2)
        origins = []
        for i, node in enumerate(nodes):
            duals[2 * i : 2 * i + 2, node.nonzeros] = node.values
            feature = self._branching_feature(node, duals[2 * i])
            states[2 * i, feature], states[2 * i + 1, feature] = IN, OUT
            for row, inside in ((2 * i, True), (2 * i + 1, False)):
                origins.append(Origin(node, feature, inside, states[row].copy()))
        return self._bound(states, duals, levels, origins), origins

    def _branching_feature(self, node: Node, dual: np.ndarray) -> int:
        if self.settings.advanced.branching == "heuristic":
            width = self.settings.advanced.beam_width
            feature, support = branching.by_heuristic(self.form, node.state, self.k, width)
            self.incumbent.offer(self.form.features[support])
            return feature
        return branching.by_relaxation(self.form, node.state, dual)

    def _bound(
        self, states: np.ndarray, duals: np.ndarray, levels: np.ndarray, origins: list[Origin]
    ) -> Batch:
        value = self.incumbent.value
        batch = self.bounder.bound(states, duals, levels, self.k, value, self.cutoff)
        batch.numbers = [self._record(origin, batch, i) for i, origin in enumerate(origins)]
        self.n_nodes += len(states)
        return batch

    def _admit(self, batch: Batch, origins: list[Origin]) -> None:
        """Prune, close or queue freshly bounded nodes; round their duals to better models."""
        cutoff = self.cutoff
        open_nodes: list[Node] = []
        closable: list[Node] = []
        for i, origin in enumerate(origins):
            state, dual = batch.states[i], batch.duals[i]
            bound = max(float(batch.bounds[i]), origin.parent.bound)
            if bound >= cutoff:
                self.dropped = min(self.dropped, bound)
                continue
            if (state != origin.before).any():
                self.dropped = min(self.dropped, cutoff)
            index = np.flatnonzero(dual)
            node = self._node(
                bound, batch.numbers[i], state.copy(), index.astype(np.int32), dual[index],
                batch.levels[i],
            )  # fmt: skip
            if np.count_nonzero(state == IN) <= self.k:
                (closable if self._worth_closing(node) else open_nodes).append(node)
        for node in open_nodes:
            self.frontier.push(node)
        self.pending = closable
        if self.settings.advanced.branching == "relaxation":
            self.improver.round(self.form, self.inside, self.k, open_nodes)
        self._close(closable)
        if self.settings.advanced.enumeration and self.frontier.cost <= self._patience():
            self.pending = self.frontier.pop(len(self.frontier))
            self._close(self.pending)

    # Closing nodes by enumeration ------------------------------------------------------------

    def _node(self, bound, number, state, index, value, level) -> Node:
        n_inside = int(np.count_nonzero(state == IN))
        n_free = int(np.count_nonzero(state == FREE))
        cost = enumeration.closing_cost(n_free, n_inside, max(self.k - n_inside, 0))
        return Node(bound, number, state, index, value, level, cost)

    @property
    def _hope(self) -> float:
        """Share of the incumbent's value that is proven at the root: what a tree can hope for."""
        return max(self.root_bound, 0.0) / max(self.incumbent.value, PERFECT_FIT)

    def _patience(self) -> float:
        """Model seconds that closing everything may cost: a multiple of the work done so far.

        The weaker the root bound, the less a tree can hope for beside plain enumeration. Work on
        matrices counts less: it tells nothing about the tree.
        """
        done = self.bounder.bounding + _PREPARING_COUNTS * self.bounder.preparing
        return done / max(self._hope, 0.02)

    def _worth_closing(self, node: Node) -> bool:
        """Is trying all supports of the node likely cheaper than the subtree below it?"""
        r = self.k - np.count_nonzero(node.state == IN)
        if r == 0 or np.count_nonzero(node.state == FREE) <= r:
            return True
        if not self.settings.advanced.enumeration:
            return False
        return node.cost <= max(_CLOSE_BELOW * self.bounder.cost_of_one, _CLOSE_ALWAYS)

    def _close(self, nodes: list[Node]) -> bool:
        """Enumerate nodes; those with too many near-optimal supports go to the queue instead."""
        if not nodes:
            return True
        value = self.incumbent.value
        serial = Workers(1)
        cheap = all(node.cost < 0.05 for node in nodes)

        def hits(node: Node):
            inside = np.flatnonzero(node.state == IN)
            free = np.flatnonzero(node.state == FREE)
            workers = serial if cheap else self.workers
            r = self.k - len(inside)
            return enumeration.hits(self.form, inside, free, r, value, workers, self._should_stop)

        found = self.workers.map(hits, nodes) if cheap else map(hits, nodes)
        queued = []
        for node, supports in zip(nodes, found, strict=True):
            self.n_nodes += 1
            if supports is None:
                queued.append(node)
                continue
            for support in supports:
                self.incumbent.offer(self.form.features[support])
            self.recorder.close_by_enumeration(node.number)
        for node in queued:
            self.frontier.push(node._replace(cost=np.inf))
        self.pending = []
        if queued and self.incumbent.value <= PERFECT_FIT:
            self.status = Status.PERFECT_FIT  # too many models tie at the level of rounding
        return not queued

    def _prune(self, node: Node) -> bool:
        if node.bound < self.cutoff:
            return False
        self.dropped = min(self.dropped, node.bound)
        return True

    # Bookkeeping -----------------------------------------------------------------------------

    def _batch_size(self) -> int:
        if self.settings.advanced.batch_size is not None:
            return self.settings.advanced.batch_size
        size = int(np.clip(32000 // self.form.p, 8, 128))
        # Limits are looked at between batches: where nodes are costly, these are small.
        return max(1, min(size, int(_BATCH_SECONDS / max(self.bounder.cost_of_one, 1e-9))))

    def _record(self, origin: Origin, batch: Batch, row: int) -> int:
        if not self.recorder.enabled:
            return -1
        features, state = self.form.features, batch.states[row]
        fixed = origin.before == FREE
        index = np.flatnonzero(batch.duals[row])
        return self.recorder.add(
            parent=origin.parent.number,
            feature=int(features[origin.feature]) if origin.feature >= 0 else -1,
            inside=origin.inside,
            split=self.bounder.split_number,
            dual=(features[index], batch.duals[row, index]),
            fixed_in=features[(state == IN) & fixed],
            fixed_out=features[(state == OUT) & fixed],
        )

    def _record_blocks(self, blocks: BlockSplit, g: np.ndarray, out) -> tuple[int, int]:
        """Record a block bound of the root; the numbers of its split and node."""
        features = self.form.features
        split = self.recorder.add_split(features, blocks.charges, blocks.clusters, blocks.matrices)
        node = self.recorder.add(
            parent=self.root_number, split=split, dual=(features, g), fixed_out=features[out]
        )
        return split, node

    def _snapshot(self) -> Snapshot:
        yy = self.incumbent.problem.yy
        return Snapshot(
            seconds=perf_counter() - self.started,
            n_nodes=self.n_nodes,
            n_open=len(self.frontier) + len(self.pending),
            objective=self.incumbent.objective,
            lower_bound=self.lower_bound,
            yy=yy,
        )

    def _report(self) -> None:
        self._settle()
        snapshot = self._snapshot()
        point = (snapshot.seconds, snapshot.n_nodes, snapshot.objective, snapshot.lower_bound)
        if not self.history or self.history[-1][2:] != point[2:]:
            self.history.append(point)
        self.progress.update(snapshot)
        callback = self.settings.callback
        if callback is not None and callback(snapshot):
            self.status = Status.STOPPED

    def _should_stop(self) -> bool:
        """Has a limit been reached? Limits end a run between steps, they never change its path."""
        settings = self.settings
        if self.status is not None:
            return True
        if self._is_late():
            self.status = Status.TIME_LIMIT
        elif settings.node_limit is not None and self.n_nodes >= settings.node_limit:
            self.status = Status.NODE_LIMIT
        elif settings.memory_limit is not None and self._nbytes() > settings.memory_limit:
            self.status = Status.MEMORY_LIMIT
        return self.status is not None

    def _is_late(self) -> bool:
        return perf_counter() >= self.deadline

    def _nbytes(self) -> int:
        # The record is copied once, when it becomes a certificate.
        return self.frontier.nbytes + 2 * self.recorder.nbytes + self.improver.nbytes
