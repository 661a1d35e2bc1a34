"""The bound in use: the split, the search for duals, and what both have cost."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bestk.base.settings import Settings
from bestk.base.threads import Workers
from bestk.bounds.clusters import BlockBound
from bestk.bounds.methods import bound_and_fix, make_method
from bestk.bounds.node_batch import Batch
from bestk.bounds.ridge_box import Box, profile_box
from bestk.bounds.split import Split, SplitAscent
from bestk.form.standard_form import StandardForm
from bestk.search.recorder import Recorder

# Model seconds per multiply-add of a bound, and what a Python-level step costs besides. The choices
# between bounding, closing and improving the split rest on these constants and on counts of work
# done, never on the clock: the same input gives the same tree on every machine.
PER_MULTIPLY = 2e-10
PER_NODE = 1e-4
PER_CUBE = 3e-11
# A better diagonal is fitted to this many open nodes.
_SPLIT_NODES = 4
# A narrower box helps few problems: it waits until the tree has cost so many times as much. A small
# tree does without, as it may end with a gap of zero: models outside are known to the cutoff only.
_NARROW_AFTER, _SMALL_TREE = 3.0, 0.01


class Bounder:
    """Bounds batches of nodes of one form, with a diagonal that improves or with blocks.

    ``bounding`` and ``preparing`` are model seconds spent on nodes and on matrices. Once the box of
    ``form`` is narrower than the ``given`` one, models outside are worth at least ``outside``.
    """

    def __init__(self, settings: Settings, workers: Workers, recorder: Recorder) -> None:
        self.settings, self.workers, self.recorder = settings, workers, recorder
        self.blocks: BlockBound | None = None
        self.may_narrow = False
        self.outside = np.inf
        self.n_bounded = 0
        self.bounding = 0.0
        self.preparing = 0.0

    def start(self, form: StandardForm, split: Split) -> None:
        """Take over a form with a first split."""
        self.form, self.given, self.uniform = form, form, split
        self.may_narrow = split.is_positive
        self.ascent = SplitAscent(form, split, self.workers)
        self.preparing += 0.0 if form.is_wide else 2 * PER_CUBE * form.p**3
        self.use(split)
        self._wait_for_next_split()

    def use(self, split: Split) -> None:
        self.split, self.blocks = split, None
        self.method = make_method(self.settings.bound, self.form, split, self.workers)
        # Charges just below zero are those of a singular matrix: zero, up to rounding.
        charges = np.maximum(split.t, 0.0)
        box = self._narrowed_box() if self.is_narrowed else None
        self.split_number = self.recorder.add_split(self.form.features, charges, box=box)

    def _narrowed_box(self) -> tuple[np.ndarray, np.ndarray]:
        """In units of the problem; infinite where the problem's own bounds are in use."""
        now, before, unit = self.form, self.given, self.form.unit
        lower = np.where(now.lo > before.lo, now.lo * unit, -np.inf)
        return lower, np.where(now.hi < before.hi, now.hi * unit, np.inf)

    def _wait_for_next_split(self) -> None:
        step = 2 * PER_CUBE * self.form.p**3 + _SPLIT_NODES * PER_NODE
        self.next_split = self.bounding + SplitAscent.steps * step

    def use_blocks(self, blocks: BlockBound, split_number: int) -> None:
        self.blocks, self.split_number = blocks, split_number

    @property
    def is_narrowed(self) -> bool:
        return self.form is not self.given

    @property
    def cost_of_one(self) -> float:
        return self.bounding / max(self.n_bounded, 1)

    @property
    def may_optimise(self) -> bool:
        """The paper's methods keep the paper's split."""
        wanted = self.settings.bound == "descent" and self.settings.advanced.split == "optimised"
        return wanted and self.blocks is None and not self.form.is_wide

    def bound(
        self,
        states: np.ndarray,
        duals: np.ndarray,
        levels: np.ndarray,
        k: int,
        value: float,
        cutoff: float,
    ) -> Batch:
        """Bound nodes (rows), from warm starts; `value` is the incumbent's."""
        batch = Batch(
            states=states,
            duals=duals,
            levels=levels,
            bounds=np.full(len(states), -np.inf),
            work=np.zeros(len(states)),
        )
        if self.blocks is not None:
            self.blocks.bound_and_fix(batch, k, value, cutoff, self.workers)
        else:
            bound_and_fix(
                self.method, self.form, self.split, batch, k, cutoff,
                self.settings.advanced.fixing, self.workers,
            )  # fmt: skip
        self.n_bounded += len(states)
        self.bounding += PER_MULTIPLY * float(batch.work.sum()) + PER_NODE * len(states)
        return batch

    def narrow(self, box: Box) -> None:
        """Bound models in this box only."""
        self.form = replace(self.form, lo=box.lo, hi=box.hi)
        self.ascent = SplitAscent(self.form, self.ascent.split, self.workers)
        self.use(self.split)

    def tighten(self, batch: Batch, k: int, cutoff: float, stop: Callable[[], bool]) -> None:
        """Whenever the tree has cost as much as a better bound would, prepare one.

        First a narrower box, then again and again a diagonal that is fitted to open nodes.
        """
        if not self.may_optimise:
            return
        narrowing = 4 * PER_CUBE * self.form.p**3
        if self.may_narrow and self.bounding >= _NARROW_AFTER * (narrowing + _SMALL_TREE):
            self.preparing += narrowing
            self.may_narrow = False
            box = profile_box(self.form, self.uniform.smallest, k, cutoff)
            if box is not None:
                self.outside = min(self.outside, cutoff)
                self.narrow(box)
        if self.bounding < self.next_split:
            return
        alive = np.flatnonzero(batch.bounds < cutoff)
        alive = alive[:: max(1, len(alive) // _SPLIT_NODES)][:_SPLIT_NODES]
        if len(alive):
            nodes = batch.states[alive], batch.duals[alive]
            split = self.ascent.improve(*nodes, k, cutoff, stop)
            if not stop():  # a resumed run tries again
                self.use(split)
                self._wait_for_next_split()
