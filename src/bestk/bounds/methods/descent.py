"""Coordinate descent on the relaxed problem, whose solution is sparse."""

import numpy as np

from bestk.base.constants import IN
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.certify import charges_of, slopes_of
from bestk.bounds.kernels.candidates import missing_rows
from bestk.bounds.kernels.relaxation import Effort, Relaxed, descend_rows
from bestk.bounds.node_batch import NodeBatch, as_recorded
from bestk.bounds.split import Split
from bestk.form.matrix import Core
from bestk.form.standard_form import StandardForm

_NOTHING = np.zeros(0, dtype=np.intp)


class Descent:
    """Coordinate descent (theory: relaxation) over a core of features.

    The matrix says what the core is. Where that is all of them, one round does; else the slopes of
    all features say which ones the core lacks, and it grows.
    """

    def __init__(
        self, form: StandardForm, split: Split, workers: Workers, *, sweeps: int | None = None
    ) -> None:
        self.form, self.split, self.workers = form, split, workers
        self.core: Core = form.matrix.core(_NOTHING)
        now = tuning()
        self.effort = Effort(now.closeness, sweeps or now.sweeps, now.sweeps_at_once)

    def search(self, batch: NodeBatch, k: int, cutoff: float) -> None:
        if not self.split.is_useful(self.form):
            return
        core = self.core
        if core.is_whole:
            remaining = batch.remaining(k)
            found = batch.duals, batch.levels
            self._descend(core, batch.states, remaining, *found, cutoff, batch.multiplies)
            return
        core.add(_NOTHING if len(core.features) else self._likely(k), _needed(batch))
        rows = np.arange(len(batch))
        for _ in range(tuning().core_rounds):
            self._descend_within(core, batch, rows, k, cutoff)
            entrants, lacking = self._missing(batch, rows, core, k, cutoff)
            rows = rows[lacking]
            if len(rows) == 0:
                return
            core.add(entrants, _needed(batch))

    def _likely(self, k: int) -> np.ndarray:
        """Features to begin with: those most correlated with y."""
        size = min(max(tuning().core_first, tuning().core_per_choice * k), self.form.p)
        return np.argpartition(-np.abs(self.form.c), size - 1)[:size]

    def start_from(self, features: np.ndarray) -> None:
        """Begin with a core that another run ended with."""
        self.core = self.form.matrix.core(features)

    def _descend_within(
        self, core: Core, batch: NodeBatch, rows: np.ndarray, k: int, cutoff: float
    ) -> None:
        """Some nodes of a batch, over the features of the core alone; the others are zero."""
        place = np.ix_(rows, core.features)
        states, duals, levels = batch.states[place], batch.duals[place], batch.levels[rows]
        remaining, multiplies = batch.remaining(k)[rows], np.zeros(len(rows))
        self._descend(core, states, remaining, duals, levels, cutoff, multiplies)
        batch.duals[rows] = 0.0
        batch.duals[place] = duals
        batch.levels[rows] = levels
        batch.multiplies[rows] += multiplies

    def _descend(self, core: Core, states, remaining, duals, levels, cutoff, multiplies) -> None:
        """Improve duals and levels in place, over the features of the core."""
        form, features = self.form, slice(None) if core.is_whole else core.features
        t = np.maximum(self.split.t[features], 0.0)
        relaxed = Relaxed(core.A, form.c[features], t, form.lo[features], form.hi[features])

        def piece(part: slice) -> None:
            descend_rows(
                relaxed, states[part], remaining[part], duals[part], levels[part], cutoff,
                self.effort, multiplies[part],
            )  # fmt: skip

        # Nodes take unequal time: where that is much, threads that are done take more of them.
        each = tuning().pieces_per_thread if form.p >= tuning().thread_features else 1
        self.workers.map(piece, self.workers.slices(len(states), each))

    def _missing(self, batch: NodeBatch, rows: np.ndarray, core: Core, k: int, cutoff: float):
        """(features that the core lacks, which rows lack some and are worth another round)."""
        form, remaining = self.form, batch.remaining(k)[rows]
        slopes = batch.slopes or slopes_of(form, self.split.t, batch)
        batch.slopes = slopes
        # What is proven in the end is about the duals as a certificate keeps them.
        batch.duals[rows] = as_recorded(batch.duals[rows], self.split.t)
        slopes.set(rows, batch.duals[rows])
        batch.multiplies[rows] += slopes.multiplies
        u, states, levels = slopes.u[rows], batch.states[rows], batch.levels[rows]
        totals, missed = np.zeros((2, len(rows)))
        incomplete = np.zeros(len(rows), dtype=bool)
        parts = self.workers.slices(len(rows))
        entrants = np.zeros((len(parts), form.p), dtype=bool)
        charges, most = charges_of(form, self.split.t), tuning().core_entrants

        def piece(i: int) -> None:
            part = parts[i]
            missing_rows(
                u[part], charges, states[part], remaining[part], levels[part], core.listed, most,
                entrants[i], totals[part], missed[part], incomplete[part],
            )  # fmt: skip

        self.workers.map(piece, range(len(parts)))
        short = cutoff - (1.0 - slopes.quadratic[rows] - totals)
        worth = missed > self.effort.closeness * np.minimum(short, 1.0)
        return np.flatnonzero(entrants.any(axis=0)), incomplete & (short > 0.0) & worth


def _needed(batch: NodeBatch) -> np.ndarray:
    """Features that a core must have: those IN, and those of warm starts."""
    return np.flatnonzero(batch.duals.any(axis=0) | (batch.states == IN).any(axis=0))
