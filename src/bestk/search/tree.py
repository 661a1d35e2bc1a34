"""The search: open the root, explore what is open, report; until all is proven or a limit comes."""

import numpy as np

from bestk.base.cluster.client import ClusterLost
from bestk.base.constants import FREE
from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.base.threads import Workers
from bestk.form.presolve import Presolved
from bestk.results.progress import Progress
from bestk.results.result import Snapshot
from bestk.results.status import Status
from bestk.runs.checkpoint import Writer
from bestk.runs.watch import Watch
from bestk.search.batches import Batches
from bestk.search.bounder import Bounder
from bestk.search.improvement import Improver
from bestk.search.lessons import Lessons
from bestk.search.root import Root
from bestk.search.space import Space
from bestk.search.units.closing import Closing
from bestk.search.units.flight import Flight
from bestk.subtrees.engines import engine_for
from bestk.subtrees.frontier import state_of
from bestk.supports.enumeration import LimitReached
from bestk.supports.incumbent import Incumbent


class Tree:
    """Branch and bound over supports of one presolved problem."""

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
        self.presolved, self.settings, self.workers = presolved, settings, workers
        self.writer = writer
        stop = self._should_stop
        self.watch = Watch(settings, progress, started)
        self.space = Space(presolved, k, incumbent, lessons, settings, workers)
        self.bounder = Bounder(settings, workers, self.space.recorder)
        self.improver = Improver(incumbent, deadline=self.watch.deadline)
        self.closing = Closing(
            self.space, self.bounder, workers, self.watch, stop, self._report_closing
        )
        parts = self.space, self.bounder, self.closing, self.improver
        self.batches = Batches(*parts)
        self.flight = Flight(*parts, engine_for(workers), self.watch, stop)
        self.root = Root(self.space, self.bounder, self.batches, self.closing, stop)

    def run(self) -> Status:
        space = self.space
        try:
            if not self.root.is_open:
                self._find_first_model()
                self._open_root()
            while space.smallest_bound < space.cutoff and not self._should_stop():
                if self.writer and self.writer.is_due:
                    self.writer.write(self.state())
                if not self._step():
                    break
                self._report()
            self._end()
        except LimitReached:
            assert self.watch.status is not None, "what has ended the run?"
            space.settle(self.bounder.outside)
        except ClusterLost:
            if self.writer:
                self.writer.write(self.state())
            raise
        except KeyboardInterrupt:
            # Nodes may be in the air: the bound proven at the last step is the one that holds.
            self.watch.status = Status.INTERRUPTED
        if self.writer and self.watch.status is not Status.INTERRUPTED:
            self.writer.write(self.state())
        return self.watch.status or Status.OPTIMAL

    def _step(self) -> bool:
        """Explore some of what is open, or prepare a better bound; False if a limit came.

        Clusters and narrower boxes wait until nothing is in flight: units do not know of them.
        """
        is_due = self.root.may_tighten or self.flight.waits_for_box
        if len(self.flight) or (self.flight.may_run and not is_due):
            return self.flight.step(launch=not is_due)
        if self.root.may_tighten:
            if self.root.tighten():
                self._open_root()
        elif self.flight.may_run:
            self.flight.tighten()
        else:
            self.batches.step(self.watch.is_late)
        return True

    def _end(self) -> None:
        """A checkpoint holds units in flight as they are: a resumed run takes the same path."""
        if self.writer and len(self.flight):
            self.writer.write(self.state())
            self.writer = None
        self.flight.end()
        self.space.settle(self.bounder.outside)

    def _find_first_model(self) -> None:
        space = self.space
        space.in_work = [space.root_node()]
        width = self.settings.advanced.beam_width
        if space.incumbent.improves:
            self.improver.search(space.form, space.inside, space.k, width)
        self._report()

    def _open_root(self) -> None:
        self.root.open()
        if self.root.is_open:
            self._report()

    def _report(self) -> None:
        space = self.space
        space.settle(self.bounder.outside)
        snapshot = Snapshot(
            seconds=self.watch.seconds,
            n_nodes=space.n_nodes,
            n_open=space.n_open,
            objective=space.incumbent.objective,
            lower_bound=space.lower_bound,
            yy=space.incumbent.problem.yy,
            n_supports=space.n_supports + self.closing.n_supports,
        )
        self.watch.report(snapshot)

    def _report_closing(self) -> None:
        """In the midst of closing nodes: nothing is open but what is in work."""
        self._report()
        if self.writer and self.writer.is_due:
            self.writer.write(self.state())

    def _should_stop(self) -> bool:
        return self.watch.should_stop(self.space.n_nodes, self._nbytes)

    def _nbytes(self) -> int:
        space = self.space
        # The record is copied once, when it becomes a certificate.
        kept = space.frontier.nbytes + 2 * space.recorder.nbytes + self.improver.nbytes
        kept += space.waiting.nbytes
        kept += sum(node.nbytes for bunch in space.asked for node in bunch.nodes)
        forming, n_threads = self.flight.forming, self.workers.n_threads
        return kept + forming.nbytes(space.n_open, space.n_nodes, n_threads)

    # In a checkpoint ------------------------------------------------------------------------

    _PLAIN = ("dropped", "proven", "root_bound", "root_number", "n_nodes")

    def state(self) -> dict[str, State]:
        """All that steers the search, part by part: a resumed run takes the same path."""
        space, root = self.space, self.root
        plain = {name: getattr(space, name) for name in self._PLAIN}
        plain["is_open"] = root.is_open
        plain["clustered"] = None if root.clustered is None else root.clustered is space.form
        arrays = {
            "features": space.form.features,
            "inside": space.inside,
            "root_state": space.root_state,
            "support": space.incumbent.support,
        }
        # While the root is being prepared there is nothing below it: that part starts again.
        nodes = [*space.frontier.nodes(), *space.in_work[self.flight.n_nodes :]]
        return {
            "tree": State(plain, arrays),
            "nodes": state_of(nodes if root.is_open else [], space.form.p),
            "flight": self.flight.state(),
            "bounder": self.bounder.state() if root.is_open else State({}, {}),
            "closing": State({"saved": self.closing.saved}, {}),
            "improver": self.improver.state(),
            "recorder": space.recorder.state(),
            "watch": self.watch.state(),
        }

    def restore(self, parts: dict[str, State]) -> None:
        """Put a fresh tree into a saved state."""
        space, root, state = self.space, self.root, parts["tree"]
        space.recorder.restore(parts["recorder"], space.incumbent.problem.n_features)
        space.proven, space.root_bound = state.number("proven"), state.number("root_bound")
        space.dropped = state.number("dropped", finite=False)
        space.n_nodes = state.count("n_nodes")
        space.root_number = state.count("root_number", -1, space.recorder.recorded.n_nodes)
        root.is_open = state.flag("is_open")
        self._restore_form(state)
        if state.plain["clustered"] is not None:  # of this form, or of one before it
            root.clustered = space.form if state.flag("clustered") else space.lessons.form
        support = state.distinct("support", space.incumbent.problem.n_features)
        admitted = self.presolved.admits(support, space.k)
        state.require(admitted, "support", "is none that the question admits")
        space.incumbent.offer(support)
        self.watch.restore(parts["watch"])
        self.improver.restore(parts["improver"])
        self.closing.restore(parts["closing"])
        if root.is_open:
            self.bounder.restore(parts["bounder"], space.form)
        for node in space.nodes_in(parts["nodes"]):
            if (node.state == FREE).any():
                space.frontier.push(node)
            else:  # it was being closed when the checkpoint was written
                space.close_decided(node)
        self.flight.restore(parts["flight"])

    def _restore_form(self, state: State) -> None:
        """With the features that were left, those that every model has among them."""
        space, p = self.space, self.space.incumbent.problem.n_features
        features, required = state.distinct("features", p), space.form.features[space.inside]
        known = len(features) and np.isin(features, space.form.features).all()
        state.require(known, "features", "must be features that can enter a model")
        inside = state.distinct("inside", len(features))
        has_all = len(inside) <= space.k and np.isin(required, features[inside]).all()
        state.require(has_all, "inside", "must have what every model has, at most k features")
        if len(features) < space.form.p:
            space.form = space.form.restricted(np.searchsorted(space.form.features, features))
        space.inside = inside
        if self.root.is_open:
            space.root_state = state.integers("root_state", len(features), below=3).astype(np.int8)
