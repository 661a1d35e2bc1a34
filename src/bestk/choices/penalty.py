"""Weights of constraints in the augmented Lagrangian, which only a search needs."""

import numpy as np

from bestk.choices.form import Space
from bestk.choices.kernels.relaxation import Penalty

# A constraint weighs this much beside the features that take part in it.
_WEIGHT = 4.0


def penalty_of(space: Space) -> Penalty:
    """A + sum of weight_i C_i C_i'; rows of constraints may come in any units."""
    squares = (space.C**2).sum(axis=1)
    weights = _WEIGHT / np.where(squares > 0.0, squares, 1.0)
    A = space.A
    if len(weights):
        A = np.ascontiguousarray(A + (space.C.T * weights) @ space.C)
    return Penalty(A, weights)


def pulled(space: Space, penalty: Penalty) -> np.ndarray:
    """c, drawn towards what the constraints allow: where a search for first models begins."""
    nearest = np.clip(np.zeros(len(space.lower)), space.lower, space.upper)
    return space.c + space.C.T @ (penalty.weights * nearest)
