"""The bound in use: the split, the search for duals, and what both have cost."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bestk.base.constants import FREE
from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.cluster_bound import ClusterBound, cluster_bound
from bestk.bounds.methods import bound_nodes, make_method
from bestk.bounds.methods.descent import Descent
from bestk.bounds.node_batch import NodeBatch
from bestk.bounds.ridge_box import Box, ridge_box
from bestk.bounds.split import Split
from bestk.bounds.split_ascent import SplitAscent
from bestk.form.standard_form import StandardForm
from bestk.subtrees.local import Whole, localise
from bestk.subtrees.recorder import Recorder


class Bounder:
    """Bounds batches of nodes of one form, with a diagonal that improves or with clusters.

    ``bounding``, ``scanning``, ``preparing`` and ``ascending`` are model seconds spent on bounds,
    on enumerations inside units, on matrices and on charges of single subtrees. The choices
    between bounding, closing and improving the split compare these, never the clock. Once the box
    of ``form`` is narrower than the ``given`` one, models outside are worth at least ``outside``.
    """

    def __init__(self, settings: Settings, workers: Workers, recorder: Recorder) -> None:
        self.settings, self.workers, self.recorder = settings, workers, recorder
        self.clusters: ClusterBound | None = None
        self.is_started = self.has_best = False
        self.may_narrow = False
        self.outside = np.inf
        self.n_bounded = self.n_units = 0
        self.bounding = 0.0
        self.preparing = 0.0
        self.ascending = 0.0
        self.scanning = 0.0

    def start(self, form: StandardForm, split: Split) -> None:
        """Take over a form with a first split."""
        self.form, self.given, self.first = form, form, split
        self.is_started, self.has_best = True, False
        # Without a box relaxations are solved exactly: a narrow one would gain less than that.
        self.may_narrow = split.is_positive and form.is_boxed
        self.ascent = SplitAscent(form, split, self.workers)
        self.preparing += tuning().per_cube * form.matrix.factor_multiplies
        self.use(split)
        self._wait_for_next_split()

    def use(self, split: Split) -> None:
        self.split, self.clusters = split, None
        self.method = make_method(self.settings.bound, self.form, split, self.workers)
        # Charges just below zero are those of a singular matrix: zero, up to rounding.
        charges = np.maximum(split.t, 0.0)
        box = self._narrowed_box() if self.is_narrowed else None
        self.split_number = self.recorder.add_split(self.form.features, charges, box=box)

    def _narrowed_box(self) -> tuple[np.ndarray, np.ndarray]:
        """In units of the problem; infinite where the problem's own box is in use."""
        now, before, scale = self.form, self.given, self.form.scale
        lower = np.where(now.lo > before.lo, now.lo * scale, -np.inf)
        return lower, np.where(now.hi < before.hi, now.hi * scale, np.inf)

    def _wait_for_next_split(self) -> None:
        now = tuning()
        step = 2 * now.per_cube * self.form.p**3 + now.ascent_nodes * now.per_node
        wait = max(now.ascent_steps * step, now.ascent_share * self.searching)
        self.next_split = self.searching + wait

    def use_clusters(self, clusters: ClusterBound, split_number: int) -> None:
        self.clusters, self.split_number = clusters, split_number

    @property
    def is_narrowed(self) -> bool:
        return self.form is not self.given

    @property
    def cost_of_one(self) -> float:
        return self.bounding / max(self.n_bounded, 1)

    @property
    def searching(self) -> float:
        """Model seconds of the tree itself: bounds and enumerations."""
        return self.bounding + self.scanning

    @property
    def may_optimise(self) -> bool:
        """The paper's methods keep the paper's split."""
        wanted = self.settings.bound == "descent" and self.settings.advanced.split == "optimised"
        return wanted and self.clusters is None and self.form.matrix.has_factors

    def bound(self, batch: NodeBatch, k: int, value: float, cutoff: float) -> None:
        """Bound nodes from their warm starts; `value` is the incumbent's."""
        if self.clusters is not None:
            self.clusters.bound_and_fix(batch, k, value, cutoff, self.workers)
        else:
            bound_nodes(
                self.method, self.form, self.split, batch, k, cutoff,
                self.settings.advanced.fixing, self.workers,
            )  # fmt: skip
        now = tuning()
        self.n_bounded += len(batch)
        multiplies = float(batch.multiplies.sum())
        self.bounding += now.per_multiply * multiplies + now.per_node * len(batch)

    def narrow(self, box: Box) -> None:
        """Bound models in this box only."""
        self.form = replace(self.form, lo=box.lo, hi=box.hi)
        self.ascent = SplitAscent(self.form, self.ascent.split, self.workers)
        self.use(self.split)

    @property
    def is_due(self) -> bool:
        """Whether the tree has cost as much as a better bound would."""
        return self.may_optimise and (self.narrows or self.searching >= self.next_split)

    @property
    def narrows(self) -> bool:
        """Whether a narrower box is due."""
        wait = tuning().narrow_after * (self._narrowing + tuning().small_tree)
        return self.may_narrow and self.bounding >= wait

    @property
    def _narrowing(self) -> float:
        """Model seconds of a narrower box."""
        return 4 * tuning().per_cube * self.form.p**3

    def tighten(
        self,
        sample: Callable[[int], tuple[np.ndarray, np.ndarray]],
        k: int,
        cutoff: float,
        stop: Callable[[], bool],
    ) -> None:
        """Prepare a better bound, once it is due.

        First a narrower box, then again and again a diagonal that is fitted to open nodes, of which
        `sample` gives states and dual vectors.
        """
        if not self.is_due:
            return
        now = tuning()
        if self.narrows:
            self.preparing += self._narrowing
            self.may_narrow = False
            box = ridge_box(self.form, self.first.smallest, k, cutoff)
            if box is not None:
                self.outside = min(self.outside, cutoff)
                self.narrow(box)
        if self.searching < self.next_split:
            return
        states, duals = sample(now.ascent_nodes)
        if len(states):
            split = self._best_at_root(k, cutoff)
            split = split or self.ascent.improve(states, duals, k, cutoff, stop)
            if not stop():  # a resumed run tries again
                self.use(split)
                self._wait_for_next_split()

    def _best_at_root(self, k: int, cutoff: float) -> Split | None:
        """The best charges for the root, once; None where an ascent would take too long."""
        form = self.form
        if self.has_best or form.is_boxed or form.p > tuning().root_features:
            return None
        self.has_best = True
        least = self.first.smallest
        whole = Whole(form.A, form.c, form.lo, form.hi, form.eps, k, False, least, 0.0, 0.0)
        free, room = np.full(form.p, FREE, dtype=np.int8), np.empty(2 * form.p**2)
        _, local, is_better = localise(whole, free, self.first.t, True, -np.inf, cutoff, room)
        if not is_better:
            return None
        self.ascent = SplitAscent(form, Split(t=local.t), self.workers)
        return self.ascent.split

    # In a checkpoint ------------------------------------------------------------------------

    _PLAIN = (
        "n_bounded", "n_units", "bounding", "preparing", "ascending", "scanning", "next_split",
        "split_number", "may_narrow", "outside", "has_best",
    )  # fmt: skip

    def state(self) -> State:
        plain: dict[str, Any] = {name: getattr(self, name) for name in self._PLAIN}
        plain["uses_clusters"] = self.clusters is not None
        arrays = {"first": self.first.t, "split": self.split.t, "ascended": self.ascent.split.t}
        if self.is_narrowed:
            arrays |= {"lo": self.form.lo, "hi": self.form.hi}
        if isinstance(self.method, Descent) and not self.method.core.is_whole:
            arrays["core"] = self.method.core.features
        return State(plain, arrays)

    def restore(self, state: State, form: StandardForm) -> None:
        known = self.recorder.recorded  # which `start` and `use` add to
        first, split, ascended = (
            Split(t=state.reals(name, form.p)) for name in ("first", "split", "ascended")
        )
        self.start(form, first)
        if "lo" in state.arrays:
            self.narrow(_box_in(state, form))
        self.ascent = SplitAscent(self.form, ascended, self.workers)
        self.use(split)
        if "core" in state.arrays and isinstance(self.method, Descent):
            core = state.integers("core", None, below=form.p)
            state.require(len(np.unique(core)) == len(core), "core", "must list features once")
            self.method.start_from(core.astype(np.intp))
        if state.flag("uses_clusters"):
            self.clusters = cluster_bound(form, first.smallest)
        for name in ("n_bounded", "n_units"):
            setattr(self, name, state.count(name))
        for name in ("bounding", "preparing", "ascending", "scanning", "next_split"):
            setattr(self, name, state.number(name, 0.0))
        self.split_number = state.count("split_number", -1, known.n_splits)
        self.outside = state.number("outside", finite=False)
        self.may_narrow, self.has_best = state.flag("may_narrow"), state.flag("has_best")


def _box_in(state: State, form: StandardForm) -> Box:
    """A box with zero in it, within that of the form."""
    lo, hi = (state.reals(name, form.p, finite=False) for name in ("lo", "hi"))
    for name, is_within in (("lo", lo >= form.lo), ("hi", hi <= form.hi)):
        state.require((is_within & (lo <= 0.0) & (hi >= 0.0)).all(), name, "must narrow the box")
    return Box(lo, hi)
