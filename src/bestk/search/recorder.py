"""Collects the proof while the tree grows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bestk.results.certificate import (
    ProofTree,
    SplitRecord,
    ends_of,
    proof_arrays,
    proof_of,
)
from bestk.search.checkpoint import State

_NOTHING = np.zeros(0, dtype=np.int32)
# What a node takes besides its arrays.
_PER_NODE = 500


class _Node(NamedTuple):
    parent: int
    feature: int
    inside: bool
    split: int
    dual_index: np.ndarray
    dual_value: np.ndarray
    fixed_in: np.ndarray
    fixed_out: np.ndarray

    @property
    def nbytes(self) -> int:
        arrays = (self.dual_index, self.dual_value, self.fixed_in, self.fixed_out)
        return _PER_NODE + sum(array.nbytes for array in arrays)


class Recorder:
    """The nodes of a proof, until they take more than `limit` bytes; then it lets go of them all.

    Node 0, the root, is there from the start. Numbers mean nothing once recording has ended.
    """

    def __init__(self, limit: float) -> None:
        self.nodes: list[_Node] = []
        self.splits: list[SplitRecord] = []
        self.enumerated: set[int] = set()
        self.nbytes = 0
        self.enabled = limit > 0
        self._limit = limit
        self.add(parent=-1)

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
        if not self.enabled:
            return -1
        index, value = dual
        single = value.astype(np.float32)
        value = single if np.array_equal(single, value) else value
        node = _Node(
            parent, feature, inside, split, index.astype(np.int32), value,
            fixed_in.astype(np.int32), fixed_out.astype(np.int32),
        )  # fmt: skip
        self.nodes.append(node)
        self.nbytes += node.nbytes
        if self.nbytes > self._limit:
            self.stop()
        return len(self.nodes) - 1

    def close_by_enumeration(self, number: int) -> None:
        if self.enabled:
            self.enumerated.add(number)

    def forget_below(self, number: int) -> None:
        """The search starts again from a node; everything after it belongs to the old tree."""
        self.nbytes -= sum(node.nbytes for node in self.nodes[number + 1 :])
        del self.nodes[number + 1 :]
        self.enumerated = {i for i in self.enumerated if i <= number}

    def stop(self) -> None:
        self.enabled = False
        self.nodes, self.splits, self.enumerated, self.nbytes = [], [], set(), 0

    def tree(self) -> ProofTree:
        nodes, inside = self.nodes, [node.inside for node in self.nodes]
        enumerated = np.zeros(len(nodes), dtype=bool)
        enumerated[sorted(self.enumerated)] = True
        index, value = [n.dual_index for n in nodes], [n.dual_value for n in nodes]
        fixed_in, fixed_out = [n.fixed_in for n in nodes], [n.fixed_out for n in nodes]
        return ProofTree(
            parent=np.array([node.parent for node in nodes], dtype=np.int32),
            feature=np.array([node.feature for node in nodes], dtype=np.int32),
            inside=np.array(inside, dtype=bool),
            split=np.array([node.split for node in nodes], dtype=np.int32),
            enumerated=enumerated,
            dual_ends=ends_of(index),
            dual_index=np.concatenate(index),
            dual_value=np.concatenate(value),
            in_ends=ends_of(fixed_in),
            in_index=np.concatenate(fixed_in),
            out_ends=ends_of(fixed_out),
            out_index=np.concatenate(fixed_out),
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

    def restore(self, state: State) -> None:
        """Take over a tree and its splits from a run that ended."""
        if not state.arrays:
            self.stop()
            return
        tree, splits = proof_of(state.arrays)
        self.nodes, self.splits, self.nbytes = [], list(splits), 0
        for i in range(len(tree)):
            self.add(
                parent=int(tree.parent[i]),
                feature=int(tree.feature[i]),
                inside=bool(tree.inside[i]),
                split=int(tree.split[i]),
                dual=tree.dual(i),
                fixed_in=tree.fixed_in(i),
                fixed_out=tree.fixed_out(i),
            )
        self.enumerated = set(np.flatnonzero(tree.enumerated).tolist())
