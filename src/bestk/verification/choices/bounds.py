"""What dual vectors and multipliers of nodes prove of the choices in their cells.

In coordinates, with Q = W'A W - diag(t) positive semidefinite, for any g and lam,

    f(b) >= 1 - sigma(lam) - g'Q g - sum over chosen groups G of Phi_G,
    Phi_G = sum over j in G of max over v of 2 u_j v - t_j v^2,   u = W'(c - C'lam / 2) - Q g.

A choice has all groups that are IN and at most r others that are FREE: the r largest Phi_G bound
the sum (theory: bound, groups, multipliers). Rules beyond the cell are not used.
"""

from typing import NamedTuple

import numpy as np

from bestk.results.certificate import Certificate, SplitRecord
from bestk.verification.choices.constraints import Constraints
from bestk.verification.choices.coordinates import Coordinates
from bestk.verification.limits import limits
from bestk.verification.nodes import SplitBySplit
from bestk.verification.numerics.bounds import cell_totals, left
from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.numerics.cholesky import is_semidefinite
from bestk.verification.numerics.rounding import UNIT, gamma, largest_gain
from bestk.verification.splits import NOT_SEMIDEFINITE, Outcome, lowered


class Task(NamedTuple):
    """A node: dual vector (live positions), multipliers, its cell before the fixings, fixings."""

    node: int
    state: np.ndarray
    places: np.ndarray
    dual: np.ndarray
    multipliers: np.ndarray
    fixed_in: np.ndarray
    fixed_out: np.ndarray


class Problem(NamedTuple):
    """What all nodes share. Free groups, which are not counted, are ``uncounted``."""

    coordinates: Coordinates
    constraints: Constraints
    uncounted: np.ndarray
    k: int


