"""A unit of work: a pure function from a subtree to what is proven about it and what is left."""

import threading
from typing import Any

import numpy as np

from bestk.base.constants import FREE
from bestk.bounds.interior import own_charges_multiplies
from bestk.subtrees.covers import among
from bestk.subtrees.local import Local, Whole, localise
from bestk.subtrees.loop import ClusterLocal, Terms, run
from bestk.subtrees.rows import hand_over
from bestk.subtrees.unit import Outcome, Sparse, Subproblem, Unit
from bestk.supports.margins import margins

GO_ON = np.zeros(1, dtype=np.int8)
_NOTHING = np.zeros(0)


class Scratch(threading.local):
    """A thread's memory for the matrices of its units, kept from one unit to the next.

    To ask the system for large matrices each time would take longer than to fill them.
    """

    def __init__(self) -> None:
        self._numbers = np.empty(0)

    def matrices(self, p: int, count: int) -> np.ndarray:
        """Room for so many p x p matrices."""
        if self._numbers.size < count * p * p:
            self._numbers = np.empty(count * p * p)
        return self._numbers


def explore(
    subproblem: Subproblem, unit: Unit, stop: np.ndarray = GO_ON, scratch: Scratch | None = None
) -> Outcome | None:
    """Explore a unit until it is done or its budget is spent; None if `stop` was set meanwhile.

    The outcome depends on nothing but the arguments: it may be computed anywhere, and again.
    """
    s = subproblem
    shift, slack = margins(s.eps, s.k)
    terms = Terms(
        s.k, unit.cutoff, unit.value, s.eps, shift, slack, s.is_boxed, s.fixing, unit.close_below,
        unit.leave_below, unit.budget.nodes, unit.budget.multiplies, unit.weakest_first,
    )  # fmt: skip
    state, dual = unit.state, unit.dual
    here, local, has_own = np.arange(s.p), _clustered(s, unit.value), False
    if s.is_boxed and s.clusters is None and s.p >= s.whole_from:
        local = _whole(s, unit.t)
    elif s.clusters is None:
        least = s.inside_share * s.least
        shares = least, s.single_from, s.own_from
        whole = Whole(s.A, s.c, s.lo, s.hi, s.eps, s.k, s.is_boxed, *shares)
        room = (scratch or Scratch()).matrices(s.p, 1 if s.is_boxed else 2)
        terms_of_charges = unit.t, unit.own, unit.bound, unit.cutoff
        here, local, has_own = localise(whole, state, *terms_of_charges, room)
        state, dual = state[here], dual[here]
    start = state, dual, unit.level, unit.bound, has_own
    found = run(local, terms, s.effort, s.prices, among(s.covers, here, s.p), *start, stop)
    if stop[0]:
        return None
    t = None
    if has_own:
        t = np.zeros(s.p)
        t[here] = local.t
    return _outcome(s, unit, here, t, *hand_over(found, state, here, s.p))


def _whole(s: Subproblem, t: np.ndarray) -> Local:
    """All of a form in a box: a copy of what a unit is about would cost more than its bounds."""
    is_single = t.sum() >= s.p * s.single_from and t.min() >= 0.1 * s.single_from
    nothing = np.empty((0, s.p)), np.empty(0)
    return Local(s.A, s.c, t, s.lo, s.hi, 0, s.A, s.c, 1.0, *nothing, bool(is_single))


def _clustered(s: Subproblem, value: float) -> Any:
    """Clusters bound whole forms."""
    if s.clusters is None or s.climb is None:
        return None
    mu = s.climb.temperature * max(value, 1e-9)
    ends = s.climb.closeness, s.climb.steps, s.climb.memory
    return ClusterLocal(s.A, s.c, s.lo, s.hi, s.clusters, mu, *ends)


def _outcome(s: Subproblem, unit: Unit, here, t, nodes, packed, left, rest) -> Outcome:
    parent, feature, inside, fate, bounds, levels = nodes
    proved, dual_ends, duals, values, in_ends, fixed_in, out_ends, fixed_out = packed
    hits, support, value, dropped, multiplies, scanning = rest
    preparing = 0.0
    if unit.own and not s.is_boxed:
        preparing = own_charges_multiplies(int(np.count_nonzero(unit.state == FREE)))
    return Outcome(
        parent=parent,
        feature=feature,
        inside=inside,
        fate=fate,
        bounds=bounds,
        levels=levels,
        proved=proved,
        duals=Sparse(dual_ends, duals, values),
        fixed_in=Sparse(in_ends, fixed_in, _NOTHING),
        fixed_out=Sparse(out_ends, fixed_out, _NOTHING),
        open_nodes=left[0],
        states=left[1],
        t=t,
        split_features=here,
        hits=[here[row[row >= 0]] for row in hits],
        rounded=here[support] if value < unit.value else None,
        dropped=dropped,
        multiplies=multiplies,
        scanning=scanning,
        preparing=preparing,
    )
