"""Bounds by dual vectors: what a node's own numbers prove.

Theory: split, bound, gain, fix-out, fix-in, cluster-bound.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bestk.results.certificate import SplitRecord
from bestk.verification.evidence import Evidence
from bestk.verification.limits import limits
from bestk.verification.numerics.bounds import LOWER, cell_totals, left
from bestk.verification.numerics.choice import IN, OUT, fill_options, totals
from bestk.verification.numerics.cholesky import is_semidefinite
from bestk.verification.numerics.matrices import Product
from bestk.verification.numerics.rounding import UNIT, fill_gains, gamma
from bestk.verification.ridge_box import Box, value_outside

EMPTY = np.zeros(0, dtype=np.int64)
# Charges above the penalty by less than this are lowered to it.
_SAME = 1.0 + 1e-9
NOT_SEMIDEFINITE = "its matrix A - T is not positive semidefinite"


def lowered(size: int) -> list[float]:
    """What to take off the diagonal of T, in turn, until A - T is positive semidefinite."""
    return [factor * UNIT * (size + 4.0) * (size + 1.0) for factor in LOWER]


class Task(NamedTuple):
    """A node's dual vector (live positions), its cell before the fixings, and the fixings."""

    node: int
    state: np.ndarray
    places: np.ndarray
    dual: np.ndarray
    fixed_in: np.ndarray
    fixed_out: np.ndarray


class Outcome(NamedTuple):
    """Proven values: of the cell, and of all supports that violate some fixing."""

    own: float
    violation: float


