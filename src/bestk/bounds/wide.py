"""Bounds on forms with many more features than rows: relaxations over a few candidates.

A relaxation has few nonzeros. It is solved over a core of candidates, whose products are stored;
then the slopes of all features, one product with the rows for a whole batch of nodes, say what the
dual vector proves, and which features the core lacks.
"""

import numpy as np

from bestk.base.constants import IN, OUT, UNIT_ROUNDOFF
from bestk.base.threads import Workers
from bestk.bounds.kernels import conclude_rows, descend_rows, missing_rows
from bestk.bounds.node_batch import CAUTION, Batch, as_recorded
from bestk.bounds.split import Split
from bestk.form.matrix import ByRows
from bestk.form.standard_form import StandardForm

# Features of the first core, at least and for each feature of a model.
_FIRST, _PER_CHOICE = 128, 16
# A core of so many candidates is no burden; a larger one has no more products than the data have.
_MANY = 2000
# Candidates that one node may add at a time, and how often a batch may do so.
_ENTRANTS = 32
_ROUNDS = 12
# Work of a product with all rows beside that of a loop over as many numbers.
_PRODUCT = 0.125
# Features that are out at all nodes of a batch are left out of products if this share remains.
_FEW = 0.7


class Slopes:
    """u = c - Q g of nodes (rows) and g'Qg, with what rounding and the data may have done to them.

    Each entry of `u` is known up to `error` of its row, `quadratic` up to `lost`. Features that are
    out at all nodes are left at zero.
    """

    def __init__(self, form: StandardForm, split: Split, states: np.ndarray) -> None:
        self.form, self.split = form, split
        self.u = np.zeros(states.shape)
        self.quadratic, self.error, self.lost = np.zeros((3, len(states)))
        live = (states != OUT).any(axis=0)
        few = np.count_nonzero(live) < _FEW * form.p
        self.live = np.flatnonzero(live) if few else slice(None)
        self.Z = _rows(form).Z[self.live]

    def set(self, rows: np.ndarray, duals: np.ndarray) -> None:
        """The slopes of some rows, from the rows of data: Q = Z Z' + diag(ridge - t)."""
        A, t = _rows(self.form), self.split.t
        used = np.flatnonzero(duals.any(axis=0))
        g = duals[:, used]
        fitted = g @ A.Z[used]
        rest = (A.ridge[used] - t[used]) * g
        u = np.zeros((len(rows), self.form.p))
        u[:, self.live] = self.form.c[self.live] - fitted @ self.Z.T
        u[:, used] -= rest
        self.u[rows] = u
        self.quadratic[rows] = (fitted * fitted).sum(axis=1) + (rest * g).sum(axis=1)
        # Columns are no longer than one: sums over nonzeros, then rows, as in `_kernels.certify`.
        g1 = np.abs(g).sum(axis=1)
        rounding = (A.n + len(used) + 16) * UNIT_ROUNDOFF
        error = rounding * (1.0 + 2.0 * g1) + CAUTION * self.form.eps * (1.0 + g1)
        self.error[rows], self.lost[rows] = error, g1 * (error + rounding * (4.0 + 4.0 * g1))


def _rows(form: StandardForm) -> ByRows:
    assert isinstance(form.operator, ByRows)
    return form.operator


class Core:
    """Candidate features in the order in which they came, with the block of A between them.

    ``A`` has room for more: its first ``len(features)`` rows and columns count.
    """

    def __init__(self, form: StandardForm, features: np.ndarray) -> None:
        self.form = form
        self.largest = max(_MANY, int(np.sqrt(form.p * _rows(form).n)))
        self._begin(features)

    def _begin(self, features: np.ndarray) -> None:
        self.A = np.empty((0, 0))
        self.features = np.zeros(0, dtype=np.intp)
        self._append(features)

    def _append(self, new: np.ndarray) -> None:
        form, first = self.form, len(self.features)
        self.features = np.concatenate([self.features, new])
        size = len(self.features)
        if size > len(self.A):
            old, room = self.A, min(max(2 * size, _FIRST), max(self.largest, size))
            self.A = np.zeros((room, room))
            self.A[:first, :first] = old[:first, :first]
        Z = _rows(form).Z
        rows = Z[new] @ Z[self.features].T
        rows[np.arange(len(new)), np.arange(first, size)] = 1.0
        self.A[first:size, :size] = rows
        self.A[:first, first:size] = rows[:, :first].T
        self.c, self.lo, self.hi = (x[self.features] for x in (form.c, form.lo, form.hi))
        self.listed = np.zeros(form.p, dtype=bool)
        self.listed[self.features] = True

    def add(self, features: np.ndarray, needed: np.ndarray) -> None:
        """More candidates; once there are too many, only these and those `needed` stay."""
        wanted = np.union1d(features, needed)
        new = wanted[~self.listed[wanted]]
        if len(self.features) + len(new) > self.largest:
            self._begin(wanted)
        elif len(new):
            self._append(new)


