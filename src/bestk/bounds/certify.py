"""What dual vectors prove, rounding included: the one place that says so.

Any g gives a bound (theory: bound). Methods only search for a good one; slopes come from the
matrix, with their errors, and the conclusion is the same whatever the matrix is made of.
"""

import numpy as np

from bestk.base.threads import Workers
from bestk.bounds.kernels.conclude import Charges, Known, conclude_rows
from bestk.bounds.node_batch import NodeBatch
from bestk.form.matrix import CAUTION, Slopes
from bestk.form.standard_form import StandardForm


def charges_of(form: StandardForm, t: np.ndarray) -> Charges:
    return Charges(t, form.lo, form.hi)


def slopes_of(form: StandardForm, t: np.ndarray, batch: NodeBatch) -> Slopes:
    """Room for the slopes of a batch."""
    return form.matrix.slopes(form.c, t, form.eps, batch.states)


def certify(
    form: StandardForm,
    t: np.ndarray,
    batch: NodeBatch,
    k: int,
    cutoff: float,
    fixing: bool,
    workers: Workers,
) -> None:
    """Fill batch.bounds with what its duals prove; batch.states gain the fixings."""
    rows, remaining, are_known = np.arange(len(batch)), batch.remaining(k), batch.slopes is not None
    slopes = batch.slopes or slopes_of(form, t, batch)
    if not (are_known or slopes.is_rowwise):
        slopes.set(rows, batch.duals)
        are_known = True
    known = Known(slopes.u, slopes.quadratic, slopes.error, slopes.lost)
    charges, eps = charges_of(form, t), CAUTION * form.eps

    def piece(part: slice) -> None:
        if not are_known:
            slopes.set(rows[part], batch.duals[part])
        conclude_rows(
            known, charges, rows[part], batch.states, remaining, eps, k, cutoff, fixing,
            batch.bounds,
        )  # fmt: skip

    workers.map(piece, workers.slices(len(batch)))
    batch.slopes = None  # large, and of use to nobody else