class ProvenSplit:
    """A split whose Q = A - T is proven positive semidefinite on the data at hand.

    Models outside of its box, if it has one of its own, are proven to be worth ``outside`` at
    least. Raises ValueError where something cannot be proven.
    """

    def __init__(self, evidence: Evidence, record: SplitRecord) -> None:
        self.evidence = evidence
        place = evidence.position[record.features]
        kept = np.flatnonzero(place >= 0)  # OUT features need no charge: a smaller matrix is enough
        self.features = place[kept]
        self.where = np.full(len(evidence.c), -1)
        self.where[self.features] = np.arange(len(kept))
        self.missing = np.flatnonzero(self.where < 0)
        new = np.full(len(place), -1)
        new[kept] = np.arange(len(kept))
        self.t = np.asarray(record.t, dtype=np.float64)[kept]
        self.clusters, self.matrices = [], []
        for members, T in zip(record.clusters, record.matrices, strict=True):
            stays = np.flatnonzero(new[members] >= 0)
            if len(stays):
                self.clusters.append(new[members][stays])
                T = 0.5 * (T + T.T)[np.ix_(stays, stays)]
                self.matrices.append(np.ascontiguousarray(T, dtype=np.float64))
        self._prove()
        self._take_box(record, kept)
        if self.clusters:
            self.choice = _Choice(self)

    def covers(self, state: np.ndarray) -> bool:
        return bool((state[self.missing] == OUT).all())

    def _prove(self) -> None:
        if len(self.features) == 0:
            return
        t, matrices, A = self.t, self.matrices, self.evidence.A
        penalty = A.penalty(self.features)
        if penalty is not None and not self.clusters and (t <= penalty * _SAME).all():
            self.t = np.minimum(t, penalty)  # what is left are squares
            return
        if len(t) > A.largest:
            raise ValueError(
                f"its charges exceed the penalty alpha, and {len(t)} features are too many for a "
                "matrix in memory"
            )
        for lower in lowered(len(t)):
            self.t = t - lower
            self.t[np.concatenate([EMPTY, *self.clusters])] = 0.0
            self.matrices = [T - lower * np.eye(len(T)) for T in matrices]
            Q = A.block(self.features)
            Q[np.diag_indices(len(Q))] -= self.t
            for members, T in zip(self.clusters, self.matrices, strict=True):
                Q[np.ix_(members, members)] -= T
            if is_semidefinite(Q, max([1, *map(len, self.clusters)])):
                return
        raise ValueError(NOT_SEMIDEFINITE)

    def _take_box(self, record: SplitRecord, kept: np.ndarray) -> None:
        e = self.evidence
        given = Box(e.lo[self.features], e.hi[self.features])
        self.lo, self.hi, self.outside = *given, np.inf
        if len(record.lower) == 0:
            return
        unit = e.to_form[self.features] * (1.0 + 8 * UNIT)
        self.lo = np.maximum(given.lo, np.asarray(record.lower)[kept] * unit)
        self.hi = np.minimum(given.hi, np.asarray(record.upper)[kept] * unit)
        if len(self.features) > e.A.largest:
            raise ValueError(
                f"its box is not proven: {len(self.features)} features are too many for a matrix "
                "in memory"
            )
        A, c = e.A.block(self.features), e.c[self.features]
        self.outside = value_outside(A, c, e.eps, e.k, Box(self.lo, self.hi), given)

    def evaluate(self, tasks: list[Task]) -> list[Outcome]:
        """The bounds of many nodes, with a few matrix products for all of them."""
        step = max(1, limits().gains_entries // (len(self.features) + 1))
        if len(tasks) <= step:
            return self._evaluate(tasks)
        # Nodes with few features left go together: what is out at all of them costs nothing.
        left = [int(np.count_nonzero(task.state != OUT)) for task in tasks]
        order = np.argsort(left, kind="stable").tolist()
        found: dict[int, Outcome] = {}
        for start in range(0, len(tasks), step):
            chosen = order[start : start + step]
            found.update(zip(chosen, self._evaluate([tasks[i] for i in chosen]), strict=True))
        return [found[i] for i in range(len(tasks))]

    def _evaluate(self, tasks: list[Task]) -> list[Outcome]:
        used, G = self._duals(tasks)
        slopes = self._product(used, G)
        # |A|, |c|, |T| <= 1 (or Q is not semidefinite), and products with zeros are exact: with m
        # nonzeros in g a product has fewer than m + 6 roundings, and those of the entries of A.
        m, size = np.count_nonzero(G, axis=1), np.abs(G).sum(axis=1)
        m = m + max([self.evidence.A.n_terms, *map(len, self.clusters)])
        error = 1.01 * (m + 6) * UNIT * (1.0 + 2.0 * size)
        quadratic = np.einsum("ij,ij->i", G, slopes(used))
        lost = size * (error + 1.01 * (m + 6) * UNIT * (1.0 + 4.0 * size)) + 2.0 * self.evidence.eps
        base = 1.0 - quadratic - lost
        states = np.array([task.state[self.features] for task in tasks])
        evaluate = self._blocks if self.clusters else self._diagonal
        outcomes = evaluate(slopes, error, base, states, tasks)
        return [Outcome(*(min(value, self.outside) for value in found)) for found in outcomes]

    def _duals(self, tasks: list[Task]) -> tuple[np.ndarray, np.ndarray]:
        """(features with an entry in some dual vector, the entries, one row for each task)"""
        places = [self.where[task.places] for task in tasks]
        used = np.unique(np.concatenate(places))
        used = used[used >= 0]
        G = np.zeros((len(tasks), len(used)))
        for row, place, task in zip(G, places, tasks, strict=True):
            known = place >= 0
            np.add.at(row, np.searchsorted(used, place[known]), task.dual[known])
        return used, G

    def _product(self, used: np.ndarray, G: np.ndarray) -> Product:
        """Q g for dual vectors with entries G at `used`, at any features of the split."""
        at = self.evidence.A.product(self.features[used], G, self.t[used])
        blocks = np.zeros((len(G), len(self.features) if self.clusters else 0))
        for members, T in zip(self.clusters, self.matrices, strict=True):
            g = np.zeros((len(G), len(self.features)))
            g[:, used] = G
            blocks[:, members] = g[:, members] @ T

        def slopes(where: np.ndarray) -> np.ndarray:
            found = at(self.features[where])
            return found - blocks[:, where] if self.clusters else found

        return slopes

    def _gains(self, slopes: Product, error, states) -> np.ndarray:
        """phi of each node and feature that is not out there, a few features at a time."""
        e, phi = self.evidence, np.zeros(states.shape)
        # The unknown in the data, eps (1 + |b|_1)^2 <= 2 eps + 2 eps k |b|^2, is paid out of t.
        t = self.t - 2.02 * e.eps * e.k
        wanted = np.flatnonzero((states != OUT).any(axis=0))
        for start in range(0, len(wanted), limits().gains_features):
            part = wanted[start : start + limits().gains_features]
            j, gains = self.features[part], np.zeros((len(states), len(part)))
            u, lo, hi = e.c[j] - slopes(part), self.lo[part], self.hi[part]
            fill_gains(u, error, t[part], lo, hi, states[:, part] != OUT, gains)
            phi[:, part] = gains
        return phi

    def _diagonal(self, slopes, error, base, states, tasks) -> list[Outcome]:
        k, phi, outcomes = self.evidence.k, self._gains(slopes, error, states), []
        for i, task in enumerate(tasks):
            best_out = float(phi[i][self.where[task.fixed_out]].max(initial=-1.0))
            weakest_in = -1.0
            if len(task.fixed_in):
                weakest_in = float(phi[i][self.where[task.fixed_in]].min())
            found = cell_totals(phi[i], states[i], k, best_out, weakest_in)
            outcomes.append(Outcome(*(left(base[i], total, k) for total in found)))
        return outcomes

    def _blocks(self, slopes, error, base, states, tasks) -> list[Outcome]:
        e, choice = self.evidence, self.choice
        every = np.arange(len(self.features))
        gains = choice.gains(e.c[self.features] - slopes(every))
        outcomes = []
        for i, task in enumerate(tasks):
            fixed = np.concatenate([self.where[task.fixed_out], self.where[task.fixed_in]])
            forced = np.repeat([IN, OUT], [len(task.fixed_out), len(task.fixed_in)])
            found = choice.totals(gains, i, states[i], e.k, fixed, forced)
            # (x + y)^2 <= (1 + q) x^2 + (1 + 1/q) y^2 with y the part of the error of u.
            unsure = error[i] ** 2 * choice.spread * 1.1e12
            found = np.where(found == -np.inf, -np.inf, found * (1.0 + 1.1e-12) + unsure)
            values = [left(base[i], total, e.k) for total in found]
            outcomes.append(Outcome(values[0], min(values[1:], default=np.inf)))
        return outcomes


class _Choice:
    """The largest sum of u_S' T_S^-1 u_S over supports, cluster by cluster (theory: cluster-bound).

    Quadratic forms come from Cholesky factors of T - zeta I, where zeta exceeds the backward error
    of factorisation and solution, 4 m (m + 3) u for m features. So each of them is exact for a
    matrix between zero and T and therefore not too small. The unknown in the data is part of it.
    """

    def __init__(self, split: ProvenSplit) -> None:
        e = split.evidence
        inside = np.concatenate(split.clusters)
        self.single = np.setdiff1d(np.arange(len(split.features)), inside)
        zeta = 2.02 * e.eps * e.k
        self.t = split.t[self.single] - zeta
        if (self.t <= 0.0).any():
            raise ValueError("its charges are no larger than the rounding errors of the data")
        self.members = inside
        self.first = np.cumsum([0, *map(len, split.clusters)])
        self.owner = np.full(len(split.features), -1)
        self.factors, self.ones, pairs = [], np.zeros(len(inside)), []
        spread = 0.0
        for i, T in enumerate(split.matrices):
            m = len(T)
            self.owner[split.clusters[i]] = i
            T = T - (zeta + 4.04 * m * (m + 3) * UNIT * max(1.0, T.diagonal().max())) * np.eye(m)
            L, failed = lapack.dpotrf(T, lower=1, clean=1)
            if failed:
                raise ValueError("a block of its charges is not positive definite")
            self.factors.append(L)
            self.ones[self.first[i] : self.first[i + 1]] = 1.0 / T.diagonal()
            pairs.append(_pair_factors(T, self.first[i]))
            rough = np.abs(solve_triangular(L, np.eye(m), lower=True)).sum(axis=1)
            spread += 1.1 * float(rough @ rough)
        self.pair_index = np.concatenate([index for index, _ in pairs])
        self.pair_factor = np.concatenate([factor for _, factor in pairs])
        self.first_pair = np.cumsum([0, *(len(index) for index, _ in pairs)])
        self.spread = spread + e.k * 1.01 / float(self.t.min(initial=np.inf))

    def gains(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """u, gains of whole clusters and of single features, one row for each node."""
        whole = np.empty((len(u), len(self.factors)))
        for i, L in enumerate(self.factors):
            members = self.members[self.first[i] : self.first[i + 1]]
            w = solve_triangular(L, u[:, members].T, lower=True)
            whole[:, i] = (w * w).sum(axis=0) * (1.0 + gamma(len(L) + 4))
        return u, whole, u[:, self.single] ** 2 / self.t * (1.0 + 4 * UNIT)

    def totals(self, gains, i: int, state, k: int, fixed, forced) -> np.ndarray:
        """The largest total of node i, then with each of `fixed` forced in or out."""
        u, whole, single = (part[i] for part in gains)
        n = len(self.factors)
        options, price = np.empty((n, 4)), np.empty(n, dtype=np.int64)
        own = np.ascontiguousarray(state, dtype=np.int64)
        given = (
            u, own, self.members, self.first, self.ones, self.pair_index, self.pair_factor,
            self.first_pair, whole,
        )  # fmt: skip
        for cluster in range(n):
            fill_options(*given, cluster, options, price)
        out = np.empty(1 + len(fixed))
        totals(*given, options, price, self.owner, self.single, single, k, fixed, forced, out)
        return np.where(out == -np.inf, out, out * (1.0 + gamma(k + 8)))


def _pair_factors(T: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of all pairs of a cluster, and (1/l11, l21, 1/l22) of their 2 x 2 factors."""
    i, j = np.triu_indices(len(T), 1)
    l11 = np.sqrt(T[i, i])
    l21 = T[i, j] / l11
    rest = T[j, j] - l21 * l21
    if (rest <= 0.0).any():
        raise ValueError("a block of its charges is not positive definite")
    return start + np.column_stack([i, j]), np.column_stack([1.0 / l11, l21, 1.0 / np.sqrt(rest)])
