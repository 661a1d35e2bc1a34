"""Charges for all groups, and better ones for a subtree (theory: split, own-charges)."""

from typing import NamedTuple

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.interior import own_charges_multiplies
from bestk.choices.form import Space
from bestk.form.definiteness import is_positive_semidefinite, uniform_charge
from bestk.subtrees.local import Whole, localise

# What charges of a subtree have to gain of what is missing to the cutoff.
_WORTH = 0.02


class UsedSplit(NamedTuple):
    """Charges in use: their number in the record, one for each coordinate, for how many."""

    number: int
    t: np.ndarray
    size: int


def first_charges(A: np.ndarray, error: float) -> np.ndarray:
    """t = theta / (A^-1)_jj, proven: what is left of a feature beside all others, times a factor.

    The shape is right whatever the scales; zeros where nothing is proven.
    """
    p = len(A)
    if p == 0:
        return np.zeros(0)
    uniform = np.full(p, uniform_charge(A, error))
    if not uniform[0] > 0.0:
        return uniform
    rest = 1.0 / np.linalg.inv(A).diagonal()
    if not (rest > 0.0).all():
        return uniform
    root = np.sqrt(rest)
    theta = float(np.linalg.eigvalsh(A / np.outer(root, root))[0])
    for margin in (0.99, 0.95, 0.8):
        t = margin * theta * rest
        if is_positive_semidefinite(A, t, error):
            return t if t.mean() > uniform[0] else uniform
    return uniform


def charges_below(
    space: Space, state: np.ndarray, r: int, lam: np.ndarray, split: UsedSplit, bound: float,
    cutoff: float,
) -> tuple[np.ndarray, np.ndarray] | None:  # fmt: skip
    """(coordinates, their charges) for the subtree below a node, proven; None if none are better.

    Found as if coordinates were chosen one by one: any charges are valid.
    """
    sizes = np.diff(space.starts)
    own = np.repeat(state, sizes).astype(np.int8)
    few = int(np.sort(sizes[state == FREE])[::-1][:r].sum())
    n_inside = int(np.count_nonzero(own == IN))
    least = 0.01 * float(split.t[own != OUT].min(initial=1.0))
    c = space.c - 0.5 * (space.C.T @ lam)
    whole = Whole(
        space.A, c, space.lo, space.hi, space.eps, n_inside + few, False, least, 0.0, _WORTH
    )
    room = np.empty(2 * len(c) ** 2)
    here, local, is_better = localise(whole, own, split.t, True, bound, cutoff, room)
    return (here, local.t.copy()) if is_better else None


def multiplies_below(space: Space, state: np.ndarray) -> float:
    """What :func:`charges_below` takes, about."""
    free = int(np.diff(space.starts)[state == FREE].sum())
    return own_charges_multiplies(free)
