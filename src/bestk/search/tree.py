"""The search: pop, branch, bound, fix, prune, close, improve, report."""

from typing import NamedTuple

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.cluster_bound import cluster_bound
from bestk.bounds.clusters import ClusterSplit
from bestk.bounds.node_batch import NodeBatch, rounded
from bestk.bounds.split import first_split
from bestk.form.presolve import Presolved
from bestk.form.standard_form import StandardForm
from bestk.results.gaps import PERFECT_FIT
from bestk.results.progress import Progress
from bestk.results.result import Snapshot
from bestk.results.status import Status
from bestk.search import branching
from bestk.search.bounder import Bounder
from bestk.search.checkpoint import Writer
from bestk.search.improvement import Improver
from bestk.search.lessons import Lessons
from bestk.search.rounds import Rounds
from bestk.search.watch import Watch
from bestk.subtrees.engines import engine_for
from bestk.subtrees.frontier import Frontier, Node, UsedSplit, nodes_in, state_of
from bestk.subtrees.recorder import Recorder
from bestk.subtrees.unit import RESISTING, Outcome
from bestk.supports import enumeration
from bestk.supports.incumbent import Incumbent


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
        lessons: Lessons,
        settings: Settings,
        workers: Workers,
        progress: Progress,
        started: float,
        writer: Writer | None = None,
    ) -> None:
        self.lessons = lessons
        self.form: StandardForm = lessons.form
        self.inside, self.k = presolved.inside, k
        self.incumbent, self.settings, self.workers = incumbent, settings, workers
        self.watch = Watch(settings, progress, started)
        self.frontier = Frontier(settings.search)
        self.pending: list[Node] = []
        self.dropped = np.inf
        self.proven = 0.0
        self.recorder = Recorder(settings.record_limit)
        self.bounder = Bounder(settings, workers, self.recorder)
        self.rounds = Rounds(settings, engine_for(workers), self.bounder, k)
        self.n_nodes = 0
        # The root as far as it is decided, its number in the record, and what is proven about it.
        self.root_state = np.zeros(0, dtype=np.int8)
        self.root_number = 0
        self.root_bound = 0.0
        self.clustered: StandardForm | None = None  # the form for which clusters were tried
        self.writer = writer
        self.improver = Improver(incumbent, deadline=self.watch.deadline)
        self.is_open = False  # is the root bounded, and everything else below it?

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
                if self.writer and self.writer.is_due:
                    self.writer.write(self.state())
                if not (self._round() if self.rounds.may_run else self._batch()):
                    break
                if self._tighten_root():
                    self._open_root()
                    continue
                self._report()
            self._settle()
        except enumeration.LimitReached:
            self._settle()
        except KeyboardInterrupt:
            # Nodes may be in the air: the bound proven at the last step is the one that holds.
            self.watch.status = Status.INTERRUPTED
        if self.writer and self.watch.status is not Status.INTERRUPTED:
            self.writer.write(self.state())
        return self.watch.status or Status.OPTIMAL

    def _batch(self) -> bool:
        """Branch the best open nodes, bound and admit their children."""
        self.pending = self.frontier.pop(self._batch_size())
        nodes = [node for node in self.pending if not self._prune(node)]
        if nodes:
            batch, origins = self._bounded_children(nodes)
            self._admit(batch, origins)
            alive = np.flatnonzero(batch.bounds < self.cutoff)

            def sample(count: int) -> tuple[np.ndarray, np.ndarray]:
                some = alive[:: max(1, len(alive) // count)][:count]
                return batch.states[some], batch.duals[some]

            self.bounder.tighten(sample, self.k, self.cutoff, self.watch.is_late)
        self.pending = []
        return True

    def _round(self) -> bool:
        """Explore the subtrees of the best open nodes; False if a limit ends that early.

        A checkpoint then holds all of them as they were: a resumed run takes the same path.
        """
        self.pending = self.frontier.pop(self.rounds.size(len(self.frontier)))
        nodes = [node for node in self.pending if not self._prune(node)]
        limit = self.settings.node_limit
        left = None if limit is None else limit - self.n_nodes
        # A budget that was cut by the limit shows: one of two nodes more is spent.
        most = None if left is None else left + 2
        outcomes = self.rounds.explore(
            nodes, self.incumbent.value, self.cutoff, self.n_nodes, most, self._should_stop
        )
        merged = [outcome is not None for outcome in outcomes]
        if left is not None and sum(len(o.parent) for o in outcomes if o is not None) >= left:
            # Nothing of this is on the path of a resumed run.
            self.watch.status = Status.NODE_LIMIT
            merged = _within(left, outcomes)
        finished = self.watch.status is None and all(merged)
        if not finished and self.writer:
            self.writer.write(self.state())
            self.writer = None
        resisting: list[Node] = []
        for node, outcome, is_merged in zip(nodes, outcomes, merged, strict=True):
            if outcome is not None and is_merged:
                resisting += self._merge(node, outcome)
        self.pending = [n for n, is_merged in zip(nodes, merged, strict=True) if not is_merged]
        self._close(resisting)
        if finished:
            self._close_all()
            if self.rounds.share_charges:
                self.bounder.tighten(self._sample, self.k, self.cutoff, self.watch.is_late)
        return finished

    def _sample(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """States and dual vectors of some open nodes, the weakest one first."""
        nodes = self.frontier.weakest(4 * count)[::4]
        duals = np.zeros((len(nodes), self.form.p))
        for dual, node in zip(duals, nodes, strict=True):
            dual[node.nonzeros] = node.values
        return np.array([node.state for node in nodes]), duals

    def _merge(self, node: Node, outcome: Outcome) -> list[Node]:
        """Take over what a unit has proven and left; the nodes that resisted an enumeration."""
        split = node.split if self.bounder.clusters is None else None
        number = self.bounder.split_number if split is None else split.number
        if outcome.t is not None:
            here = outcome.split_features
            number = self.recorder.add_split(self.form.features[here], outcome.t[here])
            split = UsedSplit(number, outcome.t)
        first = self.recorder.add_outcome(outcome, node.number, self.form.features, number)
        self.rounds.charge(outcome)
        self.n_nodes += len(outcome.parent)
        self.dropped = min(self.dropped, outcome.dropped)
        for support in outcome.hits:
            self.incumbent.offer(self.form.features[support])
        if outcome.rounded is not None:
            self.improver.polish(self.form, outcome.rounded, self.inside)
        resisting = []
        for i, left in self.rounds.open_nodes(node, outcome, first, split):
            if i >= 0 and outcome.fate[i] == RESISTING:
                resisting.append(left)
            else:
                self.frontier.push(self._with_cost(left))
        return resisting

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
            if self._worth_closing(root):
                self.pending = []
                if self._close([root]):
                    return
                self.pending = [root]
            self.frontier = Frontier(self.settings.search)  # a root that resisted is bounded now
            split = self.lessons.split if self._is_whole else first_split(self.form)
            self.bounder.start(self.form, split)
            self.root_state = root.state
            if self.clustered and self._tighten_root():
                continue
            origin = Origin(root, -1, False, root.state.copy())
            start = np.zeros((1, self.form.p))
            batch = NodeBatch.of(root.state[None].copy(), start, np.zeros(1))
            self._bound(batch, [origin])
            self.root_state, self.root_number = batch.states[0].copy(), batch.numbers[0]
            self.root_bound = max(self.root_bound, float(batch.bounds[0]))
            if self.root_bound >= self.cutoff:
                break
            if self._shrinks(self.root_state):
                self._shrink(self.root_state)
            elif not (self.lessons.clusters_helped and self._tighten_root()):
                break
        self.is_open = True
        self._admit(batch, [origin])
        self._report()

    @property
    def _is_whole(self) -> bool:
        """Whether the form is still that of the presolved problem, which lessons are about."""
        return self.form is self.lessons.form

    def _shrinks(self, state: np.ndarray) -> bool:
        """Are a good part of the features excluded for good?

        A smaller matrix has a larger smallest eigenvalue, hence a better split.
        """
        few = np.count_nonzero(state != OUT) <= tuning().shrink_below * self.form.p
        possible = np.count_nonzero(state == IN) <= self.k
        return bool(few and possible and self.settings.advanced.rebuild)

    def _shrink(self, state: np.ndarray) -> None:
        self.dropped = min(self.dropped, self.cutoff)
        keep = np.flatnonzero(state != OUT)
        self.inside = np.flatnonzero(state[keep] == IN)
        self.form = self.form.restricted(keep)

    def _tighten_root(self) -> bool:
        """Once the tree has cost as much as a cluster bound, exclude features by one for good.

        True if that closes the root or leaves out a good part of the features: what has been
        searched so far is given up for a start on the others.
        """
        if self.clustered is self.form or not self._may_cluster():
            return False
        self.clustered = self.form
        if not (self.bounder.may_optimise and self.settings.advanced.rebuild):
            return False
        self.bounder.preparing += self._clustering_cost()
        smallest = self.bounder.first.smallest
        bound = self.lessons.clusters if self._is_whole else cluster_bound(self.form, smallest)
        if bound is None:
            return False
        state, before = self.root_state, self.root_bound
        value = self.incumbent.value
        g = rounded(bound.maximise(state, self.k, value, self.cutoff, self._should_stop))
        value, with_feature = bound.certify(g, state, self.k)
        self.root_bound = max(before, value)
        # The form may already lack features that were given up within tolerance.
        self.proven = max(self.proven, min(value, self.dropped, self.incumbent.value))
        out = (with_feature >= self.cutoff) & (state == FREE)
        shrunk = np.where(out, OUT, state)
        shrinks = value < self.cutoff and self._shrinks(shrunk)
        if shrinks or value >= self.cutoff:
            self.frontier = Frontier(self.settings.search)
            self.recorder.forget_below(self.root_number)
            self.lessons.clusters_helped |= self._is_whole
        split, number = self._record_clusters(bound.split, g, out & shrinks)
        if shrinks or value >= self.cutoff:
            self.root_number = number
            if shrinks:
                self._shrink(shrunk)
            return True
        if self.cutoff - value < tuning().clusters_below * (self.cutoff - before):
            self.bounder.use_clusters(bound, split)
        return False

    def _clustering_cost(self) -> float:
        """Model seconds of a cluster bound at the root."""
        p, now = self.form.p, tuning()
        evaluation = now.per_multiply * p**2 + now.per_node
        return now.cluster_cubes * now.per_cube * p**3 + now.cluster_evaluations * evaluation

    def _may_cluster(self) -> bool:
        """Has the tree cost enough, or did clusters help before?

        The weaker the root bound, the sooner: a tree would not get far.
        """
        helps = self.clustered is not None or (self._is_whole and self.lessons.clusters_helped)
        wait = self._clustering_cost() * (self._hope / tuning().hope) ** 12
        return helps or self.bounder.searching >= wait

    def _root_node(self) -> Node:
        state = np.zeros(self.form.p, dtype=np.int8)
        state[self.inside] = IN
        nothing = np.zeros(0, dtype=np.int32), np.zeros(0)
        return self._node(self.root_bound, self.root_number, state, *nothing, 0.0)

    def _bounded_children(self, nodes: list[Node]) -> tuple[NodeBatch, list[Origin]]:
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
        batch = NodeBatch.of(states, duals, levels)
        self._bound(batch, origins)
        return batch, origins

    def _branching_feature(self, node: Node, dual: np.ndarray) -> int:
        if self.settings.advanced.branching == "heuristic":
            width = self.settings.advanced.beam_width
            feature, support = branching.by_heuristic(self.form, node.state, self.k, width)
            self.incumbent.offer(self.form.features[support])
            return feature
        return branching.by_relaxation(self.form, node.state, dual)

    def _bound(self, batch: NodeBatch, origins: list[Origin]) -> None:
        self.bounder.bound(batch, self.k, self.incumbent.value, self.cutoff)
        batch.numbers = [self._record(origin, batch, i) for i, origin in enumerate(origins)]
        self.n_nodes += len(batch)

    def _admit(self, batch: NodeBatch, origins: list[Origin]) -> None:
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
        self.pending = []
        self._close(closable)
        if self.settings.advanced.branching == "relaxation":
            self.improver.round(self.form, self.inside, self.k, open_nodes)
        self._close_all()

    # Closing nodes by enumeration ------------------------------------------------------------

    def _node(self, bound, number, state, index, value, level) -> Node:
        return self._with_cost(Node(bound, number, state, index, value, level, 0.0))

    def _with_cost(self, node: Node) -> Node:
        n_inside = int(np.count_nonzero(node.state == IN))
        n_free = int(np.count_nonzero(node.state == FREE))
        cost = enumeration.closing_cost(n_free, n_inside, max(self.k - n_inside, 0))
        return node._replace(cost=cost)

    def _close_all(self) -> None:
        """Enumerate all that is open, once that costs no more than has been spent."""
        if not self.settings.advanced.enumeration or self.frontier.cost > self._patience():
            return
        self._close(self.frontier.pop(len(self.frontier)))

    @property
    def _hope(self) -> float:
        """Share of the incumbent's value that is proven at the root: what a tree can hope for."""
        return max(self.root_bound, 0.0) / max(self.incumbent.value, PERFECT_FIT)

    def _patience(self) -> float:
        """Model seconds that closing everything may cost: a multiple of the work done so far.

        The weaker the root bound, the less a tree can hope for beside plain enumeration. Work on
        matrices counts less: it tells nothing about the tree.
        """
        done = self.bounder.searching + tuning().preparing_counts * self.bounder.preparing
        return done / max(self._hope, 0.02)

    def _worth_closing(self, node: Node) -> bool:
        """Is trying all supports of the node likely cheaper than the subtree below it?"""
        r = self.k - np.count_nonzero(node.state == IN)
        if r == 0 or np.count_nonzero(node.state == FREE) <= r:
            return True
        if not self.settings.advanced.enumeration:
            return False
        few_bounds = tuning().close_below * self.bounder.cost_of_one
        return node.cost <= max(few_bounds, tuning().close_always)

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

        waiting, self.pending = self.pending, [*self.pending, *nodes]
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
        self.pending = waiting
        if queued and self.incumbent.value <= PERFECT_FIT:
            self.watch.status = Status.PERFECT_FIT  # too many models tie at the level of rounding
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
        size = int(np.clip(tuning().batch_entries // self.form.p, 8, 128))
        # Limits are looked at between batches: where nodes are costly, these are small.
        return max(1, min(size, int(tuning().batch_seconds / max(self.bounder.cost_of_one, 1e-9))))

    def _record(self, origin: Origin, batch: NodeBatch, row: int) -> int:
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

    def _record_clusters(self, own: ClusterSplit, g: np.ndarray, out) -> tuple[int, int]:
        """Record a cluster bound of the root; the numbers of its split and node."""
        features = self.form.features
        split = self.recorder.add_split(features, own.charges, own.clusters, own.matrices)
        node = self.recorder.add(
            parent=self.root_number, split=split, dual=(features, g), fixed_out=features[out]
        )
        return split, node

    def _report(self) -> None:
        self._settle()
        snapshot = Snapshot(
            seconds=self.watch.seconds,
            n_nodes=self.n_nodes,
            n_open=len(self.frontier) + len(self.pending),
            objective=self.incumbent.objective,
            lower_bound=self.lower_bound,
            yy=self.incumbent.problem.yy,
        )
        self.watch.report(snapshot)

    def _should_stop(self) -> bool:
        return self.watch.should_stop(self.n_nodes, self._nbytes)

    def _nbytes(self) -> int:
        # The record is copied once, when it becomes a certificate.
        kept = self.frontier.nbytes + 2 * self.recorder.nbytes + self.improver.nbytes
        return kept + self.rounds.nbytes(len(self.frontier), self.n_nodes, self.workers.n_threads)

    # In a checkpoint ------------------------------------------------------------------------

    _PLAIN = ("dropped", "proven", "root_bound", "root_number", "n_nodes", "is_open")

    def state(self) -> dict[str, State]:
        """All that steers the search, part by part: a resumed run takes the same path."""
        plain = {name: getattr(self, name) for name in self._PLAIN}
        plain["clustered"] = None if self.clustered is None else self.clustered is self.form
        arrays = {
            "features": self.form.features,
            "inside": self.inside,
            "root_state": self.root_state,
            "support": self.incumbent.support,
        }
        # While the root is being prepared there is nothing below it: that part starts again.
        nodes = [*self.frontier.nodes(), *self.pending] if self.is_open else []
        return {
            "tree": State(plain, arrays),
            "nodes": state_of(nodes, self.form.p),
            "bounder": self.bounder.state() if self.is_open else State({}, {}),
            "improver": self.improver.state(),
            "recorder": self.recorder.state(),
            "watch": self.watch.state(),
        }

    def restore(self, parts: dict[str, State]) -> None:
        """Put a fresh tree into a saved state."""
        plain, arrays = parts["tree"]
        for name in self._PLAIN:
            setattr(self, name, plain[name])
        if len(arrays["features"]) < self.form.p:
            keep = np.searchsorted(self.form.features, arrays["features"])
            self.form = self.form.restricted(keep)
        self.inside, self.root_state = arrays["inside"], arrays["root_state"]
        if plain["clustered"] is not None:  # of this form, or of one before it
            self.clustered = self.form if plain["clustered"] else self.lessons.form
        self.incumbent.offer(arrays["support"])
        self.watch.restore(parts["watch"])
        self.improver.restore(parts["improver"])
        self.recorder.restore(parts["recorder"])
        if self.is_open:
            self.bounder.restore(parts["bounder"], self.form)
        for node in nodes_in(parts["nodes"]):
            self.frontier.push(node)


def _within(left: int, outcomes: list[Outcome | None]) -> list[bool]:
    """Which outcomes to take so that there are no more than so many nodes, and a few."""
    chosen = []
    for outcome in outcomes:
        count = 0 if outcome is None else len(outcome.parent)
        chosen.append(0 < count <= left + 2)
        left -= count if chosen[-1] else 0
    return chosen
