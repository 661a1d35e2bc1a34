"""A unit of work: a pure function from a subtree to what is proven about it and what is left."""

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.interior import own_charges, own_charges_multiplies, proven_charges
from bestk.subtrees.loop import ClusterLocal, Local, Terms, run
from bestk.subtrees.rows import pack
from bestk.subtrees.unit import OPEN, RESISTING, Outcome, Sparse, Subproblem, Unit
from bestk.supports.margins import margins

GO_ON = np.zeros(1, dtype=np.int8)
# A share of the smallest charge for features that are IN is only safe where that is well above
# what whoever checks the proof may have to take off for rounding.
_SAFE = 1e-7


def explore(subproblem: Subproblem, unit: Unit, stop: np.ndarray = GO_ON) -> Outcome | None:
    """Explore a unit until it is done or its budget is spent; None if `stop` was set meanwhile.

    The outcome depends on nothing but the arguments: it may be computed anywhere, and again.
    """
    s = subproblem
    if s.clusters is None:
        here, local, own, preparing, is_single = _on_diagonal(s, unit)
    else:
        here, local, own, preparing, is_single = _on_clusters(s, unit)
    shift, slack = margins(s.eps, s.k)
    terms = Terms(
        s.k, unit.cutoff, unit.value, s.eps, shift, slack, s.is_boxed, is_single, s.fixing,
        unit.close_below, unit.budget.nodes, unit.budget.multiplies,
    )  # fmt: skip
    start = unit.state[here], unit.dual[here], unit.level, unit.bound, own is not None
    found = run(local, terms, s.effort, s.prices, *start, stop)
    if stop[0]:
        return None
    return _outcome(s, unit, here, own, preparing, *found)


def _on_diagonal(s: Subproblem, unit: Unit):
    """(features, the part of the form, charges of its own, what they cost, single precision?)"""
    state = unit.state
    inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    # Within a box features that are IN cannot be eliminated: relaxations need all of them.
    gone = 0 if s.is_boxed else len(inside)
    here = np.sort(np.append(inside, free)) if s.is_boxed else np.append(inside, free)
    A, c, t = np.ascontiguousarray(s.A[np.ix_(here, here)]), s.c[here], unit.t[here]
    H, d, base, lift, lifted = _eliminated(A, c, gone)
    own, preparing = None, 0.0
    if unit.own and not s.is_boxed and len(free):
        own = _own_split(s, A, H, d, base, unit, t, len(inside))
        preparing = own_charges_multiplies(len(free))
        t = t if own is None else own
    is_single = bool(t.mean() >= s.single_from and t.min() >= 0.1 * s.single_from)
    local = Local(A, c, t, s.lo[here], s.hi[here], gone, H, d, base, lift, lifted)
    return here, local, own, preparing, is_single


def _on_clusters(s: Subproblem, unit: Unit):
    """The same with clusters, which bound whole forms."""
    assert s.clusters is not None
    assert s.climb is not None
    mu = s.climb.temperature * max(unit.value, 1e-9)
    ends = s.climb.closeness, s.climb.steps, s.climb.memory
    local = ClusterLocal(s.A, s.c, s.lo, s.hi, s.clusters, mu, *ends)
    return np.arange(s.p), local, None, 0.0, True


def _eliminated(A: np.ndarray, c: np.ndarray, gone: int):
    """(H, d, base, lift, lifted) of :class:`Local` for the first `gone` features."""
    if gone == 0:
        return A, c, 1.0, np.zeros((0, len(c))), np.zeros(0)
    inside, sides = A[:gone, :gone], np.column_stack([A[:gone, gone:], c[:gone]])
    try:
        solved = np.linalg.solve(inside, sides)
    except np.linalg.LinAlgError:  # dependent: any solution serves the search
        solved = np.linalg.lstsq(inside, sides, rcond=1e-12)[0]
    lift, lifted = np.ascontiguousarray(solved[:, :-1]), np.ascontiguousarray(solved[:, -1])
    H = A[gone:, gone:] - A[gone:, :gone] @ lift
    d, base = c[gone:] - A[gone:, :gone] @ lifted, 1.0 - float(c[:gone] @ lifted)
    return 0.5 * (H + H.T), d, base, lift, lifted


def _own_split(s: Subproblem, A, H, d, base, unit: Unit, t, n_inside: int):
    """Proven charges of the unit's own, or None."""
    r, charge = s.k - n_inside, s.inside_share * s.least
    if n_inside and charge < _SAFE:
        return None
    own = own_charges(H, d, float(base), r, unit.cutoff, t[n_inside:])
    if own is None:
        return None
    return proven_charges(A, np.append(np.full(n_inside, charge), own.t), s.eps)


def _outcome(
    s, unit, here, own, preparing, nodes, count, stack, hits, n_hits, support, value, dropped,
    multiplies, scanning,
) -> Outcome:  # fmt: skip
    """Rows of the loop as sparse arrays, in the numbers of the form."""
    feature, fate = nodes.feature[:count], nodes.fate[:count]
    proved, *rows = pack(nodes, count, unit.state[here], here)
    duals, fixed_in, fixed_out = _packed(*rows)
    left = np.flatnonzero((fate == OPEN) | (fate == RESISTING))
    if len(stack) and stack[0] < 0:
        left = np.array([-1])
    whole = np.full((len(left), s.p), OUT, dtype=np.int8)
    whole[:, here] = unit.state[here] if len(left) and left[0] < 0 else nodes.states[left]
    t = None
    if own is not None:
        t = np.zeros(s.p)
        t[here] = own
    return Outcome(
        parent=nodes.parent[:count].copy(),
        feature=np.where(feature >= 0, here[feature], -1).astype(np.int32),
        inside=nodes.inside[:count].copy(),
        fate=fate.copy(),
        bounds=nodes.bounds[:count].copy(),
        levels=nodes.levels[:count].copy(),
        proved=proved,
        duals=duals,
        fixed_in=fixed_in,
        fixed_out=fixed_out,
        open_nodes=left,
        states=whole,
        t=t,
        split_features=here,
        hits=[here[row[row >= 0]] for row in hits[:n_hits]],
        rounded=here[support] if value < unit.value else None,
        dropped=dropped,
        multiplies=multiplies,
        scanning=scanning,
        preparing=preparing,
    )


def _packed(dual_ends, features, values, in_ends, fixed_in, out_ends, fixed_out):
    nothing = np.zeros(0)
    fixed = Sparse(in_ends, fixed_in, nothing), Sparse(out_ends, fixed_out, nothing)
    return Sparse(dual_ends, features, values), *fixed