class WideDescent:
    """Coordinate descent (theory eq. 7) over a core that grows by what it lacks."""

    closeness = 0.2
    sweeps = 400

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.workers = form, split, workers
        self.core: Core | None = None

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        form, split = self.form, self.split
        if not split.bounds(form):
            return
        core = self._core_for(batch, k)
        batch.slopes = slopes = Slopes(form, split, batch.states)
        rows = np.arange(len(batch.states))
        for _ in range(_ROUNDS):
            self._descend(batch, rows, core, k, cutoff)
            slopes.set(rows, batch.duals[rows])
            batch.work[rows] += _PRODUCT * slopes.Z.size
            entrants, lacking = self._missing(batch, rows, core, k, cutoff)
            rows = rows[lacking]
            if len(rows) == 0:
                break
            core.add(entrants, self._needed(batch))

    def _core_for(self, batch: Batch, k: int) -> Core:
        if self.core is None:
            size = min(max(_FIRST, _PER_CHOICE * k), self.form.p)
            first = np.argpartition(-np.abs(self.form.c), size - 1)[:size]
            self.core = Core(self.form, np.union1d(first, self._needed(batch)))
        self.core.add(np.zeros(0, dtype=np.intp), self._needed(batch))
        return self.core

    @staticmethod
    def _needed(batch: Batch) -> np.ndarray:
        return np.flatnonzero(batch.duals.any(axis=0) | (batch.states == IN).any(axis=0))

    def _descend(self, batch: Batch, rows: np.ndarray, core: Core, k: int, cutoff: float) -> None:
        place = np.ix_(rows, core.features)
        states, duals, levels = batch.states[place], batch.duals[place], batch.levels[rows]
        remaining, work = batch.remaining(k)[rows], np.zeros(len(rows))
        t = np.maximum(self.split.t[core.features], 0.0)

        def piece(part: slice) -> None:
            descend_rows(
                core.A, core.c, t, core.lo, core.hi, states[part], remaining[part], duals[part],
                levels[part], cutoff, self.closeness, self.sweeps, work[part],
            )  # fmt: skip

        self.workers.map(piece, self.workers.slices(len(rows)))
        batch.duals[rows] = 0.0
        batch.duals[place] = as_recorded(duals, self.split.t)
        batch.levels[rows] = levels
        batch.work[rows] += work

    def _missing(self, batch: Batch, rows: np.ndarray, core: Core, k: int, cutoff: float):
        """(features that the core lacks, which rows lack some and are worth another round)."""
        form, remaining = self.form, batch.remaining(k)[rows]
        states, levels = batch.states[rows], batch.levels[rows]
        assert batch.slopes is not None
        u = batch.slopes.u[rows]
        totals, missed = np.zeros((2, len(rows)))
        incomplete = np.zeros(len(rows), dtype=bool)
        parts = self.workers.slices(len(rows))
        entrants = np.zeros((len(parts), form.p), dtype=bool)

        def piece(i: int) -> None:
            part = parts[i]
            missing_rows(
                u[part], self.split.t, form.lo, form.hi, states[part], remaining[part],
                levels[part], core.listed, _ENTRANTS, entrants[i], totals[part], missed[part],
                incomplete[part],
            )  # fmt: skip

        self.workers.map(piece, range(len(parts)))
        short = cutoff - (1.0 - batch.slopes.quadratic[rows] - totals)
        lacking = incomplete & (short > 0.0) & (missed > self.closeness * np.minimum(short, 1.0))
        return np.flatnonzero(entrants.any(axis=0)), lacking


def conclude(
    form: StandardForm,
    split: Split,
    batch: Batch,
    k: int,
    cutoff: float,
    fixing: bool,
    workers: Workers,
) -> None:
    """What the slopes of a batch prove: fills batch.bounds; batch.states gain the fixings."""
    remaining, eps = batch.remaining(k), CAUTION * form.eps
    slopes = batch.slopes
    if slopes is None:
        slopes = Slopes(form, split, batch.states)
        slopes.set(np.arange(len(batch.states)), batch.duals)

    def piece(rows: slice) -> None:
        conclude_rows(
            slopes.u[rows], slopes.quadratic[rows], slopes.error[rows], slopes.lost[rows],
            split.t, form.lo, form.hi,
            batch.states[rows], remaining[rows], eps, k, cutoff, fixing, batch.bounds[rows],
        )  # fmt: skip

    workers.map(piece, workers.slices(len(batch.states)))
    batch.slopes = None  # large, and of use to nobody else
