"""The root: bounded, cleared of features that cannot matter, and tightened once more by clusters.

Whatever is excluded here is excluded for the whole tree.
"""

from collections.abc import Callable

import numpy as np

from bestk.base.constants import FREE, OUT
from bestk.base.tuning import tuning
from bestk.bounds.cluster_bound import ClusterBound, cluster_bound
from bestk.bounds.clusters import ClusterSplit
from bestk.bounds.node_batch import NodeBatch, rounded
from bestk.bounds.split import first_split
from bestk.form.standard_form import StandardForm
from bestk.search.batches import Batches, Origin
from bestk.search.bounder import Bounder
from bestk.search.space import Space
from bestk.search.units.closing import Closing


class Root:
    """Opens the search below the root of a space, again whenever that has shrunk.

    ``clustered`` is the form for which clusters were tried.
    """

    def __init__(
        self,
        space: Space,
        bounder: Bounder,
        batches: Batches,
        closing: Closing,
        stop: Callable[[], bool],
    ) -> None:
        self.space, self.bounder, self.batches, self.closing = space, bounder, batches, closing
        self.stop = stop
        self.clustered: StandardForm | None = None
        self.is_open = False  # is the root bounded, and everything else below it?

    def open(self) -> None:
        """Bound the root; drop excluded features and start again while that shrinks the problem."""
        space, lessons = self.space, self.space.lessons
        self.is_open = False
        while True:
            root = space.root_node()
            space.in_work = [root]
            if self.stop() or space.prune(root):
                return
            if self.closing.is_worth_it(root):
                space.in_work = []
                if not self.closing.close([root]):
                    return
            space.forget_nodes()  # a root that resisted is bounded now
            space.in_work = [root]
            split = lessons.split if space.is_whole else first_split(space.form)
            self.bounder.start(space.form, split)
            space.root_state = root.state
            if self.clustered and self.tighten():
                continue
            origin = Origin(root, -1, False, root.state.copy())
            start = np.zeros((1, space.form.p))
            batch = NodeBatch.of(root.state[None].copy(), start, np.zeros(1))
            self.batches.bound(batch, [origin])
            space.root_state, space.root_number = batch.states[0].copy(), batch.numbers[0]
            space.root_bound = max(space.root_bound, float(batch.bounds[0]))
            if space.root_bound >= space.cutoff:
                break
            if space.shrinks(space.root_state):
                space.shrink(space.root_state)
            elif not (lessons.clusters_helped and self.tighten()):
                break
        self.is_open = True
        self.batches.admit(batch, [origin])

    @property
    def may_tighten(self) -> bool:
        """Whether a cluster bound is due: has the tree cost enough, or did clusters help before?

        The weaker the root bound, the sooner: a tree would not get far.
        """
        space, helped = self.space, self.space.lessons.clusters_helped
        if self.clustered is space.form or (self.is_open and not space.has_more_than_device):
            return False
        helps = self.clustered is not None or (space.is_whole and helped)
        wait = self._clustering_cost() * (space.hope / tuning().hope) ** 12
        return helps or self.bounder.searching >= wait

    def tighten(self) -> bool:
        """Exclude features for good by a cluster bound, once that is due.

        True if that closes the root or leaves out a good part of the features: what has been
        searched so far is given up for a start on the others.
        """
        if not self.may_tighten:
            return False
        space = self.space
        self.clustered = space.form
        if not (self.bounder.may_optimise and space.settings.advanced.rebuild):
            return False
        self.bounder.preparing += self._clustering_cost()
        smallest = self.bounder.first.smallest
        own = space.lessons.clusters if space.is_whole else cluster_bound(space.form, smallest)
        return own is not None and self._tightened_by(own)

    def _tightened_by(self, bound: ClusterBound) -> bool:
        space, state, before = self.space, self.space.root_state, self.space.root_bound
        value, cutoff = space.incumbent.value, space.cutoff
        g = rounded(bound.maximise(state, space.k, value, cutoff, self.stop))
        value, with_feature = bound.certify(g, state, space.k)
        space.root_bound = max(before, value)
        # The form may already lack features that were given up within tolerance.
        holds = min(value, space.dropped, space.incumbent.value)
        out = (with_feature >= cutoff) & (state == FREE)
        shrunk = np.where(out, OUT, state)
        # What the tree has proven is not given up for a start with less.
        shrinks = value < cutoff and holds >= space.proven and space.shrinks(shrunk)
        space.proven = max(space.proven, holds)
        if shrinks or value >= cutoff:
            space.forget_nodes()
            space.recorder.forget_below(space.root_number)
            space.lessons.clusters_helped |= space.is_whole
        split, number = self._recorded(bound.split, g, out & shrinks)
        if shrinks or value >= cutoff:
            space.root_number = number
            if shrinks:
                space.shrink(shrunk)
            return True
        if cutoff - value < tuning().clusters_below * (cutoff - before):
            self.bounder.use_clusters(bound, split)
        return False

    def _clustering_cost(self) -> float:
        """Model seconds of a cluster bound at the root."""
        p, now = self.space.form.p, tuning()
        evaluation = now.per_multiply * p**2 + now.per_node
        return now.cluster_cubes * now.per_cube * p**3 + now.cluster_evaluations * evaluation

    def _recorded(self, own: ClusterSplit, g: np.ndarray, out: np.ndarray) -> tuple[int, int]:
        """The numbers of a cluster bound's split and node in the record."""
        features, recorder = self.space.form.features, self.space.recorder
        split = recorder.add_split(features, own.charges, own.clusters, own.matrices)
        node = recorder.add(
            parent=self.space.root_number,
            split=split,
            dual=(features, g),
            fixed_out=features[out],
        )
        return split, node
