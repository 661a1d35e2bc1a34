"""The split A = Q + diag(t) on which every bound rests: Q positive semidefinite, t >= 0.

``t`` is the share of the quadratic form that is charged per chosen feature (theory: split). It may
be any vector; the larger, the tighter the bound. It is used only after a Cholesky factorisation
has *proven* that A - diag(t) is positive semidefinite, or where it is no more than the ridge
penalty's part of A, so that nothing has to be proven.
"""

from dataclasses import dataclass, field

import numpy as np

from bestk.form.standard_form import StandardForm


@dataclass(frozen=True, kw_only=True)
class Split:
    """A proven split: A - diag(t) is positive semidefinite."""

    t: np.ndarray = field(repr=False)

    @property
    def smallest(self) -> float:
        """A proven lower bound on the eigenvalues of A."""
        return float(self.t.min())

    @property
    def is_positive(self) -> bool:
        return bool((self.t > 0).all())

    def is_useful(self, form: StandardForm) -> bool:
        """Whether it bounds anything: each feature needs a charge, or a box instead."""
        return bool(((self.t > 0) | _is_boxed(form)).all())


def first_split(form: StandardForm) -> Split:
    """The split to begin with: by eigenvalues, or for wide forms the ridge penalty."""
    in_box = bool(_is_boxed(form).all())
    return Split(t=form.matrix.first_charges(form.eps, in_box))


def _is_boxed(form: StandardForm) -> np.ndarray:
    """Which features have a box on both sides."""
    return np.isfinite(form.lo) & np.isfinite(form.hi)
