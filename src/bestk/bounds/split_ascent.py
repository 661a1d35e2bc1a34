"""A diagonal that improves while the tree grows, fitted to its open nodes."""

from collections.abc import Callable

import numpy as np

from bestk.base.constants import FREE
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.certify import certify
from bestk.bounds.methods.descent import Descent
from bestk.bounds.node_batch import NodeBatch
from bestk.bounds.split import Split
from bestk.form.definiteness import cholesky_factor, is_positive_semidefinite
from bestk.form.standard_form import StandardForm


class SplitAscent:
    """Improves a split: ascent on  mean bound(t) + mu logdet(A - diag t).

    The relaxation value of a node is concave in t with gradient b_j^2 (1/z_j - 1) (theory: ascent).
    A step costs one inverse and a warm-started relaxation of each sample node; mu shrinks from
    step to step.
    """

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split = form, split
        # Of small problems a few nodes are done before other threads have begun.
        self.workers = workers if form.p >= tuning().thread_features else Workers(1)

    def improve(
        self,
        states: np.ndarray,
        duals: np.ndarray,
        k: int,
        cutoff: float,
        stop: Callable[[], bool] = lambda: False,
    ) -> Split:
        """A better split for nodes like these: proven, or the old one, as after a stop."""
        if not self.split.is_positive:
            return self.split
        nodes = NodeBatch.of(states.copy(), duals.copy(), np.zeros(len(states)))
        values = [(self._mean_bound(nodes, self.split.t, k, cutoff), self.split.t)]
        # The old split lies next to the boundary, where steps are short: back off a little.
        t, weight, scale, length = 0.95 * self.split.t, tuning().ascent_weight, 0.0, 1.0
        factor = cholesky_factor(self.form.A, t)
        for _ in range(tuning().ascent_steps):
            values.append((self._mean_bound(nodes, t, k, cutoff), t))
            gradient = self._gradient(nodes, t)
            if stop():
                return self.split
            if factor is None or not gradient.any():
                break
            barrier, squares = factor.inverse_sums()
            scale = scale or barrier.sum()
            mu = weight * gradient.sum() / scale
            step = (gradient - mu * barrier) / (mu * squares)
            t, factor, length = self._step(t, step, length)
            weight *= tuning().ascent_shrink
        values.append((self._mean_bound(nodes, t, k, cutoff), t))
        for _, t in sorted(values, key=lambda pair: -pair[0]):
            if t is self.split.t or is_positive_semidefinite(self.form.A, t, self.form.eps):
                self.split = Split(t=t)
                break
        return self.split

    def _mean_bound(self, nodes: NodeBatch, t: np.ndarray, k: int, cutoff: float) -> float:
        """Of all nodes, whose relaxations are solved on from where they are."""
        form, workers = self.form, self.workers
        method = Descent(form, Split(t=t), workers, sweeps=tuning().ascent_sweeps)
        method.search(nodes, k, cutoff)
        certify(form, t, nodes, k, np.inf, False, workers)
        return float(np.mean(nodes.bounds))

    def _gradient(self, nodes: NodeBatch, t: np.ndarray) -> np.ndarray:
        """Of the mean bound, from the relaxations as they are."""
        form, b = self.form, nodes.duals
        levels = nodes.levels[:, None]
        knee = np.minimum(levels / np.sqrt(t), np.where(b > 0, form.hi, -form.lo))
        moved = (nodes.states == FREE) & (b != 0.0) & (levels > 0.0)
        z = np.clip(np.abs(b[moved]) / knee[moved], 1e-12, 1.0)
        gradient = np.zeros_like(b)
        gradient[moved] = b[moved] ** 2 * (1.0 / z - 1.0)
        return gradient.mean(axis=0)

    def _step(self, t: np.ndarray, step: np.ndarray, length: float):
        """One step of the ascent, scaled by row sums of the barrier's Hessian, inverse squared.

        Returns the new t, the factor of A - diag(t), and how much of the next step to try first:
        each try costs a factor.
        """
        for _ in range(10):
            candidate = np.maximum(t + length * step, 1e-6 * t.mean())
            factor = cholesky_factor(self.form.A, candidate)
            if factor is not None:
                return candidate, factor, min(2.0 * length, 1.0)
            length *= 0.5
        return t, cholesky_factor(self.form.A, t), length
