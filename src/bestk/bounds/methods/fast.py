"""The paper's fast bound: g is the ridge solution on the features that are not out."""

import numpy as np

from bestk.base.threads import Workers
from bestk.bounds.node_batch import NodeBatch
from bestk.bounds.split import Split
from bestk.form.standard_form import StandardForm


class Fast:
    """One linear system for each node."""

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.split = split
        self.systems = form.matrix.systems(form.c, np.maximum(split.t, 0.0))

    def search(self, batch: NodeBatch, k: int, cutoff: float) -> None:
        if self.split.is_positive:
            for state, dual in zip(batch.states, batch.duals, strict=True):
                dual[:] = self.systems.ridge(state)
