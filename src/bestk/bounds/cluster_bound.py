"""Bounds by a split with clusters: a smooth ascent for the dual vector, then what it proves."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from bestk.base.constants import FREE, OUT, UNIT_ROUNDOFF
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.clusters import ClusterSplit, cluster_split
from bestk.bounds.kernels.choice import Options
from bestk.bounds.kernels.cluster_ascent import Clusters, begin, climb, prove, work_for
from bestk.bounds.node_batch import NodeBatch, rounded
from bestk.form.matrix import CAUTION
from bestk.form.standard_form import StandardForm

# The least value that temperatures refer to.
_LEAST = 1e-9


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
        ones, ratios, rests, inverses = [], [], [], []
        for T in self.split.matrices:
            T = T - self.shift * np.eye(len(T))
            x, distance = np.arange(len(T)), np.arange(1, len(T) // 2 + 1)
            y = (x + distance[:, None]) % len(T)
            ratio = T[x, y] / T[x, x]
            ones.append(1.0 / T.diagonal())
            ratios.append(ratio.ravel())
            rests.append((1.0 / (T[y, y] - T[x, y] * ratio)).ravel())
            inverses.append(np.linalg.inv(T).ravel())
        return Options(
            members=np.concatenate(clusters),
            first=first,
            ones=np.concatenate(ones),
            first_pair=np.cumsum([0, *map(len, ratios)]),
            ratios=np.concatenate(ratios),
            rests=np.concatenate(rests),
            first_inverse=np.cumsum([0, *map(len, inverses)]),
            inverses=np.concatenate(inverses),
            single=self.split.single,
            inverse_t=1.0 / (self.split.t - self.shift),
        )

    @cached_property
    def clusters(self) -> Clusters:
        """All that the kernels need."""
        form, split = self.form, self.split
        return Clusters(
            Q=split.Q,
            c=form.c,
            options=self.options,
            floor=split.floor - self.shift,
            largest=max(len(cluster) for cluster in split.clusters),
            eps=CAUTION * form.eps,
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
        work = work_for(self.clusters, k, now.cluster_memory)
        for temperature in temperatures:
            mu = temperature * max(value, _LEAST)
            begin(self.clusters, work, g, state, k, mu)
            terms = state, k, mu, cutoff, closeness, now.cluster_steps_at_once
            for _ in range(now.cluster_steps // now.cluster_steps_at_once):
                if climb(self.clusters, work, *terms) or stop():
                    break
            g = work.here.g.copy()
            if work.here.values[1] >= cutoff or stop():
                break
        return g

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
        """(bound, bound for each feature forced in), valid in floating point."""
        with_feature, work = np.empty(self.form.p), work_for(self.clusters, k, 0)
        bound = prove(self.clusters, work, g, state, k, np.inf, with_feature)
        return bound, with_feature
