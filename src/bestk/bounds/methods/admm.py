"""The paper's ADMM on max h."""

from functools import cached_property

import numpy as np

from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.bounds.kernels.prox import prox_rows
from bestk.bounds.methods.fast import Fast
from bestk.bounds.methods.saddle import saddle_values
from bestk.bounds.node_batch import NodeBatch
from bestk.bounds.split import Split
from bestk.form.standard_form import StandardForm


class Admm:
    """Rows of the batch share each product."""

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.fast = form, split, Fast(form, split, workers)
        self.systems, self.t = self.fast.systems, np.maximum(split.t, 0.0)

    @cached_property
    def twice(self) -> float:
        """2 / rho: the paper's mean of the largest and the smallest positive eigenvalue of Q.

        Where Q has a large null space a share of it.
        """
        eigenvalues = self.systems.eigenvalues()
        positive = eigenvalues[eigenvalues > 1e-6 * eigenvalues[-1]]
        if len(positive) == 0:
            return 1.0
        is_singular = len(positive) < 0.9 * self.form.p
        share = tuning().admm_singular_step if is_singular else 1.0
        return float(np.sqrt(positive[0] * positive[-1])) * share

    def search(self, batch: NodeBatch, k: int, cutoff: float) -> None:
        self.fast.search(batch, k, cutoff)
        if not self.split.is_useful(self.form):
            return
        form, t, twice = self.form, self.t, self.twice
        iterations, check_every = tuning().admm_iterations, tuning().admm_check_every
        self.systems.shift(twice)
        remaining = batch.remaining(k)
        u = form.c - self.systems.product(batch.duals)
        q = np.zeros_like(u)
        new = np.empty_like(u)
        best = np.full(len(u), -np.inf)
        for iteration in range(1, iterations + 1):
            rhs = form.c - u - q
            g = self.systems.solve(rhs)
            Qg = rhs - twice * g
            if iteration % check_every == 0 or iteration == iterations:
                value = saddle_values(form, t, g, Qg, batch.states, remaining)
                batch.keep_better(g, value, best)
                if (best >= cutoff).all():
                    break
            theta = 2.0 * Qg + u - form.c
            v = form.c - theta - q
            prox_rows(v, t, form.lo, form.hi, batch.states, remaining, 2.0 / twice, new)
            q += theta + new - form.c
            u, new = new, u
        batch.multiplies += iteration * form.p**2
