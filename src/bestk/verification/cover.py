"""Do the nodes of a proof cover all supports, and what do they prove together?

The value of a node is a proven lower bound on f over the supports of its cell,

    value = max(own, min(violation, below)):

what its dual vector proves; and, if that is less, what is proven for supports that violate one of
its fixings, and for the others by the proofs below it. Arithmetic is left to a back end.
"""

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.limits import limits
from bestk.verification.nodes import Lined, Proven
from bestk.verification.numerics.bounds import FINE, UNCOVERED
from bestk.verification.numerics.choice import FREE, IN
from bestk.verification.numerics.tree import (
    NOT_FREE_TO_BRANCH,
    NOT_FREE_TO_FIX,
    SOUND,
    UNSEEN,
    fill_values,
    links,
    walk,
)
from bestk.verification.supports.enumeration import Unjudged

NOTHING = -math.inf


class BackEnd(Protocol):
    """The arithmetic of a verification; values are floats, or fractions in arrays of objects."""

    k: int
    inside: np.ndarray
    position: np.ndarray
    live: np.ndarray
    number: Any

    def fill(self, lined: Lined, proven: Proven) -> None:
        """What the dual vectors of nodes prove."""

    def enumerate(self, cells: np.ndarray) -> list[Any]:
        """The least value over each cell (row); an Unjudged where that is not feasible."""


class Cover(NamedTuple):
    """The value of the root and what is wrong with the tree."""

    value: Any
    failures: list[str]
    weakest: str


