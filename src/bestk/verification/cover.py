"""Do the nodes of a proof cover all supports, and what do they prove together?

The value of a node is a proven lower bound on f over the supports of its cell,

    value = max(own, min(violation, below)):

what its dual vector proves; and, if that is less, what is proven for supports that violate one of
its fixings, and for the others by the proofs below it. Arithmetic is left to a back end.
"""

import math
from collections import defaultdict
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.enumeration import Cell, Unjudged
from bestk.verification.limits import limits
from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.splits import Outcome, Task

NOTHING = -math.inf


class Split(Protocol):
    """A split that is proven; see splits.ProvenSplit."""

    def covers(self, state: np.ndarray) -> bool: ...

    def evaluate(self, tasks: list[Task]) -> list[Outcome]: ...


class BackEnd(Protocol):
    """The arithmetic of a verification; values are floats or fractions."""

    k: int
    inside: np.ndarray
    position: np.ndarray
    live: np.ndarray

    def split(self, record: Any) -> Split:
        """The split, proven; ValueError where it cannot be."""

    def enumerate(self, cells: list[Cell]) -> list[Any]:
        """The least value over each cell; an Unjudged where that is not feasible."""


class Cover(NamedTuple):
    """The value of the root and what is wrong with the tree."""

    value: Any
    failures: list[str]
    weakest: str


