"""The paper's optional bound: subgradient ascent."""

import numpy as np

from bestk.base.constants import OUT
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.methods.fast import Fast
from bestk.bounds.methods.saddle import inner_minimiser, saddle_values
from bestk.bounds.node_batch import NodeBatch
from bestk.bounds.split import Split
from bestk.form.standard_form import StandardForm


class Subgradient:
    """Subgradient ascent on h with CMF directions."""

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.fast = form, split, Fast(form, split, workers)
        self.systems, self.t = self.fast.systems, np.maximum(split.t, 0.0)

    def search(self, batch: NodeBatch, k: int, cutoff: float) -> None:
        self.fast.search(batch, k, cutoff)
        if not self.split.is_useful(self.form):
            return
        form, t, remaining = self.form, self.t, batch.remaining(k)
        iterations = tuning().subgradient_iterations
        smoothing = tuning().subgradient_smoothing
        g = batch.duals.copy()
        direction = np.zeros_like(g)
        best = np.full(len(g), -np.inf)
        # The paper estimates max h by the incumbent's loss; the cutoff is that loss less gap_tol.
        goal = cutoff
        for _ in range(iterations):
            Qg = self.systems.product(g)
            value = saddle_values(form, t, g, Qg, batch.states, remaining)
            batch.keep_better(g, value, best)
            if (best >= cutoff).all():
                break
            away = inner_minimiser(form, t, form.c - Qg, batch.states, remaining) - g
            slope = 2.0 * self.systems.product(away)
            slope[batch.states == OUT] = 0.0
            length = np.einsum("ij,ij->i", direction, direction)
            product = np.einsum("ij,ij->i", direction, slope)
            s = np.where(
                length > 0,
                np.maximum(0.0, -smoothing * product / np.maximum(length, 1e-300)),
                0.0,
            )
            direction = slope + s[:, None] * direction
            length = np.einsum("ij,ij->i", direction, direction)
            g = (
                g
                + np.where(length > 0, (goal - value) / np.maximum(length, 1e-300), 0.0)[:, None]
                * direction
            )
        batch.multiplies += iterations * form.p**2
