"""A unit of work: a pure function from a subtree to what is proven about it and what is left."""

import numpy as np

from bestk.base.constants import FREE
from bestk.bounds.interior import own_charges_multiplies
from bestk.subtrees.local import Whole, localise
from bestk.subtrees.loop import ClusterLocal, Terms, run
from bestk.subtrees.rows import left_open, named, pack
from bestk.subtrees.unit import Outcome, Sparse, Subproblem, Unit
from bestk.supports.margins import margins

GO_ON = np.zeros(1, dtype=np.int8)
_NOTHING = np.zeros(0)


def explore(subproblem: Subproblem, unit: Unit, stop: np.ndarray = GO_ON) -> Outcome | None:
    """Explore a unit until it is done or its budget is spent; None if `stop` was set meanwhile.

    The outcome depends on nothing but the arguments: it may be computed anywhere, and again.
    """
    s = subproblem
    if s.clusters is None:
        here, local, has_own, is_single = _on_diagonal(s, unit)
    else:
        here, local, has_own, is_single = _on_clusters(s, unit)
    shift, slack = margins(s.eps, s.k)
    terms = Terms(
        s.k, unit.cutoff, unit.value, s.eps, shift, slack, s.is_boxed, is_single, s.fixing,
        unit.close_below, unit.budget.nodes, unit.budget.multiplies,
    )  # fmt: skip
    state = unit.state[here]
    start = state, unit.dual[here], unit.level, unit.bound, has_own
    found = run(local, terms, s.effort, s.prices, *start, stop)
    if stop[0]:
        return None
    own = local.t if has_own else None
    return _outcome(s, unit, here, state, own, *found)


def _on_diagonal(s: Subproblem, unit: Unit):
    """(features, the part of the form, charges of its own?, single precision?)"""
    inside = s.inside_share * s.least
    whole = Whole(s.A, s.c, s.lo, s.hi, s.eps, s.k, s.is_boxed, inside)
    here, local, has_own = localise(whole, unit.state, unit.t, unit.own, unit.cutoff)
    t = local.t
    is_single = bool(t.mean() >= s.single_from and t.min() >= 0.1 * s.single_from)
    return here, local, has_own, is_single


def _on_clusters(s: Subproblem, unit: Unit):
    """The same with clusters, which bound whole forms."""
    assert s.clusters is not None
    assert s.climb is not None
    mu = s.climb.temperature * max(unit.value, 1e-9)
    ends = s.climb.closeness, s.climb.steps, s.climb.memory
    local = ClusterLocal(s.A, s.c, s.lo, s.hi, s.clusters, mu, *ends)
    return np.arange(s.p), local, False, True


def _outcome(
    s, unit, here, state, own, nodes, count, stack, hits, n_hits, support, value, dropped,
    multiplies, scanning,
) -> Outcome:  # fmt: skip
    """Rows of the loop as sparse arrays, in the numbers of the form."""
    proved, *rows = pack(nodes, count, state, here)
    duals, fixed_in, fixed_out = _sparse(*rows)
    is_untouched = len(stack) > 0 and stack[0] < 0
    left, states = left_open(nodes, count, is_untouched, state, here, s.p)
    t, preparing = None, 0.0
    if own is not None:
        t = np.zeros(s.p)
        t[here] = own
    if unit.own and not s.is_boxed:
        preparing = own_charges_multiplies(int(np.count_nonzero(unit.state == FREE)))
    return Outcome(
        parent=nodes.parent[:count].copy(),
        feature=named(nodes.feature, count, here),
        inside=nodes.inside[:count].copy(),
        fate=nodes.fate[:count].copy(),
        bounds=nodes.bounds[:count].copy(),
        levels=nodes.levels[:count].copy(),
        proved=proved,
        duals=duals,
        fixed_in=fixed_in,
        fixed_out=fixed_out,
        open_nodes=left,
        states=states,
        t=t,
        split_features=here,
        hits=[here[row[row >= 0]] for row in hits[:n_hits]],
        rounded=here[support] if value < unit.value else None,
        dropped=dropped,
        multiplies=multiplies,
        scanning=scanning,
        preparing=preparing,
    )


def _sparse(dual_ends, features, values, in_ends, fixed_in, out_ends, fixed_out):
    fixed = Sparse(in_ends, fixed_in, _NOTHING), Sparse(out_ends, fixed_out, _NOTHING)
    return Sparse(dual_ends, features, values), *fixed