class _Walk:
    def __init__(self, certificate: Certificate, back_end: BackEnd) -> None:
        self.certificate, self.back_end = certificate, back_end
        self.tree = certificate.tree
        m = len(self.tree)
        self.own: list[Any] = [NOTHING] * m
        self.violation: list[Any] = [math.inf] * m
        self.tried: list[Any] = [NOTHING] * m
        self.empty = np.zeros(m, dtype=bool)
        self.bad = np.zeros(m, dtype=bool)
        self.failures: list[str] = []
        self.splits: dict[int, Split | None] = {}
        self.waiting: dict[int, list[Task]] = defaultdict(list)
        self.n_waiting = 0
        self.cells: dict[int, Cell] = {}
        self.cell_bytes = 0
        self.children: dict[int, list[int]] = defaultdict(list)
        for node, parent in enumerate(self.tree.parent.tolist()):
            self.children[parent].append(node)

    def fail(self, text: str) -> None:
        if len(self.failures) < limits().failures:
            self.failures.append(text)

    def run(self) -> None:
        """Depth first: only the cells of the current path are in memory."""
        root = np.full(len(self.back_end.live), FREE, dtype=np.int8)
        root[self.back_end.inside] = IN
        stack = [(0, root)]
        while stack:
            node, state = stack.pop()
            after = self._visit(node, state)
            if after is not None:
                stack += [(child, after) for child in reversed(self.children[node])]
        for split in list(self.waiting):
            self._evaluate(split)
        self._enumerate()

    def _visit(self, node: int, parent_state: np.ndarray) -> np.ndarray | None:
        """The cell of a node after its fixings; None where nothing below it can be used."""
        state = self._branched(node, parent_state)
        if state is None:
            self.bad[node] = True
            return None
        self._use_split(node, state)
        after = self._fixed(node, state)
        if after is None:
            self.bad[node] = True
            return None
        r = self.back_end.k - int(np.count_nonzero(after == IN))
        self.empty[node] = r < 0
        if self.tree.enumerated[node] and r >= 0:
            inside, free = np.flatnonzero(after == IN), np.flatnonzero(after == FREE)
            self.cells[node] = Cell(inside, free, r)
            self.cell_bytes += free.nbytes
            if len(self.cells) >= limits().cells or self.cell_bytes > limits().waiting_bytes:
                self._enumerate()
        return after

    def _enumerate(self) -> None:
        values = self.back_end.enumerate(list(self.cells.values()))
        for node, value in zip(self.cells, values, strict=True):
            if isinstance(value, Unjudged):
                self.fail(f"node {node} was not enumerated: {value}")
            else:
                self.tried[node] = value
        self.cells.clear()
        self.cell_bytes = 0

    def _branched(self, node: int, parent_state: np.ndarray) -> np.ndarray | None:
        feature = int(self.tree.feature[node])
        if feature < 0:
            return parent_state
        j = int(self.back_end.position[feature])
        if j < 0 or parent_state[j] != FREE:
            self.fail(f"node {node}: feature {feature} is not free to branch on")
            return None
        state = parent_state.copy()
        state[j] = IN if self.tree.inside[node] else OUT
        return state

    def _fixed(self, node: int, state: np.ndarray) -> np.ndarray | None:
        """The cell after the node's fixings."""
        fixed = ((self.tree.fixed_in(node), IN), (self.tree.fixed_out(node), OUT))
        if not any(len(features) for features, _ in fixed):
            return state
        state = state.copy()
        for features, decided in fixed:
            place = self.back_end.position[features]
            wrong = (place < 0) | (state[place] != FREE)
            if not wrong.any():
                _, first = np.unique(place, return_index=True)
                wrong[:] = True  # once is enough
                wrong[first] = False
            if wrong.any():
                feature = features[np.argmax(wrong)]
                self.fail(f"node {node}: feature {feature} is fixed, but not free")
                return None
            state[place] = decided
        return state

    def _use_split(self, node: int, state: np.ndarray) -> None:
        """Line up the node's dual vector for evaluation."""
        split = int(self.tree.split[node])
        index, value = self.tree.dual(node)
        fixed = [self.tree.fixed_in(node), self.tree.fixed_out(node)]
        if split < 0:
            if any(map(len, fixed)):
                self.violation[node] = NOTHING
                self.fail(f"node {node}: it fixes features without a proof")
            return
        proven = self._split(split)
        if proven is None or not proven.covers(state):
            if proven is not None:
                self.fail(f"node {node}: split {split} lacks features that are not excluded there")
            self.violation[node] = NOTHING if any(map(len, fixed)) else math.inf
            return
        place = self.back_end.position
        index = place[index]
        used = index >= 0
        features = [place[features] for features in fixed]
        if any(len(part) and (part.min() < 0 or state[part].any()) for part in features):
            return  # `_fixed` says so
        values = value[used].astype(np.float64)
        self.waiting[split].append(Task(node, state, index[used], values, *features))
        self.n_waiting += 1
        if len(self.waiting[split]) >= limits().tasks:
            self._evaluate(split)
        elif self.n_waiting * len(state) > limits().waiting_bytes:
            for number in list(self.waiting):
                self._evaluate(number)

    def _split(self, number: int) -> Split | None:
        if number not in self.splits:
            try:
                self.splits[number] = self.back_end.split(self.certificate.splits[number])
            except ValueError as reason:
                self.fail(f"split {number}: {reason}")
                self.splits[number] = None
        return self.splits[number]

    def _evaluate(self, split: int) -> None:
        tasks = self.waiting.pop(split)
        self.n_waiting -= len(tasks)
        proven = self.splits[split]
        assert proven is not None
        for task, outcome in zip(tasks, proven.evaluate(tasks), strict=True):
            self.own[task.node], self.violation[task.node] = outcome

    def values(self) -> list[Any]:
        """The value of every node, children before parents."""
        values: list[Any] = [0] * len(self.tree)
        for node in range(len(self.tree) - 1, -1, -1):
            if self.bad[node]:
                continue
            below = math.inf if self.empty[node] else self._below(node, values)
            values[node] = max(0, self.own[node], min(self.violation[node], below))
        return values

    def _below(self, node: int, values: list[Any]) -> Any:
        best = max(self.tried[node], NOTHING)
        sides: dict[int, dict[bool, Any]] = defaultdict(dict)
        for child in self.children.get(node, ()):
            feature, side = int(self.tree.feature[child]), bool(self.tree.inside[child])
            if feature < 0:
                best = max(best, values[child])
            else:
                sides[feature][side] = max(values[child], sides[feature].get(side, NOTHING))
        for proven in sides.values():
            if len(proven) == 2:
                best = max(best, min(proven.values()))
        return best

    def weakest(self, values: list[Any]) -> str:
        """A sentence about the node that keeps the root's value down."""
        node, inside, outside = 0, [], 0
        while True:
            inside += self.tree.fixed_in(node).tolist()
            outside += len(self.tree.fixed_out(node))
            if (
                self.violation[node] <= self._below(node, values)
                and self.violation[node] < math.inf
            ):
                what = "its fixings are proven only to"
                return _sentence(node, inside, outside, what, float(self.violation[node]))
            children = self.children.get(node, [])
            missing = self._missing_side(node) if children else ""
            if missing:
                return f"node {node} lacks the child {missing}"
            if not children or values[node] <= max(self.own[node], self.tried[node]):
                what = (
                    "its support by support proof gives"
                    if self.tree.enumerated[node]
                    else "it proves"
                )
                return _sentence(node, inside, outside, what, float(values[node]))
            node = min(children, key=lambda child: values[child])
            if self.tree.feature[node] >= 0:
                if self.tree.inside[node]:
                    inside.append(int(self.tree.feature[node]))
                else:
                    outside += 1

    def _missing_side(self, node: int) -> str:
        """Which child is not there, if no branching at the node is complete."""
        sides = defaultdict(set)
        for child in self.children[node]:
            if self.tree.feature[child] < 0:
                return ""
            sides[int(self.tree.feature[child])].add(bool(self.tree.inside[child]))
        if any(len(found) == 2 for found in sides.values()):
            return ""
        feature, found = next(iter(sides.items()))
        return f"{'without' if True in found else 'with'} feature {feature}"


def _sentence(node, inside, outside, what, value) -> str:
    features = ", ".join(map(str, sorted(inside)[:20])) or "none"
    cell = f"features in: {features}; {outside} more decided to be out"
    return f"the weakest node is {node} ({cell}): {what} {value:.9g} of y'y"


def cover(certificate: Certificate, back_end: BackEnd) -> Cover:
    walk = _Walk(certificate, back_end)
    walk.run()
    values = walk.values()
    return Cover(values[0], walk.failures, walk.weakest(values))
