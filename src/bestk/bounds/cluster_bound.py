"""Bounds by a split with clusters: a smooth ascent for the dual vector, then what it proves."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from bestk.base.constants import FREE, OUT, UNIT_ROUNDOFF
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.clusters import ClusterSplit, cluster_split
from bestk.bounds.kernels.choice import Options, choose
from bestk.bounds.kernels.conclude import proven
from bestk.bounds.node_batch import NodeBatch, rounded
from bestk.form.dense import slope_errors
from bestk.form.matrix import CAUTION
from bestk.form.standard_form import StandardForm

# Temperature of the exact maximum, and least value that temperatures refer to.
_COLD = 1e-9


def cluster_bound(form: StandardForm, smallest: float) -> "ClusterBound | None":
    """The bound by a split with clusters, if its charges outweigh the errors of the data."""
    split = cluster_split(form, smallest)
    if split is None:
        return None
    bound = ClusterBound(form, split)
    return bound if split.floor > 2.0 * bound.shift else None


class ClusterBound:
    """max over g of  1 - g'Qg - max over supports of  sum of u_S' T_S^-1 u_S,  u = c - Q g."""

    def __init__(self, form: StandardForm, split: ClusterSplit) -> None:
        self.form, self.split = form, split
        # What is unknown about the data (2 eps k, k <= p) and rounding of Q are paid out of T.
        self.shift = 2.0 * CAUTION * form.eps * form.p + 128 * UNIT_ROUNDOFF

    @cached_property
    def options(self) -> Options:
        """Clusters as the kernel wants them."""
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
        return Options(
            members=np.concatenate(clusters),
            first=first,
            ones=np.concatenate(ones),
            pairs=np.concatenate(pairs, axis=1),
            pair_inverses=np.concatenate(pair_inverses, axis=1),
            first_pair=np.cumsum([0, *(x.shape[1] for x in pairs)]),
            inverses=np.concatenate(inverses),
            first_inverse=np.cumsum([0, *map(len, inverses)]),
            single=self.split.single,
            inverse_t=1.0 / (self.split.t - self.shift),
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
        now = tuning()
        temperatures = now.cluster_temperatures
        if start is None:
            g, closeness = np.zeros(self.form.p), now.cluster_closeness
        else:
            g, closeness, temperatures = start, now.cluster_node_closeness, temperatures[-1:]
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
        for _ in range(tuning().cluster_steps):
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
                memory = [*memory[1 - tuning().cluster_memory :], pair]
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
        total = choose(self.options, u, state, k, mu, b, nothing)
        return 1.0 - float(g @ Qg) - total, b - g

    def bound_and_fix(
        self, batch: NodeBatch, k: int, value: float, cutoff: float, workers: Workers
    ) -> None:
        """Bound every node of a batch from its warm start, as `certify` does for a diagonal."""

        def row(i: int) -> None:
            state = batch.states[i]
            g = rounded(self.maximise(state, k, value, cutoff, start=batch.duals[i]))
            batch.duals[i] = g
            batch.bounds[i], with_feature = self.certify(g, state, k)
            batch.multiplies[i] = tuning().cluster_node_evaluations * len(g) ** 2
            if batch.bounds[i] < cutoff:
                state[(state == FREE) & (with_feature >= cutoff)] = OUT

        workers.map(row, range(len(batch.states)))

    def certify(self, g: np.ndarray, state: np.ndarray, k: int) -> tuple[float, np.ndarray]:
        """(bound, bound for each feature forced in), valid in floating point.

        See theory: cluster-rounding.
        """
        form, split = self.form, self.split
        p, eps = form.p, CAUTION * form.eps
        Qg = split.Q @ g
        quadratic = float(g @ Qg)
        error, lost = slope_errors(p + 6, float(np.abs(g).sum()), eps)
        with_feature = np.empty(p)
        u, b = form.c - Qg, np.zeros(p)
        total = choose(self.options, u, state, k, _COLD, b, with_feature)
        floor = split.floor - self.shift
        m = max(len(cluster) for cluster in split.clusters)
        relative = UNIT_ROUNDOFF * (64.0 / floor**2 + 8.0 * m**3 / floor) + 1e-12

        # |u| enters through a norm with eigenvalues up to 1 / floor, at most p entries of it.
        gains = np.maximum(np.append(with_feature, total), 0.0)
        root = np.sqrt(gains * (1.0 + relative)) + error * np.sqrt(p / floor)
        bounds = proven(quadratic, root**2, lost, eps, p)
        return float(bounds[-1]), bounds[:-1]


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
