"""What a unit of work is made of, and what comes of it: plain data that can be sent anywhere."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bestk.bounds.kernels.cluster_ascent import Clusters
from bestk.bounds.kernels.relaxation import Effort
from bestk.subtrees.covers import NO_COVERS
from bestk.supports.prices import Prices

# What became of a node: proven to be of no use, given children, left open as the budget was spent,
# closed by trying its supports, not closed although few supports are left, without any support.
PRUNED, BRANCHED, OPEN, CLOSED, RESISTING, EMPTY = range(6)


class Climb(NamedTuple):
    """How to look for dual vectors with clusters: temperature over the best value, and when to end.

    See :class:`bestk.base.tuning.Tuning`.
    """

    temperature: float
    closeness: float
    steps: int
    memory: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Subproblem:
    """What all units of a search share: the standard form as arrays, and how to explore it.

    ``least`` is a charge that every feature can bear at once: proven like any split. Features that
    are IN at the root of a unit keep a small share of it, ``inside_share``, in a split of its own,
    which has to gain the share ``own_from`` of what is missing to the cutoff.
    With ``clusters`` these bound all nodes instead of charges. In a box, units of ``whole_from``
    features on share the matrix. Supports that contain one of ``covers`` need not be looked at.
    """

    A: np.ndarray = field(repr=False)
    c: np.ndarray = field(repr=False)
    lo: np.ndarray = field(repr=False)
    hi: np.ndarray = field(repr=False)
    eps: float
    k: int
    least: float
    effort: Effort
    prices: Prices
    fixing: bool
    clusters: Clusters | None = None
    climb: Climb | None = None
    single_from: float
    inside_share: float
    own_from: float
    whole_from: int
    covers: np.ndarray = field(default_factory=lambda: NO_COVERS, repr=False)

    @property
    def p(self) -> int:
        return len(self.c)

    @property
    def is_boxed(self) -> bool:
        return bool(np.isfinite(self.lo).any() or np.isfinite(self.hi).any())


class Budget(NamedTuple):
    """When a unit ends: nodes bounded, and multiplications for that. It branches once at least."""

    nodes: int
    multiplies: float


class Unit(NamedTuple):
    """A subtree to explore: its root as (state, dual vector, level, bound), and on which terms.

    ``t`` are proven charges for all features that are not OUT. With ``own`` the unit looks for
    better ones. Models are worth looking for below ``cutoff``; the best one known has ``value``.
    Nodes that take up to ``close_below`` model seconds are closed by trying their supports, those
    that take a device up to ``leave_below`` are left open for it. Nodes are branched depth first,
    which leaves few of them open, or the weakest one first.
    """

    state: np.ndarray
    t: np.ndarray
    dual: np.ndarray
    level: float
    bound: float
    cutoff: float
    value: float
    budget: Budget
    close_below: float
    leave_below: float
    own: bool
    weakest_first: bool


class Sparse(NamedTuple):
    """Rows of different lengths, end to end: row i ends at ``ends[i]``."""

    ends: np.ndarray
    features: np.ndarray
    values: np.ndarray

    def row(self, i: int) -> slice:
        return slice(int(self.ends[i - 1]) if i else 0, int(self.ends[i]))


class Outcome(NamedTuple):
    """What exploring a unit has proven, and what is left.

    Nodes are numbered as they were bounded; ``parent`` is -1 for children of the unit's root. Node
    0 is the root itself if the unit has charges of its own, ``t``, with the bound they prove.
    Features are those of the form.
    """

    parent: np.ndarray
    feature: np.ndarray
    inside: np.ndarray
    fate: np.ndarray
    bounds: np.ndarray
    levels: np.ndarray
    proved: np.ndarray
    """Which nodes are proven by a dual vector of their own, perhaps one of zeros."""
    duals: Sparse
    fixed_in: Sparse
    fixed_out: Sparse
    open_nodes: np.ndarray
    """Numbers of nodes that are OPEN or RESISTING; -1 is the unit's root."""
    states: np.ndarray
    """Their states."""
    t: np.ndarray | None
    split_features: np.ndarray
    hits: list[np.ndarray]
    """Supports that may be better than the best one known: to be judged on the data."""
    rounded: np.ndarray | None
    """The best support that relaxations suggest, if it seems better than the best one known."""
    dropped: float
    """The least bound among parts that were given up within the tolerance."""
    multiplies: float
    scanning: float
    """Model seconds of enumerations."""
    preparing: float
    """Multiplications for charges of its own."""
