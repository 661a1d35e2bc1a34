"""Units of work on tiny problems, and a plain reading of what came of them."""

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.tuning import tuning
from bestk.bounds.kernels.relaxation import Effort
from bestk.bounds.split import first_split
from bestk.form.definiteness import is_positive_semidefinite
from bestk.subtrees.unit import Budget, Subproblem, Unit
from bestk.supports.prices import prices_of
from helpers.instances import NodeCase, proven_split


def subproblem_of(form, k, *, fixing=True, scans_first=False) -> Subproblem | None:
    """What the search would share; None where charges bound nothing, and there are no units.

    With `scans_first` bounds seem to cost so much that scans come before them.
    """
    split, now = first_split(form), tuning()
    if not (split.is_positive and split.is_useful(form)):
        return None
    prices = prices_of(now)
    if scans_first:
        prices = prices._replace(per_multiply=1.0)
    return Subproblem(
        A=form.A, c=form.c, lo=form.lo, hi=form.hi, eps=form.eps, k=k, least=split.smallest,
        effort=Effort(now.closeness, now.sweeps, now.sweeps_at_once), prices=prices,
        fixing=fixing, single_from=now.single_from, inside_share=now.inside_share,
        own_from=0.0,
        whole_from=1500,
    )  # fmt: skip


def unit_of(rng, case: NodeCase, **terms) -> Unit:
    """A unit whose root is the node of a case, on random terms unless they are given."""
    form, values = case.form, np.array(list(case.values.values()))
    t = first_split(form).t if rng.random() < 0.5 else proven_split(rng, form.A)
    if not ((t > 0).all() and is_positive_semidefinite(form.A, t, form.eps)):
        t = first_split(form).t
    dual = np.zeros(form.p)
    if rng.random() < 0.5:
        dual = np.where(case.state == OUT, 0.0, rng.standard_normal(form.p))
    value = float(values.min() + rng.choice([0.0, 0.01, 0.3, 1.0]) * np.ptp(values) + 1e-10)
    drawn = {
        "state": case.state,
        "t": t,
        "dual": dual,
        "level": float(rng.choice([0.0, 0.1])),
        "bound": float(rng.choice([-np.inf, 0.0])),
        "cutoff": float(value * (1.0 - rng.choice([0.0, 1e-4, 0.1]))),
        "value": value,
        "budget": Budget(int(rng.choice([1, 2, 3, 5, 30, 1000])), 1e8),
        "close_below": float(rng.choice([0.0, 1e-3])),
        "leave_below": float(rng.choice([0.0, 0.0, 1.0])),
        "own": bool(rng.random() < 0.5),
        "weakest_first": bool(rng.random() < 0.5),
    }
    return Unit(**drawn | terms)


def states_of(unit: Unit, outcome) -> tuple[np.ndarray, np.ndarray]:
    """States of all nodes before and after fixing, read from decisions and fixings alone."""
    count = len(outcome.parent)
    before = np.empty((count, len(unit.state)), dtype=np.int8)
    after = np.empty_like(before)
    for i in range(count):
        parent, feature = outcome.parent[i], outcome.feature[i]
        before[i] = unit.state if parent < 0 else after[parent]
        if feature >= 0:
            assert before[i, feature] == FREE
            before[i, feature] = IN if outcome.inside[i] else OUT
        after[i] = before[i]
        for rows, where in ((outcome.fixed_in, IN), (outcome.fixed_out, OUT)):
            moved = rows.features[rows.row(i)]
            assert (after[i, moved] == FREE).all()
            after[i, moved] = where
    return before, after


def is_in(support, state: np.ndarray, k: int) -> bool:
    """Whether a node is about a support."""
    inside = set(np.flatnonzero(state == IN).tolist())
    return not (state[list(support)] == OUT).any() and len(inside | set(support)) <= k
