"""The bound in use: the split, the search for duals, and what both have cost."""

from collections.abc import Callable

import numpy as np

from bestk.batches import Batch
from bestk.blocks import BlockBound
from bestk.bounds import bound_and_fix, make_method
from bestk.recorder import Recorder
from bestk.relaxation import Split, SplitAscent
from bestk.scaling import StandardForm
from bestk.settings import Settings
from bestk.threads import Workers

# Model seconds per multiply-add of a bound, and what a Python-level step costs besides. The choices
# between bounding, closing and improving the split rest on these constants and on counts of work
# done, never on the clock: the same input gives the same tree on every machine.
PER_MULTIPLY = 2e-10
PER_NODE = 1e-4
PER_CUBE = 3e-11
# A better diagonal is fitted to this many open nodes.
_SPLIT_NODES = 4


class Bounder:
    """Bounds batches of nodes of one form, with a diagonal that improves or with blocks.

    ``bounding`` and ``preparing`` are model seconds spent on nodes and on matrices.
    """

    def __init__(self, settings: Settings, workers: Workers, recorder: Recorder) -> None:
        self.settings, self.workers, self.recorder = settings, workers, recorder
        self.blocks: BlockBound | None = None
        self.n_bounded = 0
        self.bounding = 0.0
        self.preparing = 0.0

    def start(self, form: StandardForm, split: Split) -> None:
        """Take over a form with a first split."""
        self.form, self.uniform = form, split
        self.ascent = SplitAscent(form, split, self.workers)
        self.preparing += 0.0 if form.is_wide else 2 * PER_CUBE * form.p**3
        self.use(split)

    def use(self, split: Split) -> None:
        self.split, self.blocks = split, None
        self.method = make_method(self.settings.bound, self.form, split, self.workers)
        self.split_number = self.recorder.add_split(self.form.features, split.t)
        step = 2 * PER_CUBE * self.form.p**3 + _SPLIT_NODES * PER_NODE
        self.next_split = self.bounding + SplitAscent.steps * step

    def use_blocks(self, blocks: BlockBound, split_number: int) -> None:
        self.blocks, self.split_number = blocks, split_number

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

    def tighten(self, batch: Batch, k: int, cutoff: float, stop: Callable[[], bool]) -> None:
        """Whenever the tree has cost as much as a better diagonal would, fit one to open nodes."""
        if not self.may_optimise or self.bounding < self.next_split:
            return
        alive = np.flatnonzero(batch.bounds < cutoff)
        alive = alive[:: max(1, len(alive) // _SPLIT_NODES)][:_SPLIT_NODES]
        if len(alive):
            nodes = batch.states[alive], batch.duals[alive]
            split = self.ascent.improve(*nodes, k, cutoff, stop)
            if not stop():  # a resumed run tries again
                self.use(split)
