"""Positive semidefinite matrices, proven."""

import numpy as np
from scipy.linalg import lapack

from bestk.verification.numerics.rounding import UNIT, gamma


def is_semidefinite(Q: np.ndarray, roundings: float = 1.0) -> bool:
    """Cholesky runs through after a shift that exceeds its backward error (Rump, theory: definite).

    Entries of Q, which is overwritten, are known up to 4 * `roundings` times the unit roundoff.
    """
    diagonal = Q.diagonal()
    if (diagonal <= 0.0).any():
        return False
    shift = gamma(len(Q) + 3) * float(diagonal.sum()) + 4 * UNIT * roundings
    Q[np.diag_indices(len(Q))] -= shift
    return lapack.dpotrf(Q.T, lower=1, clean=0, overwrite_a=1)[1] == 0
