"""A split with blocks: alike features are charged together (theory eqs. 14 to 16).

Where features are strongly correlated a diagonal split has next to nothing to charge: each of them
is nearly explained by its neighbours. A cluster of neighbours as a whole is not. Taking T block
diagonal over such clusters and choosing inside each exactly gives bounds that are out of reach for
any diagonal.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve, solve_triangular

from bestk.base.constants import FREE, OUT, UNIT_ROUNDOFF
from bestk.base.threads import Workers
from bestk.bounds.choice import choose
from bestk.bounds.node_batch import Batch, rounded
from bestk.bounds.split import is_positive_semidefinite, smallest_eigenvalue
from bestk.form.standard_form import StandardForm
from bestk.supports.beam import beam_supports

_MAX_SEEDS = 40
# A feature that gains less than this share of the best one does not lead a cluster.
_SEED_GAIN = 0.02
_WIDTHS = (2, 6, 16, 48)
# Features less correlated with the seed than this stay outside its cluster.
_ALIKE = 0.1
# Share of the possible charge that followers get; the less, the more is left for the seeds.
_FOLLOWERS = 0.5
# Charges smaller than this are not worth their rounding allowance.
_SMALLEST = 1e-4
# Temperatures of the smoothed maximum, relative to the incumbent's value; then the exact one.
_TEMPERATURES: tuple[float, ...] = (1e-2, 1e-3)
_COLD = 1e-9
_MEMORY = 12
# A step that gains less than this share of what is missing to the cutoff is the last one: at the
# root, and at other nodes, which start from their parent's dual vector.
_CLOSENESS, _NODE_CLOSENESS = 1e-3, 1e-2


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockSplit:
    """A proven split A = Q + T: Q positive semidefinite, T block diagonal.

    ``clusters`` are disjoint index arrays with their blocks of T; the features ``single`` have the
    charges ``t``. ``floor`` is a lower bound on the eigenvalues of T.
    """

    Q: np.ndarray = field(repr=False)
    clusters: list[np.ndarray]
    matrices: list[np.ndarray] = field(repr=False)
    single: np.ndarray = field(repr=False)
    t: float
    floor: float

    @property
    def charges(self) -> np.ndarray:
        """t for the single features, zero for members of clusters."""
        charges = np.zeros(len(self.Q))
        charges[self.single] = self.t
        return charges


def block_split(form: StandardForm, smallest: float) -> BlockSplit | None:
    """Clusters around the most useful features and a proven split over them, or None.

    `smallest` is a proven lower bound on the eigenvalues of A.
    """
    if smallest <= 0.0:
        return None
    seeds = _seeds(form)
    if len(seeds) == 0:
        return None
    best, best_score = None, 0.0
    for width in _WIDTHS:
        clusters = _clusters(form.A, seeds, width)
        charges = _charges(form.A, clusters, 0.5 * smallest)
        score = 0.0 if charges is None else float(np.mean([T[0, 0] for T in charges]))
        if score <= best_score:
            break
        best, best_score = (clusters, charges), score
    if best is None:
        return None
    return _proven(form.A, *best, 0.5 * smallest, form.eps)


def block_bound(form: StandardForm, smallest: float) -> "BlockBound | None":
    """The bound by a block split, if there is one whose charges outweigh the errors of the data."""
    split = block_split(form, smallest)
    if split is None:
        return None
    bound = BlockBound(form, split)
    return bound if split.floor > 2.0 * bound.shift else None


def _seeds(form: StandardForm) -> np.ndarray:
    """Features that gain much in greedy selection."""
    order = beam_supports(form, np.zeros(0, dtype=np.intp), _MAX_SEEDS, width=1)[0]
    A = form.A[np.ix_(order, order)] + 1e-10 * np.eye(len(order))
    gains = solve_triangular(np.linalg.cholesky(A), form.c[order], lower=True) ** 2
    return order[gains >= _SEED_GAIN * max(gains.max(), 1e-12)]


def _clusters(A: np.ndarray, seeds: np.ndarray, width: int) -> list[np.ndarray]:
    """Each seed with the features most like it; a feature goes to the seed it is most like."""
    likeness = np.abs(A[seeds])
    owner = np.argmax(likeness, axis=0)
    owner[seeds] = np.arange(len(seeds))
    clusters = []
    for i, seed in enumerate(seeds):
        mine = np.flatnonzero((owner == i) & (likeness[i] >= _ALIKE))
        mine = mine[mine != seed]
        order = np.argsort(-likeness[i, mine], kind="stable")[:width]
        clusters.append(np.concatenate([[seed], mine[order]]))
    return clusters


def _charges(A: np.ndarray, clusters: list[np.ndarray], t: float) -> list[np.ndarray] | None:
    """Blocks T with A - T - t (on all others) positive semidefinite, large at the seeds.

    What the others leave of A on the clusters is a Schur complement M. In coordinates where its
    diagonal blocks are the identity, followers are charged a fixed share and seeds all the rest.
    """
    inside = np.concatenate(clusters)
    others = np.setdiff1d(np.arange(len(A)), inside)
    M = A[np.ix_(inside, inside)]
    try:
        if len(others):
            factor = cho_factor(A[np.ix_(others, others)] - t * np.eye(len(others)), lower=True)
            M = M - A[np.ix_(inside, others)] @ cho_solve(factor, A[np.ix_(others, inside)])
        ends = np.cumsum([len(cluster) for cluster in clusters])
        parts = [slice(end - len(c), end) for end, c in zip(ends, clusters, strict=True)]
        L = [np.linalg.cholesky(M[part, part]) for part in parts]
        inverse = block_diag(*[solve_triangular(x, np.eye(len(x)), lower=True) for x in L])
        N = inverse @ M @ inverse.T
        seeds = np.array([part.start for part in parts])
        rest = np.setdiff1d(np.arange(len(N)), seeds)
        D = np.empty(len(N))
        D[rest] = _FOLLOWERS * smallest_eigenvalue(N)
        left = N[np.ix_(seeds, seeds)]
        if len(rest):
            factor = cho_factor(N[np.ix_(rest, rest)] - np.diag(D[rest]), lower=True)
            left = left - N[np.ix_(seeds, rest)] @ cho_solve(factor, N[np.ix_(rest, seeds)])
        D[seeds] = np.linalg.eigvalsh(left)[0]
    except (LinAlgError, np.linalg.LinAlgError):
        return None
    if D.min() <= 0.0:
        return None
    return [(x * D[part]) @ x.T for x, part in zip(L, parts, strict=True)]


def _proven(A, clusters, charges, t, error) -> BlockSplit | None:
    single = np.setdiff1d(np.arange(len(A)), np.concatenate(clusters))
    for share in (0.999, 0.99, 0.9):
        matrices = [share * 0.5 * (T + T.T) for T in charges]
        Q = A.copy()
        for cluster, T in zip(clusters, matrices, strict=True):
            Q[np.ix_(cluster, cluster)] -= T
        Q[single, single] -= t
        if is_positive_semidefinite(Q, np.zeros(len(A)), error):
            break
    else:
        return None
    floor = min([t, *(np.linalg.eigvalsh(T)[0] for T in matrices)])
    # Rounding in the entries of Q and in the eigenvalues.
    floor -= 1e-13
    if floor < _SMALLEST:
        return None
    return BlockSplit(
        Q=Q, clusters=clusters, matrices=matrices, single=single, t=t, floor=float(floor)
    )


class BlockBound:
    """max over g of  1 - g'Qg - max over supports of  sum of u_S' T_S^-1 u_S,  u = c - Q g."""

    steps = 60  # at most, for each temperature

    def __init__(self, form: StandardForm, split: BlockSplit) -> None:
        self.form, self.split = form, split
        self.helped = False  # to exclude features, for another k
        # What is unknown about the data (2 eps k, k <= p) and rounding of Q are paid out of T.
        self.shift = 2.0 * form.eps * form.p + 128 * UNIT_ROUNDOFF

    @cached_property
    def options(self) -> tuple[Any, ...]:
        """Flat arrays for the kernel: members, pairs with 2 x 2 inverses, whole inverses."""
        clusters = self.split.clusters
        first = np.cumsum([0, *map(len, clusters)])
        ones, pairs, pair_inverses, inverses = [], [], [], []
        for start, T in zip(first[:-1], self.split.matrices, strict=True):
            T = T - self.shift * np.eye(len(T))
            i, j = np.triu_indices(len(T), 1)
            determinant = T[i, i] * T[j, j] - T[i, j] ** 2
            ones.append(1.0 / T.diagonal())
            pairs.append(start + np.array([i, j]))
            pair_inverses.append(np.array([T[j, j], -T[i, j], T[i, i]]) / determinant)
            inverses.append(np.linalg.inv(T).ravel())
        return (
            np.concatenate(clusters),
            first,
            np.concatenate(ones),
            np.concatenate(pairs, axis=1),
            np.concatenate(pair_inverses, axis=1),
            np.cumsum([0, *(x.shape[1] for x in pairs)]),
            np.concatenate(inverses),
            np.cumsum([0, *map(len, inverses)]),
            self.split.single,
            1.0 / (self.split.t - self.shift),
        )

    def maximise(
        self,
        state: np.ndarray,
        k: int,
        value: float,
        cutoff: float,
        stop: Callable[[], bool] = lambda: False,
        start: np.ndarray | None = None,
    ) -> np.ndarray:
        """A good g by quasi-Newton steps in the metric of Q on the smoothed bound."""
        g, closeness, temperatures = start, _NODE_CLOSENESS, _TEMPERATURES[-1:]
        if g is None:
            g, closeness, temperatures = np.zeros(self.form.p), _CLOSENESS, _TEMPERATURES
        for temperature in temperatures:
            mu = temperature * max(value, _COLD)
            g, bound = self._ascend(g, state, k, mu, cutoff, closeness, stop)
            if bound >= cutoff or stop():
                break
        return g

    def _ascend(self, g, state, k, mu, cutoff, closeness, stop):
        Q = self.split.Q
        Qg = Q @ g
        bound, gradient = self._smooth(g, Qg, state, k, mu)
        memory: list[tuple] = []
        for _ in range(self.steps):
            if bound >= cutoff or stop():
                break
            step = _two_loops(gradient, memory)
            Qstep = Q @ step
            slope = 2.0 * float(Qstep @ gradient)
            length = 1.0
            while True:
                new_g, Qnew = g + length * step, Qg + length * Qstep
                new, new_gradient = self._smooth(new_g, Qnew, state, k, mu)
                if new >= bound + 1e-4 * length * slope or length < 1e-3:
                    break
                length *= 0.4
            y = gradient - new_gradient
            Qy = Q @ y
            curvature = length * float(step @ Qy)
            if curvature > 0.0:
                pair = (length * step, y, length * Qstep, Qy, 1.0 / curvature)
                memory = [*memory[1 - _MEMORY :], pair]
            gained = new - bound
            if gained > 0.0:
                g, bound, gradient, Qg = new_g, new, new_gradient, Qnew
            if gained < closeness * abs(cutoff - bound):
                break
        return g, bound

    def _smooth(self, g, Qg, state, k, mu):
        """(value, gradient in the metric of Q up to a factor 2) of the smoothed bound."""
        b, nothing = np.zeros(len(g)), np.zeros(0)
        u = self.form.c - Qg
        total = choose(u, state, *self.options, k, mu, b, nothing)  # type: ignore[call-arg]
        return 1.0 - float(g @ Qg) - total, b - g

    def bound_and_fix(
        self, batch: Batch, k: int, value: float, cutoff: float, workers: Workers
    ) -> None:
        """Bound every node of a batch from its warm start, as bounds.bound_and_fix does."""

        def row(i: int) -> None:
            state = batch.states[i]
            g = rounded(self.maximise(state, k, value, cutoff, start=batch.duals[i]))
            batch.duals[i] = g
            batch.bounds[i], with_feature = self.certify(g, state, k)
            batch.work[i] = 20 * len(g) ** 2
            if batch.bounds[i] < cutoff:
                state[(state == FREE) & (with_feature >= cutoff)] = OUT

        workers.map(row, range(len(batch.states)))

    def certify(self, g: np.ndarray, state: np.ndarray, k: int) -> tuple[float, np.ndarray]:
        """(bound, bound for each feature forced in), valid in floating point (theory eq. 16)."""
        form, split = self.form, self.split
        Qg = split.Q @ g
        g1 = float(np.abs(g).sum())
        p = form.p
        err_u = (p + 6) * UNIT_ROUNDOFF * (1.0 + 2.0 * g1) + form.eps * (1.0 + g1)
        err_q = g1 * (err_u + (p + 6) * UNIT_ROUNDOFF * (4.0 + 4.0 * g1))
        with_feature = np.empty(p)
        u, b = form.c - Qg, np.zeros(p)
        total = choose(u, state, *self.options, k, _COLD, b, with_feature)  # type: ignore[call-arg]
        floor = split.floor - self.shift
        m = max(len(cluster) for cluster in split.clusters)
        relative = UNIT_ROUNDOFF * (64.0 / floor**2 + 8.0 * m**3 / floor) + 1e-12

        def lowered(gain):
            # |u| enters through a norm with eigenvalues up to 1 / floor, at most p entries of it.
            root = np.sqrt(np.maximum(gain, 0.0) * (1.0 + relative)) + err_u * np.sqrt(p / floor)
            sums = root**2
            loss = err_q + 2.0 * form.eps + (p + 12) * UNIT_ROUNDOFF * (4.0 + sums)
            return 1.0 - float(g @ Qg) - sums - loss

        return float(lowered(total)), lowered(with_feature)


def _two_loops(gradient, memory):
    """The L-BFGS direction in the metric of Q; memory holds (s, y, Qs, Qy, 1 / s'Qy)."""
    direction = gradient.copy()
    weights = []
    for _, y, Qs, _, inverse in reversed(memory):
        weights.append(inverse * float(Qs @ direction))
        direction -= weights[-1] * y
    if memory:
        _, y, Qs, Qy, _ = memory[-1]
        direction *= float(Qs @ y) / float(Qy @ y)
    else:
        direction *= 0.2
    for (s, _, _, Qy, inverse), weight in zip(memory, reversed(weights), strict=True):
        direction += (weight - inverse * float(Qy @ direction)) * s
    return direction