class ChoiceSplit:
    """A split whose Q is proven positive semidefinite in the coordinates of groups.

    Raises ValueError where it is not, or has parts that are not for groups.
    """

    def __init__(self, problem: Problem, record: SplitRecord) -> None:
        self.problem, x = problem, problem.coordinates
        if len(record.clusters) or len(record.lower):
            raise ValueError("it has clusters or a box, which do not go with groups")
        places = x.evidence.position[record.features]
        live = np.flatnonzero(places >= 0)
        order = live[np.argsort(x.owner[places[live]], kind="stable")]  # group by group
        self.places = places[order]
        self.where = np.full(len(x.c), -1)
        self.where[self.places] = np.arange(len(order))
        self.missing = np.unique(x.owner[x.kept & (self.where < 0)])
        self.groups, self.starts = np.unique(x.owner[self.places], return_index=True)
        self.Q, self.t = self._proven(np.asarray(record.t, dtype=np.float64)[order])

    def _proven(self, charges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        A = self.problem.coordinates.block(self.places)
        size, diagonal = len(A), A.diagonal().copy()
        largest = max(1.0, float(diagonal.max(initial=0.0)))
        for lower in lowered(size):
            t = charges - lower * largest
            A[np.diag_indices(size)] = diagonal - t
            # Sums of a diagonal have one rounding of at most twice its largest entry.
            if size == 0 or is_semidefinite(A.copy(), largest):
                return A, t
        raise ValueError(NOT_SEMIDEFINITE)

    def covers(self, state: np.ndarray) -> bool:
        """Are all coordinates that matter in this cell charged?"""
        return bool((state[self.missing] == OUT).all())

    def evaluate(self, tasks: list[Task]) -> list[Outcome]:
        step = max(1, limits().gains_entries // (len(self.where) + 1))
        found: list[Outcome] = []
        for start in range(0, len(tasks), step):
            found += self._evaluate(tasks[start : start + step])
        return found

    def _evaluate(self, tasks: list[Task]) -> list[Outcome]:
        x, n_groups = self.problem.coordinates, len(tasks[0].state)
        G, w = self._duals(tasks), x.w[self.places]
        states = np.array([task.state for task in tasks])
        lam = np.array([task.multipliers for task in tasks])
        priced = self.problem.constraints.priced(lam, n_groups)
        with np.errstate(all="ignore"):  # what is not finite proves nothing
            slopes = G @ self.Q
            # |W'A W|_ij <= w_i w_j up to rounding, |W'c|_j <= w_j, and t_j <= w_j^2 or Q is not
            # semidefinite; products with zeros are exact.
            m, size = np.count_nonzero(G, axis=1) + 6, np.abs(G) @ w
            error = 1.01 * m * UNIT * (1.0 + 2.1 * size)
            quadratic = np.einsum("ij,ij->i", G, slopes)
            lost = size * (error + 1.01 * m * UNIT * (1.0 + 4.2 * size)) + 2.0 * x.eps
            lost += 8 * UNIT * (1.0 + np.abs(priced.sigma) + np.abs(quadratic))
            base = 1.0 - priced.sigma - quadratic - lost
            u = x.c[self.places] - 0.5 * priced.slopes[:, self.places] - slopes
            unsure = error[:, None] * w + 0.51 * priced.error[:, self.places]
            unsure += 4 * UNIT * np.abs(priced.slopes[:, self.places])
        phi = self._gains(u, unsure, states)
        return [self._outcome(*part) for part in zip(tasks, base, phi + priced.idle, strict=True)]

    def _duals(self, tasks: list[Task]) -> np.ndarray:
        G = np.zeros((len(tasks), len(self.places)))
        for row, task in zip(G, tasks, strict=True):
            at = self.where[task.places]
            np.add.at(row, at[at >= 0], task.dual[at >= 0])
        return G

    def _gains(self, u: np.ndarray, unsure: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Phi of each node and group that is not out there."""
        x, e = self.problem.coordinates, self.problem.coordinates.evidence
        w, totals = x.w[self.places], np.zeros(states.shape)
        if len(self.places) == 0:
            return totals
        # The unknown of the data is paid out of t: see `coordinates`.
        t = self.t - 2.02 * x.eps * x.most * w * w
        phi = largest_gain(u, unsure, t, e.lo[self.places], e.hi[self.places])
        phi[np.isnan(phi)] = np.inf
        phi[states[:, x.owner[self.places]] == OUT] = 0.0
        sizes = np.diff(self.starts, append=len(self.places))
        totals[:, self.groups] = np.add.reduceat(phi, self.starts, axis=1)
        return totals * (1.0 + gamma(int(sizes.max()) + 2))

    def _outcome(self, task: Task, base: float, phi: np.ndarray) -> Outcome:
        """Proven values: of the cell, and of its choices that violate a fixing."""
        state = task.state
        room = self.problem.k + int((state[self.problem.uncounted] == IN).sum())
        out, inside = task.fixed_out, task.fixed_in
        best_out = float(phi[out[state[out] == FREE]].max(initial=-1.0))
        weakest_in = float(phi[inside[state[inside] == FREE]].min(initial=np.inf))
        weakest_in = weakest_in if (state[inside] == FREE).any() else -1.0
        total, violating = cell_totals(phi, state, room, best_out, weakest_in)
        if (state[out] == IN).any() or (state[inside] == OUT).any():
            violating = total  # the whole cell violates it
        count = len(state) + 4
        return Outcome(left(base, total, count), left(base, violating, count))


class ChoiceNodes(SplitBySplit):
    """Bounds of nodes about groups, split by split."""

    def __init__(self, certificate: Certificate, problem: Problem) -> None:
        position = problem.coordinates.evidence.position
        super().__init__(certificate, position, lambda record: ChoiceSplit(problem, record))
        assert certificate.choices is not None
        given, q = certificate.choices.multipliers, len(problem.constraints)
        self.multipliers = given if given.shape[1] else np.zeros((len(given), q))

    def _task(self, node: int, state: np.ndarray) -> Task:
        index, value = self.tree.dual(node)
        place = self.position[index]
        used = place >= 0
        return Task(
            node, state, place[used], value[used].astype(np.float64),
            np.asarray(self.multipliers[node], dtype=np.float64),
            np.asarray(self.tree.fixed_in(node), dtype=np.int64),
            np.asarray(self.tree.fixed_out(node), dtype=np.int64),
        )  # fmt: skip
