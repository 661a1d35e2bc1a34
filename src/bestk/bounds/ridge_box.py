"""Boxes that need no assumption: how far a coefficient can be from the ridge solution.

f falls to its minimum over all features, the ridge solution, and rises from there. Holding one
coefficient elsewhere costs a square: f(b) >= f_ridge + (b_j - bhat_j)^2 / (A^-1)_jj (theory:
ridge-profile). Models below the cutoff lie where that is below the cutoff, too.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.form.matrix import CAUTION
from bestk.form.standard_form import StandardForm

# Boxes are wider than necessary by this share, and by several times what rounding can do: whoever
# checks them rounds in another way.
_MARGIN, _ROUNDINGS = 1e-6, 4.0


class Box(NamedTuple):
    lo: np.ndarray
    hi: np.ndarray


def ridge_box(form: StandardForm, smallest: float, k: int, cutoff: float) -> Box | None:
    """A box that holds all models of k features with a value below `cutoff`, which is at most 1.

    `smallest` is a proven lower bound on the eigenvalues of A. None where it is next to nothing, or
    where the box of the form is narrower everywhere.
    """
    p = form.p
    # The data error eps (1 + sum |b_j|)^2 <= 2 eps + 2 eps k b'b is paid out of A.
    error = CAUTION * form.eps
    shift = 2.0 * error * k
    smallest = smallest - shift
    if smallest <= shift:
        return None
    A = form.A.copy()
    A[np.diag_indices(p)] -= shift
    inverse = _inverse(A)
    if inverse is None:
        return None
    ridge, width = inverse @ form.c, inverse.diagonal()
    for _ in range(2):  # an inverse alone leaves more than rounding
        ridge = ridge + inverse @ (form.c - A @ ridge)
    # For any g, f(b) >= 1 - g'Ag - 2 (c - Ag)'b. With g = ridge + mu w_j, w_j a row of the inverse,
    # c - Ag = -mu e_j up to rounding, which |b| multiplies: no longer than this, as f(b) < 1.
    rounding = (2 * p + 16) * UNIT_ROUNDOFF
    size = 1.0 + np.abs(ridge).sum()
    rest = np.linalg.norm(form.c - A @ ridge) + np.sqrt(p) * rounding * size
    least = 1.0 - ridge @ form.c - size * rest - rounding * size**2 - 2.0 * error
    if cutoff <= least:
        return None  # no model is below the cutoff: the search will see that soon
    longest = np.linalg.norm(ridge) + 2.0 * rest / smallest + np.sqrt((1.0 - least) / smallest)
    sums = np.abs(inverse).sum(axis=0)
    wrong = np.sqrt(((A @ inverse - np.eye(p)) ** 2).sum(axis=0))
    wrong += np.sqrt(p) * rounding * (1.0 + sums)
    # Holding b_j at the distance d from the ridge solution costs d^2 / width, less what is unknown.
    reach = np.sqrt((cutoff - least) * width)
    mu = reach / width
    unknown = rounding * ((size + mu * sums) ** 2 + mu * (reach + np.abs(ridge)))
    unknown += 2.0 * (rest + mu * wrong) * longest + shift * longest**2
    unknown *= _ROUNDINGS
    reach = (1.0 + _MARGIN) * np.sqrt((cutoff - least + unknown) * width)
    reach[unknown > cutoff - least] = np.inf  # rounding would decide
    box = Box(
        lo=np.maximum(form.lo, np.minimum(ridge - reach, 0.0)),
        hi=np.minimum(form.hi, np.maximum(ridge + reach, 0.0)),
    )
    return box if (box.lo > form.lo).any() or (box.hi < form.hi).any() else None


def _inverse(A: np.ndarray) -> np.ndarray | None:
    """The inverse of a positive definite matrix, or None."""
    factor, failed = lapack.dpotrf(np.array(A, order="F"), lower=1, clean=1, overwrite_a=1)
    if failed:
        return None
    lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = np.tril(lower)
    return inverse + np.tril(inverse, -1).T
