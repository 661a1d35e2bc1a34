"""Do the nodes of a proof cover all choices of a structure, and what do they prove together?

As in :mod:`bestk.verification.cover`, about groups: a cell is closed under the rules after the
decision of its node and after its fixings. A cell that holds no choice is worth anything.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.choices.bounds import ChoiceNodes, Problem
from bestk.verification.choices.constrained import Exactly
from bestk.verification.choices.constraints import Constraints
from bestk.verification.choices.coordinates import coordinates_of
from bestk.verification.choices.enumeration import ChoiceEnumeration
from bestk.verification.choices.rules import Rules, close, root_cell, rules_of
from bestk.verification.cover import NOTHING, Cover, Walk
from bestk.verification.evidence import Evidence
from bestk.verification.limits import limits
from bestk.verification.nodes import Lined, Proven
from bestk.verification.numerics.bounds import FINE
from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.numerics.tree import SOUND
from bestk.verification.supports.single import Judge


class _BackEnd:
    """Floating point with rigorous error bounds; see cover.BackEnd."""

    number: Any = float

    def __init__(self, evidence: Evidence, nodes: ChoiceNodes, tried: ChoiceEnumeration) -> None:
        self.k, self.inside = evidence.k, evidence.inside
        self.position, self.live = evidence.position, evidence.live
        self.nodes, self.tried = nodes, tried

        self.allowance = evidence.allowance

    def fill(self, lined: Lined, proven: Proven) -> None:
        self.allowance.check()
        self.nodes.fill(lined, proven)

    def enumerate(self, cells: np.ndarray) -> list[Any]:
        self.allowance.check()
        return self.tried.values(cells)


class _Cells(NamedTuple):
    """A node's cell before and after its fixings; None where it holds no choice."""

    before: np.ndarray | None
    after: np.ndarray | None


class ChoiceWalk(Walk):
    """One pass through a proof about groups."""

    noun = "group"

    def __init__(
        self, certificate: Certificate, back_end: _BackEnd, rules: Rules, root: np.ndarray
    ) -> None:
        super().__init__(certificate, back_end)
        self.rules, self.root = rules, root

    @property
    def _n_decided(self) -> int:
        return len(self.root)

    def run(self) -> None:
        """Depth first. One cell is in memory: decisions are taken back on the way up."""
        lined: list[tuple[int, np.ndarray]] = []
        listed: list[tuple[int, np.ndarray]] = []
        room = max(1, min(limits().nodes, limits().waiting_bytes // (len(self.root) + 1)))
        self.flaw[:] = SOUND
        cell: np.ndarray = self.root.copy()
        # What nodes on the way have decided; None for those that hold no choice.
        decided: list[np.ndarray | None] = []
        node = 0
        while node >= 0:
            is_empty = bool(decided) and decided[-1] is None
            before, after = self._enter(node, None if is_empty else cell)
            self.empty[node] = after is None
            if before is None:
                self.proven.own[node] = np.inf
            elif self.links.split[node] >= 0:
                lined.append((node, before))
            if after is not None and self.links.enumerated[node]:
                listed.append((node, after))
            if len(lined) >= room:
                self._fill(lined)
            if len(listed) >= room:
                self._try(listed)
            if self.links.first[node] >= 0:
                decided.append(None if after is None else np.flatnonzero(after != cell))
                if after is not None:
                    cell[:] = after
                node = int(self.links.first[node])
                continue
            while node >= 0 and self.links.following[node] < 0:
                node = int(self.links.parent[node])
                if node >= 0 and (own := decided.pop()) is not None:
                    cell[own] = FREE
            node = int(self.links.following[node]) if node >= 0 else -1
        self._fill(lined)
        self._try(listed)
        # Fixings that nothing proves may be violated at no cost.
        is_unproven = (self.links.split < 0) | (self.proven.verdict != FINE)
        self.proven.violation[is_unproven & self.is_fixing] = NOTHING

    def _fill(self, lined: list[tuple[int, np.ndarray]]) -> None:
        if lined:
            self.back_end.fill(Lined(*_stacked(lined)), self.proven)
            lined.clear()

    def _try(self, listed: list[tuple[int, np.ndarray]]) -> None:
        if listed:
            self._enumerate(*_stacked(listed))
            listed.clear()

    def _enter(self, node: int, cell: np.ndarray | None) -> _Cells:
        """The cell of a node from that of its parent."""
        if cell is None:
            return _Cells(None, None)
        state, group = cell.copy(), int(self.links.feature[node])
        if group >= 0 and not _decide(state, group, IN if self.links.inside[node] else OUT):
            return _Cells(None, None)
        if not close(self.rules, state):
            return _Cells(None, None)
        before, is_left = state.copy(), True
        for groups, decision in (
            (self.tree.fixed_in(node), IN),
            (self.tree.fixed_out(node), OUT),
        ):
            for group in groups.tolist():
                is_left = is_left and _decide(state, group, decision)
        return _Cells(before, state if is_left and close(self.rules, state) else None)

    def failures(self) -> list[str]:
        """Also nodes that are said to hold no choice, but may hold some."""
        assert self.certificate.choices is not None
        claimed = np.asarray(self.certificate.choices.broken) != -1
        texts = [
            f"node {node} is not empty by the rules, as it is said to be"
            for node in np.flatnonzero(claimed & ~self.empty)[: limits().failures].tolist()
        ]
        return [*super().failures(), *texts][: limits().failures]


def _decide(state: np.ndarray, group: int, decision: int) -> bool:
    """Take a decision; False where the opposite is known already."""
    if state[group] == FREE:
        state[group] = decision
    return bool(state[group] == decision)


def _stacked(rows: list[tuple[int, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([node for node, _ in rows]), np.array([state for _, state in rows])


def cover_choices(
    certificate: Certificate,
    evidence: Evidence,
    judge: Judge,
    exactly: Exactly,
    target: float,
    pool: ThreadPoolExecutor | None,
) -> tuple[Cover, int]:
    """(what the tree proves, the number of supports tried); Unfit where it is about other data."""
    assert certificate.structure is not None
    rules, root = rules_of(certificate), root_cell(certificate)
    coordinates = coordinates_of(certificate, evidence, root)
    constraints = Constraints(certificate, coordinates)
    uncounted = certificate.structure.groups_of(certificate.free)
    most = min(int(certificate.k), len(root))
    problem = Problem(coordinates, constraints, uncounted, most)
    nodes = ChoiceNodes(certificate, problem)
    enumeration = ChoiceEnumeration(rules, coordinates, constraints, judge, exactly, target, pool)
    back_end = _BackEnd(evidence, nodes, enumeration)
    found = ChoiceWalk(certificate, back_end, rules, root).cover()
    return found, enumeration.n_supports