class Walk:
    """One pass through a proof: cells and bounds of all nodes, then their values."""

    noun = "feature"  # what nodes decide on

    def __init__(self, certificate: Certificate, back_end: BackEnd) -> None:
        self.certificate, self.back_end = certificate, back_end
        self.tree, self.links = certificate.tree, links(certificate.tree)
        m, number = len(self.tree), back_end.number
        self.proven = Proven(
            np.full(m, NOTHING, number), np.full(m, math.inf, number),
            np.full(m, FINE, np.int8), {},
        )  # fmt: skip
        self.tried: np.ndarray = np.full(m, NOTHING, number)
        self.empty, self.flaw = np.zeros(m, dtype=np.bool_), np.full(m, UNSEEN, np.int8)
        self.culprit = np.full(m, -1)
        self.unjudged: dict[int, str] = {}
        self.is_fixing = np.diff(self.links.in_ends) + np.diff(self.links.out_ends) > 0

    def run(self) -> None:
        """Cells are worked on as soon as many wait: only these are in memory."""
        e, p = self.back_end, len(self.back_end.live)
        state = np.full(p, FREE, dtype=np.int8)
        state[e.inside] = IN
        room = max(1, min(limits().nodes, limits().waiting_bytes // (p + 1), len(self.tree)))
        lined, listed = np.empty((2, room), dtype=np.int64)
        states, cells = np.empty((2, room, p), dtype=np.int8)
        node = 0
        while node >= 0:
            node, n_lined, n_listed = walk(
                self.links, e.position, e.k, node, state, self.flaw, self.culprit, self.empty,
                lined, states, listed, cells,
            )  # fmt: skip
            if n_lined:
                e.fill(Lined(lined[:n_lined], states[:n_lined]), self.proven)
            if n_listed:
                self._enumerate(listed[:n_listed], cells[:n_listed])
        # Fixings that nothing proves may be violated at no cost.
        is_unproven = (self.links.split < 0) | (self.proven.verdict != FINE)
        self.proven.violation[is_unproven & self.is_fixing] = NOTHING

    def _enumerate(self, listed: np.ndarray, cells: np.ndarray) -> None:
        for node, value in zip(listed.tolist(), self.back_end.enumerate(cells), strict=True):
            if isinstance(value, Unjudged):
                self.unjudged[node] = str(value)
            else:
                self.tried[node] = value

    def failures(self) -> list[str]:
        """What is wrong with splits, then with nodes, in their order; not all of it if it is much.

        It does not matter when it was found.
        """
        most, verdict = limits().failures, self.proven.verdict
        baseless = (self.links.split < 0) & self.is_fixing & (self.flaw == SOUND)
        wrong = (self.culprit >= 0) | (verdict == UNCOVERED) | baseless
        wrong[list(self.unjudged)] = True
        texts = [f"split {i}: {reason}" for i, reason in sorted(self.proven.broken.items())]
        for node in np.flatnonzero(wrong)[:most].tolist():
            feature = self.culprit[node]
            if self.flaw[node] == NOT_FREE_TO_BRANCH:
                texts.append(f"node {node}: feature {feature} is not free to branch on")
            elif self.flaw[node] == NOT_FREE_TO_FIX:
                texts.append(f"node {node}: feature {feature} is fixed, but not free")
            elif baseless[node]:
                texts.append(f"node {node}: it fixes {self.noun}s without a proof")
            elif verdict[node] == UNCOVERED:
                split = self.links.split[node]
                texts.append(
                    f"node {node}: split {split} lacks features that are not excluded there"
                )
            if node in self.unjudged:
                texts.append(f"node {node} was not enumerated: {self.unjudged[node]}")
        return texts[:most]

    def evaluate(self) -> None:
        """The value of every node, and what is proven below it."""
        m, number = len(self.tree), self.back_end.number
        self.values: np.ndarray = np.zeros(m, number)
        self.below: np.ndarray = np.full(m, NOTHING, number)
        sides: np.ndarray = np.full((2, self._n_decided), NOTHING, number)
        fill = fill_values if number is float else fill_values.py_func
        own, violation = self.proven[:2]
        fill(
            self.links, own, violation, self.tried, self.empty, self.flaw,
            sides, self.below, self.values,
        )  # fmt: skip

    @property
    def _n_decided(self) -> int:
        """How many features nodes may decide on."""
        return len(self.back_end.position)

    def weakest(self) -> str:
        """A sentence about the node that keeps the root's value down."""
        node, inside, outside = 0, [], 0
        own, violation = self.proven[:2]
        while True:
            inside += self.tree.fixed_in(node).tolist()
            outside += len(self.tree.fixed_out(node))
            if violation[node] <= self.below[node] and violation[node] < math.inf:
                what = "its fixings are proven only to"
                return self._sentence(node, inside, outside, what, float(violation[node]))
            children = self._children(node)
            missing = self._missing_side(children) if children else ""
            if missing:
                return f"node {node} lacks the child {missing}"
            if not children or self.values[node] <= max(own[node], self.tried[node]):
                what = (
                    "its support by support proof gives"
                    if self.tree.enumerated[node]
                    else "it proves"
                )
                return self._sentence(node, inside, outside, what, float(self.values[node]))
            node = min(children, key=lambda child: self.values[child])
            if self.tree.feature[node] >= 0:
                if self.tree.inside[node]:
                    inside.append(int(self.tree.feature[node]))
                else:
                    outside += 1

    def _children(self, node: int) -> list[int]:
        children, child = [], self.links.first[node]
        while child >= 0:
            children.append(int(child))
            child = self.links.following[child]
        return children

    def _missing_side(self, children: list[int]) -> str:
        """Which child is not there, if no branching at the node is complete."""
        sides: dict[int, set[bool]] = {}
        for child in children:
            if self.tree.feature[child] < 0:
                return ""
            found = sides.setdefault(int(self.tree.feature[child]), set())
            found.add(bool(self.tree.inside[child]))
        if any(len(found) == 2 for found in sides.values()):
            return ""
        feature, found = next(iter(sides.items()))
        return f"{'without' if True in found else 'with'} {self.noun} {feature}"

    def _sentence(self, node, inside, outside, what, value) -> str:
        decided = ", ".join(map(str, sorted(inside)[:20])) or "none"
        cell = f"{self.noun}s in: {decided}; {outside} more decided to be out"
        return f"the weakest node is {node} ({cell}): {what} {value:.9g} of y'y"

    def cover(self) -> Cover:
        self.run()
        self.evaluate()
        return Cover(self.values[0], self.failures(), self.weakest())


def cover(certificate: Certificate, back_end: BackEnd) -> Cover:
    return Walk(certificate, back_end).cover()
