"""Collects the proof while the tree grows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bestk.base.state import State
from bestk.results.certificate import (
    ProofTree,
    SplitRecord,
    ends_of,
    joined,
    proof_arrays,
    proof_of,
)
from bestk.subtrees.frontier import Recorded
from bestk.subtrees.unit import CLOSED, Outcome, Sparse

_NOTHING = np.zeros(0, dtype=np.int32)
_ANY = Recorded(2**62, 2**62)
# What a block of nodes takes besides its arrays.
_PER_BLOCK = 2500


class _Block(NamedTuple):
    """Nodes that were recorded together; numbers are those of the whole proof."""

    parent: np.ndarray
    feature: np.ndarray
    inside: np.ndarray
    split: np.ndarray
    enumerated: np.ndarray
    duals: Sparse
    fixed_in: Sparse
    fixed_out: Sparse

    @property
    def nbytes(self) -> int:
        rows = (*self.duals, *self.fixed_in, *self.fixed_out)
        return _PER_BLOCK + sum(array.nbytes for array in (*self[:5], *rows))

    def first(self, count: int) -> "_Block":
        """Its first nodes alone."""
        parent, feature, inside, split, enumerated = (array[:count].copy() for array in self[:5])
        duals, fixed_in, fixed_out = (_first_rows(rows, count) for rows in self[5:])
        return _Block(parent, feature, inside, split, enumerated, duals, fixed_in, fixed_out)


class Recorder:
    """The nodes of a proof, until they take more than `limit` bytes; then it lets go of them all.

    Node 0, the root, is there from the start. Numbers mean nothing once recording has ended.
    """

    def __init__(self, limit: float) -> None:
        self.splits: list[SplitRecord] = []
        self.enabled = limit > 0
        self._limit = limit
        self._clear()
        self.add(parent=-1)

    def _clear(self) -> None:
        self.blocks: list[_Block] = []
        self.enumerated: set[int] = set()
        self.n_nodes = 0
        self.nbytes = 0

    def add_split(
        self,
        features: np.ndarray,
        t: np.ndarray,
        clusters: Sequence[np.ndarray] = (),
        matrices: Sequence[np.ndarray] = (),
        box: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> int:
        """Number of the new split; a box of its own is in units of the problem."""
        if self.enabled:
            members = tuple(cluster.astype(np.int32) for cluster in clusters)
            split = SplitRecord(
                features.astype(np.int32), t, members, tuple(matrices), *(box or ())
            )
            self.splits.append(split)
            self.nbytes += features.nbytes + t.nbytes + sum(m.nbytes for m in matrices)
        return len(self.splits) - 1

    def add(
        self,
        *,
        parent: int,
        feature: int = -1,
        inside: bool = False,
        split: int = -1,
        dual: tuple[np.ndarray, np.ndarray] = (_NOTHING, _NOTHING),
        fixed_in: np.ndarray = _NOTHING,
        fixed_out: np.ndarray = _NOTHING,
    ) -> int:
        """Number of the new node."""
        index, value = dual
        block = _Block(
            np.array([parent], dtype=np.int32), np.array([feature], dtype=np.int32),
            np.array([inside]), np.array([split], dtype=np.int32), np.zeros(1, dtype=bool),
            _one_row(index, value), _one_row(fixed_in), _one_row(fixed_out),
        )  # fmt: skip
        return self._append(block)

    def add_rows(
        self,
        *,
        parent: np.ndarray,
        feature: np.ndarray,
        inside: np.ndarray,
        split: np.ndarray,
        enumerated: np.ndarray,
        duals: Sparse,
        fixed_in: Sparse,
        fixed_out: Sparse,
    ) -> int:
        """Number of the first of several new nodes, or -1."""
        block = _Block(
            parent.astype(np.int32), feature.astype(np.int32), inside, split.astype(np.int32),
            enumerated, duals._replace(values=_single(duals.values)), fixed_in, fixed_out,
        )  # fmt: skip
        return self._append(block)

    def add_outcome(self, outcome: Outcome, parent: int, features: np.ndarray, split: int) -> int:
        """Number of the first node of a unit whose root is `parent`; `features` names them."""
        if not self.enabled:
            return -1
        first = self.n_nodes

        def named(rows: Sparse) -> Sparse:
            return Sparse(rows.ends, names[rows.features], rows.values)

        names = features.astype(np.int32)
        is_top, is_decided = outcome.parent < 0, outcome.feature >= 0
        duals = named(outcome.duals)
        block = _Block(
            parent=np.where(is_top, parent, outcome.parent + first).astype(np.int32),
            feature=np.where(is_decided, names[outcome.feature], -1).astype(np.int32),
            inside=outcome.inside,
            split=np.where(outcome.proved, split, -1).astype(np.int32),
            enumerated=outcome.fate == CLOSED,
            duals=duals._replace(values=_single(duals.values)),
            fixed_in=named(outcome.fixed_in),
            fixed_out=named(outcome.fixed_out),
        )
        return self._append(block)

    def _append(self, block: _Block) -> int:
        if not self.enabled:
            return -1
        first = self.n_nodes
        self.blocks.append(block)
        self.n_nodes += len(block.parent)
        self.nbytes += block.nbytes
        if self.nbytes > self._limit:
            self.stop()
        return first

    def close_by_enumeration(self, number: int) -> None:
        if self.enabled:
            self.enumerated.add(number)

    def forget_below(self, number: int) -> None:
        """The search starts again from a node; everything after it belongs to the old tree."""
        while self.n_nodes > number + 1:
            block = self.blocks.pop()
            self.n_nodes -= len(block.parent)
            self.nbytes -= block.nbytes
            kept = number + 1 - self.n_nodes
            if kept > 0:  # the record of a resumed run is one block, this node among them
                self._append(block.first(kept))
        self.enumerated = {i for i in self.enumerated if i <= number}

    def stop(self) -> None:
        self.enabled = False
        self.splits = []
        self._clear()

    def tree(self) -> ProofTree:
        blocks = self.blocks
        enumerated = np.concatenate([block.enumerated for block in blocks])
        enumerated[sorted(self.enumerated)] = True
        duals = _end_to_end([block.duals for block in blocks])
        fixed_in = _end_to_end([block.fixed_in for block in blocks])
        fixed_out = _end_to_end([block.fixed_out for block in blocks])
        return ProofTree(
            parent=np.concatenate([block.parent for block in blocks]),
            feature=np.concatenate([block.feature for block in blocks]),
            inside=np.concatenate([block.inside for block in blocks]),
            split=np.concatenate([block.split for block in blocks]),
            enumerated=enumerated,
            dual_ends=duals.ends,
            dual_index=duals.features,
            dual_value=duals.values,
            in_ends=fixed_in.ends,
            in_index=fixed_in.features,
            out_ends=fixed_out.ends,
            out_index=fixed_out.features,
        )

    def proof(self) -> tuple[ProofTree, tuple[SplitRecord, ...]] | None:
        """What was recorded, with the splits in use only; None once recording has ended."""
        if not self.enabled:
            return None
        tree = self.tree()
        used = np.unique(tree.split[tree.split >= 0])
        number = np.where(tree.split >= 0, np.searchsorted(used, tree.split), -1).astype(np.int32)
        return replace(tree, split=number), tuple(self.splits[i] for i in used)

    def state(self) -> State:
        return State({}, proof_arrays(self.tree(), self.splits) if self.enabled else {})

    @property
    def recorded(self) -> Recorded:
        """Numbers that nodes may have; any, once recording has ended."""
        return Recorded(self.n_nodes, len(self.splits)) if self.enabled else _ANY

    def restore(self, state: State, p: int, n_groups: int | None = None) -> None:
        """Take over a tree and its splits from a run that ended; of p features, perhaps in groups.

        What is checked is what going on needs: whether it proves anything, the verifier says.
        """
        if not state.arrays:
            self.stop()
            return
        _require_sound(state, p, p if n_groups is None else n_groups)
        tree, splits = proof_of(state.arrays)
        self._clear()
        self.splits = list(splits)
        nothing = np.zeros(0)
        block = _Block(
            tree.parent, tree.feature, tree.inside, tree.split, tree.enumerated,
            Sparse(tree.dual_ends, tree.dual_index, tree.dual_value),
            Sparse(tree.in_ends, tree.in_index, nothing),
            Sparse(tree.out_ends, tree.out_index, nothing),
        )  # fmt: skip
        self._append(block)


def _require_sound(state: State, p: int, n_groups: int) -> None:
    """One entry for each node, parents before their children, rows that are whole."""
    parent = state.integers("tree.parent", None, least=-1)
    n, n_splits = len(parent), len(state.integers("splits.ends", None))
    state.require(
        n > 0 and (parent < np.arange(n)).all(), "tree.parent", "must number nodes before it"
    )
    state.integers("tree.feature", n, least=-1, below=n_groups)
    state.integers("tree.split", n, least=-1, below=n_splits)
    for name in ("tree.inside", "tree.enumerated"):
        state.flags(name, n)
    for name, below in (("dual", p), ("in", n_groups), ("out", n_groups)):
        index = state.integers(f"tree.{name}_index", None, below=below)
        state.rows(f"tree.{name}_ends", index, n)
    state.reals("tree.dual_value", len(state.arrays["tree.dual_index"]))
    state.integers("splits.features", None, below=p)
    state.integers("clusters.members", None)
    for name in ("splits.t", "clusters.matrices"):
        state.reals(name, None)


def _single(values: np.ndarray) -> np.ndarray:
    """In single precision, if that is what they are."""
    single = values.astype(np.float32)
    return single if (single == values).all() else values


def _one_row(index: np.ndarray, values: np.ndarray = _NOTHING) -> Sparse:
    return Sparse(ends_of([index]), index.astype(np.int32), _single(values))


def _first_rows(rows: Sparse, count: int) -> Sparse:
    end = int(rows.ends[count - 1])
    return Sparse(rows.ends[:count].copy(), rows.features[:end].copy(), rows.values[:end].copy())


def _end_to_end(parts: list[Sparse]) -> Sparse:
    before = np.cumsum([0, *(len(part.features) for part in parts)])
    ends = [part.ends + start for part, start in zip(parts, before, strict=False)]
    values = [part.values for part in parts if len(part.values)]
    return Sparse(
        joined(ends, np.int64),
        joined([part.features for part in parts], np.int32),
        np.concatenate(values) if values else np.zeros(0, dtype=np.float32),
    )
