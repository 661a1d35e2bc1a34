"""Which feature to decide next."""

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.form.standard_form import StandardForm
from bestk.supports.beam import beam_supports, fit_supports


def by_relaxation(form: StandardForm, state: np.ndarray, dual: np.ndarray) -> int:
    """The free feature with the largest relaxed coefficient (columns have unit length).

    Where the relaxation says nothing, the one most correlated with y.
    """
    size = np.where(state == FREE, np.abs(dual), -1.0)
    if size.max() <= 0.0:
        size = np.where(state == FREE, np.abs(form.c), -1.0)
    return int(size.argmax())


def by_heuristic(
    form: StandardForm, state: np.ndarray, k: int, width: int
) -> tuple[int, np.ndarray]:
    """The paper's rule: (feature, support) of the node's own beam-search solution.

    The feature is the free one whose coefficient, set to zero, raises the loss most.
    """
    inside = np.flatnonzero(state == IN)
    support = beam_supports(form, inside, k, width=width, allowed=state != OUT)[0]
    coef, _ = fit_supports(form, support[None])
    return _largest_increase(form, state, support, coef[0]), support


def _largest_increase(form, state, support, coef):
    """argmax over free j of  -2 b'A b_j e_j + A_jj b_j^2 + 2 c_j b_j."""
    increase = 2.0 * coef * (form.c[support] - form.matrix.submatrix(support) @ coef) + coef**2
    increase = np.where(state[support] == FREE, increase, -np.inf)
    return int(support[np.argmax(increase)])
