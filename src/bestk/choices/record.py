"""The proof of a search over groups while it grows: nodes, multipliers, rules that close nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.state import State
from bestk.choices.form import ChoiceForm
from bestk.choices.kernels.nodes import CLOSED, Batch
from bestk.results.certificate import ChoiceProof, ProofTree, SplitRecord, ends_of, joined
from bestk.subtrees.recorder import Recorder
from bestk.subtrees.unit import Sparse


class ChoiceRecord:
    """A :class:`Recorder` whose nodes decide on groups, with what a structure needs besides."""

    def __init__(self, form: ChoiceForm, limit: float) -> None:
        self.form, self.recorder = form, Recorder(limit)
        self.q = len(form.structure.matrix)
        self._broken: dict[int, int] = {}
        self._multipliers: dict[int, np.ndarray] = {}

    @property
    def enabled(self) -> bool:
        return self.recorder.enabled

    @property
    def nbytes(self) -> int:
        return self.recorder.nbytes + 100 * len(self._broken) + 200 * len(self._multipliers)

    def add_split(self, here: np.ndarray, t: np.ndarray) -> int:
        return self.recorder.add_split(self.form.features[here], t)

    def add(self, batch: Batch, origins: Sequence[tuple[Any, int, bool]]) -> int:
        """The number of the first node of a batch; `origins` are (parent, group, inside)."""
        recorder, proved = self.recorder, batch.proved
        if not recorder.enabled:
            return -1
        parents = [parent for parent, _, _ in origins]
        splits = np.array([parent.split.number for parent in parents])
        changed = np.where(batch.fixed != batch.before, batch.fixed, FREE)
        rows, columns = np.nonzero(np.where(proved[:, None], batch.duals, 0.0))
        first = recorder.add_rows(
            parent=np.array([parent.number for parent in parents]),
            feature=np.array([group for _, group, _ in origins]),
            inside=np.array([inside for _, _, inside in origins]),
            split=np.where(proved, splits, -1),
            enumerated=batch.fates == CLOSED,
            duals=Sparse(
                np.cumsum(np.bincount(rows, minlength=len(origins))),
                self.form.features[columns].astype(np.int32),
                batch.duals[rows, columns],
            ),
            fixed_in=_where(changed == IN),
            fixed_out=_where(changed == OUT),
        )
        if first >= 0:
            for i in np.flatnonzero(batch.broken != -1):
                self._broken[first + int(i)] = int(batch.broken[i])
            for i in np.flatnonzero(proved) if self.q else ():
                self._multipliers[first + int(i)] = batch.multipliers[i].copy()
        return first

    def proof(
        self, chosen: np.ndarray
    ) -> tuple[ProofTree, tuple[SplitRecord, ...], ChoiceProof] | None:
        """What was recorded; None once that took too much room."""
        proof = self.recorder.proof()
        if proof is None:
            return None
        tree, splits = proof
        broken = np.full(len(tree), -1, dtype=np.int64)
        multipliers = np.zeros((len(tree), self.q))
        for number, row in self._broken.items():
            broken[number] = row
        for number, values in self._multipliers.items():
            multipliers[number] = values
        bases = self.form.bases
        choices = ChoiceProof(
            chosen=np.asarray(chosen, dtype=np.int64),
            broken=broken,
            multipliers=multipliers,
            block_ends=ends_of([features for features, _ in bases]),
            block_features=joined([features for features, _ in bases], np.int64),
            blocks=joined([np.ravel(W) for _, W in bases], np.float64),
            dependent=self.form.dependent.astype(np.int64),
        )
        return tree, splits, choices

    def state(self) -> State:
        plain = self.recorder.state()
        numbers = np.array(sorted(self._multipliers), dtype=np.int64)
        extra = {
            "broken": np.array(sorted(self._broken.items()), dtype=np.int64).reshape(-1, 2),
            "numbers": numbers,
            "multipliers": np.array(
                [self._multipliers[i] for i in numbers.tolist()], dtype=np.float64
            ).reshape(len(numbers), self.q),
        }
        return State({"enabled": self.enabled}, {**plain.arrays, **extra})

    def restore(self, state: State) -> None:
        own = {n: a for n, a in state.arrays.items() if n.startswith(("tree.", "splits.", "clus"))}
        if not state.flag("enabled"):
            own = {}
        structure = self.form.structure
        p, m = len(structure.groups), structure.n_groups
        self.recorder.restore(state._replace(arrays=own), p, m)
        n_nodes = self.recorder.recorded.n_nodes
        broken = state.integers("broken", None, 2, least=-2, below=max(n_nodes, 1))
        is_right = (broken[:, 0] >= 0).all() and (broken[:, 1] < len(structure.rows)).all()
        state.require(is_right, "broken", "must name nodes and rules")
        numbers = state.integers("numbers", None, below=n_nodes)
        values = state.reals("multipliers", len(numbers), self.q)
        self._broken = {int(a): int(b) for a, b in broken}
        self._multipliers = dict(zip(numbers.tolist(), values, strict=True))


def _where(mask: np.ndarray) -> Sparse:
    """The columns that are set in each row."""
    rows, columns = np.nonzero(mask)
    ends = np.cumsum(np.bincount(rows, minlength=len(mask)))
    return Sparse(ends, columns.astype(np.int32), np.zeros(0))
