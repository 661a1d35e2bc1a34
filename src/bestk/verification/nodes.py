"""The bounds of nodes with dual vectors: lined up by the walk, evaluated in bulk.

Small splits go to one compiled loop, on all threads: a proof may have thousands of them with a few
nodes each. The others are proven once and evaluated with matrix products, split by split.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestk.results.certificate import Certificate, SplitRecord, ends_of, joined
from bestk.verification.evidence import Evidence
from bestk.verification.limits import limits
from bestk.verification.numerics.bounds import UNCOVERED, UNPROVEN, fill_bounds
from bestk.verification.numerics.matrices import Stored
from bestk.verification.numerics.tree import links, rows
from bestk.verification.splits import EMPTY, NOT_SEMIDEFINITE, Outcome, ProvenSplit, Task
from bestk.verification.threads import shared


class Lined(NamedTuple):
    """Nodes with a split each, and their cells before the fixings (rows)."""

    nodes: np.ndarray
    states: np.ndarray


class Proven(NamedTuple):
    """What is known of all nodes so far: values, FINE or not, and why splits are not proven."""

    own: np.ndarray
    violation: np.ndarray
    verdict: np.ndarray
    broken: dict[int, str]


class Split(Protocol):
    """A split that is proven; see splits.ProvenSplit."""

    def covers(self, state: np.ndarray) -> bool: ...

    def evaluate(self, tasks: list[Any]) -> list[Outcome]: ...


class SplitBySplit:
    """Proves a split at its first use, ValueError where that fails, and drops it after the last."""

    def __init__(
        self, certificate: Certificate, position: np.ndarray, prove: Callable[[Any], Split]
    ) -> None:
        self.records, self.tree = certificate.splits, certificate.tree
        self.position, self.prove = position, prove
        number = np.asarray(self.tree.split)
        self.left = np.bincount(number[number >= 0], minlength=len(self.records))
        self.splits: dict[int, Split | None] = {}

    def fill(self, lined: Lined, proven: Proven) -> None:
        numbers = np.asarray(self.tree.split)[lined.nodes]
        for number in np.unique(numbers):
            own = np.flatnonzero(numbers == number)
            self._fill(int(number), Lined(lined.nodes[own], lined.states[own]), proven)

    def _fill(self, number: int, lined: Lined, proven: Proven) -> None:
        split, count = self._split(number, proven), len(lined.nodes)
        if split is None:
            proven.verdict[lined.nodes] = UNPROVEN
        else:
            covered = np.array([split.covers(state) for state in lined.states])
            proven.verdict[lined.nodes[~covered]] = UNCOVERED
            lined = Lined(lined.nodes[covered], lined.states[covered])
            for start in range(0, len(lined.nodes), limits().tasks):
                part = zip(*(x[start : start + limits().tasks] for x in lined), strict=True)
                tasks = [self._task(int(node), state) for node, state in part]
                for task, outcome in zip(tasks, split.evaluate(tasks), strict=True):
                    proven.own[task.node], proven.violation[task.node] = outcome
        self.left[number] -= count
        if self.left[number] <= 0:
            self.splits.pop(number, None)

    def _split(self, number: int, proven: Proven) -> Split | None:
        if number not in self.splits:
            try:
                self.splits[number] = self.prove(self.records[number])
            except ValueError as reason:
                proven.broken[number] = str(reason)
                self.splits[number] = None
        return self.splits[number]

    def _task(self, node: int, state: np.ndarray) -> Any:
        index, value = self.tree.dual(node)
        place = self.position[index]
        fixed = (self.position[self.tree.fixed_in(node)], self.position[self.tree.fixed_out(node)])
        used = place >= 0
        return Task(node, state, place[used], value[used].astype(np.float64), *fixed)


class FloatNodes:
    """Bounds in floating point. They are the same for any number of threads."""

    def __init__(
        self, certificate: Certificate, evidence: Evidence, pool: ThreadPoolExecutor | None
    ) -> None:
        e, tree, splits = evidence, certificate.tree, certificate.splits
        self.pool, self.tree = pool, links(tree)
        self.by_split = SplitBySplit(certificate, e.position, lambda record: ProvenSplit(e, record))
        self.is_small = np.zeros(len(splits), dtype=bool)
        if isinstance(e.A, Stored):
            self.is_small[:] = [_is_small(split) for split in splits]
            self.problem = (e.A.A, e.c, e.eps, e.k, e.lo, e.hi, e.position)
        small = [split.features if _is_small(split) else EMPTY for split in splits]
        charges = [split.t if _is_small(split) else EMPTY for split in splits]
        self.splits = (*rows(ends_of(small), joined(small, np.int32)), joined(charges, np.float64))
        self.duals = (*rows(tree.dual_ends, tree.dual_index), np.ascontiguousarray(tree.dual_value))

    def fill(self, lined: Lined, proven: Proven) -> None:
        splits = self.tree.split[lined.nodes]
        order = np.argsort(splits, kind="stable")
        is_small = self.is_small[splits[order]]
        rest = order[~is_small]
        self.by_split.fill(Lined(lined.nodes[rest], lined.states[rest]), proven)
        order = order[is_small]
        if len(order) == 0:
            return

        def one(part: np.ndarray) -> None:
            given = (self.problem, self.splits, self.tree, self.duals)
            fill_bounds(*given, *lined, part, *proven[:3])

        # A split whose nodes are cut apart is proven in each part.
        shared(self.pool, one, np.split(order, range(limits().part, len(order), limits().part)))
        for number in np.unique(splits[order][proven.verdict[lined.nodes[order]] == UNPROVEN]):
            proven.broken[int(number)] = NOT_SEMIDEFINITE


def _is_small(split: SplitRecord) -> bool:
    """One charge for each of a few features, no box: what the compiled loop can do."""
    return len(split.features) <= limits().looped_features and not (
        len(split.clusters) or len(split.lower)
    )
