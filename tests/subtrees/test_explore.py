"""Units of work on tiny problems: nothing is lost, nothing is claimed that is not so."""

from collections import Counter

import numpy as np
import pytest
from helpers.checks import assert_same
from helpers.instances import (
    REGIMES,
    Instance,
    NodeCase,
    make_node,
    node_values,
    standard_form,
)
from helpers.nodes import h
from helpers.regression import data
from helpers.seeds import seeds
from helpers.units import is_in, states_of, subproblem_of, unit_of

from bestk.base.constants import FREE, IN, OUT
from bestk.form.definiteness import is_positive_semidefinite
from bestk.subtrees.explore import explore
from bestk.subtrees.unit import (
    BRANCHED,
    CLOSED,
    EMPTY,
    OPEN,
    PRUNED,
    RESISTING,
    Budget,
    Outcome,
    Subproblem,
    Unit,
)


def explored(seed, **terms):
    """(case, subproblem, unit, outcome) of a seed, or None where there would be no unit."""
    case = make_node(seed)
    if case is None or case.r < 1 or not (case.state == FREE).any():
        return None
    rng = np.random.default_rng([seed, 8])
    fixing, scans_first = bool(rng.random() < 0.8), bool(seed % 3 == 0)
    subproblem = subproblem_of(case.form, case.k, fixing=fixing, scans_first=scans_first)
    if subproblem is None:
        return None
    unit = unit_of(rng, case, **terms)
    outcome = explore(subproblem, unit)
    assert outcome is not None
    return case, subproblem, unit, outcome


def charges(unit, outcome):
    return unit.t if outcome.t is None else outcome.t


@seeds(3000, chunk=300)
def test_nothing_is_lost_and_no_bound_is_too_high(seed):
    found = explored(seed)
    if found is None:
        return
    case, _, unit, outcome = found
    k, slack = case.k, case.slack
    before, after = states_of(unit, outcome)
    for i, (state, kept) in enumerate(zip(before, after, strict=True)):
        values = {S: v for S, v in case.values.items() if is_in(S, state, k)}
        least = min(values.values(), default=np.inf)
        assert outcome.bounds[i] <= least + slack
        if outcome.parent[i] >= 0:
            assert outcome.bounds[i] >= outcome.bounds[outcome.parent[i]]
        assert (outcome.fate[i] == PRUNED) == (outcome.bounds[i] >= unit.cutoff)
        for S, value in values.items():
            assert value >= unit.cutoff - slack or is_in(S, kept, k)
        if outcome.fate[i] == EMPTY:
            assert not any(is_in(S, kept, k) for S in values)

    listed = [set(hit.tolist()) for hit in outcome.hits]
    for S, value in case.values.items():
        is_left = any(is_in(S, state, k) for state in outcome.states)
        if is_left or any(set(S) <= hit for hit in listed):
            continue
        # What is neither left nor listed is no better than the best one, or was given up.
        assert value >= min(outcome.dropped, unit.value) - slack
        assert value >= unit.cutoff - slack


@seeds(1500, start=3000, chunk=300)
def test_an_outcome_is_a_tree_that_tells_what_is_left(seed):
    found = explored(seed)
    if found is None:
        return
    case, subproblem, unit, outcome = found
    fate, count = outcome.fate, len(outcome.parent)
    _, after = states_of(unit, outcome)
    has_root = outcome.t is not None
    children = Counter(outcome.parent[1:].tolist() if has_root else outcome.parent.tolist())
    for i in range(count):
        assert outcome.parent[i] < i
        assert children[i] == (2 if fate[i] == BRANCHED else 0)
        n_inside, n_free = (np.count_nonzero(after[i] == s) for s in (IN, FREE))
        if fate[i] in (OPEN, BRANCHED):
            assert 0 < case.k - n_inside < n_free
    assert children[-1] == (0 if has_root else 2)
    pairs = np.arange(int(has_root), count).reshape(-1, 2)
    for first, second in pairs:
        assert outcome.parent[first] == outcome.parent[second]
        assert outcome.feature[first] == outcome.feature[second] >= 0
        assert not outcome.inside[first]
        assert outcome.inside[second]
    np.testing.assert_array_equal(
        outcome.open_nodes, np.flatnonzero(np.isin(fate, (OPEN, RESISTING)))
    )
    np.testing.assert_array_equal(outcome.states, after[outcome.open_nodes])
    # However small the budget, a root that is not done with is branched; and it ends soon after.
    assert count <= max(unit.budget.nodes, 2 + has_root)
    for hit in outcome.hits:
        assert is_in(hit.tolist(), unit.state, case.k)
        assert len(set(hit.tolist())) == len(hit)
    if outcome.rounded is not None:
        assert is_in(outcome.rounded.tolist(), unit.state, case.k)
        assert len(set(outcome.rounded.tolist())) == case.k
    assert outcome.multiplies >= 0.0
    assert outcome.scanning >= 0.0
    assert (outcome.preparing > 0.0) <= (unit.own and not subproblem.is_boxed)


@seeds(1500, start=5000, chunk=300)
def test_recorded_dual_vectors_prove_their_bounds(seed):
    """By the formula: whoever checks the proof has nothing but these and the charges."""
    found = explored(seed)
    if found is None:
        return
    case, _, unit, outcome = found
    t, here = charges(unit, outcome), outcome.split_features
    part = np.ix_(here, here)
    assert is_positive_semidefinite(np.ascontiguousarray(case.form.A[part]), t[here])
    if outcome.t is not None:
        np.testing.assert_array_equal(outcome.t, outcome.t.astype(np.float32))
    before, _ = states_of(unit, outcome)
    for i, state in enumerate(before):
        rows = outcome.duals.row(i)
        inherited = unit.bound if outcome.parent[i] < 0 else outcome.bounds[outcome.parent[i]]
        if rows.start == rows.stop or outcome.bounds[i] <= inherited:
            continue
        g = np.zeros(case.form.p)
        g[outcome.duals.features[rows]] = outcome.duals.values[rows]
        r = case.k - np.count_nonzero(state == IN)
        assert (g[unit.state == OUT] == 0.0).all()
        rounding = 1e-13 * (1.0 + g @ g)  # of the formula itself
        assert h(case.form, t, state, r, g) >= outcome.bounds[i] - rounding


def arrays_of(thing):
    """Copies of all arrays of a subproblem or unit."""
    names = thing._fields if isinstance(thing, Unit) else Subproblem.__dataclass_fields__
    values = {name: getattr(thing, name) for name in names}
    return {name: v.copy() for name, v in values.items() if isinstance(v, np.ndarray)}


def assert_same_outcome(one: Outcome, other: Outcome):
    for name in Outcome._fields:
        a, b = getattr(one, name), getattr(other, name)
        if name == "hits":
            a, b = tuple(a), tuple(b)
        if isinstance(a, float | np.floating):
            assert a == b
        else:
            assert_same(a, b)


@seeds(600, start=7000, chunk=200)
def test_exploring_is_a_pure_function(seed):
    found = explored(seed)
    if found is None:
        return
    _, subproblem, unit, outcome = found
    kept = {**arrays_of(subproblem), **arrays_of(unit)}
    assert_same_outcome(explore(subproblem, unit), outcome)
    for name, array in {**arrays_of(subproblem), **arrays_of(unit)}.items():
        np.testing.assert_array_equal(array, kept[name])
    assert explore(subproblem, unit, np.ones(1, dtype=np.int8)) is None


@seeds(300, start=8000, chunk=100)
def test_a_unit_without_limits_leaves_only_what_resists(seed):
    found = explored(seed, budget=Budget(5000, np.inf))
    if found is None:
        return
    _, _, _, outcome = found
    assert not (outcome.fate == OPEN).any()


@seeds(300, start=9000, chunk=100)
def test_units_of_what_is_left_go_on_to_the_end(seed):
    """The smallest budgets, one unit after the other: they end, and the best model was found."""
    found = explored(seed, budget=Budget(1, 0.0), own=bool(seed % 2))
    if found is None:
        return
    case, subproblem, unit, outcome = found
    waiting, best = [(unit, outcome)], np.inf
    for _ in range(2000):
        if not waiting:
            break
        unit, outcome = waiting.pop()
        best = min(best, outcome.dropped)
        for hit in outcome.hits:
            best = min(best, case.instance.loss(case.form.features[hit]) / case.form.problem.yy)
        for row, i in enumerate(outcome.open_nodes.tolist()):
            if outcome.fate[i] == RESISTING:
                values = (
                    v for S, v in case.values.items() if is_in(S, outcome.states[row], case.k)
                )
                best = min(best, *values)
                continue
            below = unit._replace(
                state=outcome.states[row], t=charges(unit, outcome), bound=outcome.bounds[i]
            )
            waiting.append((below, explore(subproblem, below)))
    assert not waiting
    assert min(best, unit.value) <= max(case.optimum, unit.cutoff) + case.slack


def test_every_kind_of_problem_and_of_fate_is_among_them():
    """Else the tests above would test little."""
    regimes, fates, own, boxed = Counter(), Counter(), 0, 0
    for seed in range(1000):
        found = explored(seed)
        if found is None:
            continue
        case, subproblem, _, outcome = found
        regimes[case.instance.regime] += 1
        fates.update(outcome.fate.tolist())
        own += outcome.t is not None
        boxed += subproblem.is_boxed
    never = {"one_feature", "zero_y"}  # nothing to choose; nothing to explain
    assert set(REGIMES) - never <= set(regimes) | {"one_row"}
    assert {PRUNED, BRANCHED, OPEN, CLOSED} <= set(fates)
    assert min(own, boxed) > 20


@pytest.mark.parametrize("boxed", [False, True])
def test_more_hits_than_fit_are_left_for_the_data(boxed):
    """With a value that everything is below, every support would be listed."""
    X, y = data(n=30, p=9)
    options = {"bounds": (-1.0, 1.0)} if boxed else {"alpha": 0.1}
    instance = Instance(regime="plain", X=X, y=y, k=4, options=options)
    form, state = standard_form(instance), np.full(9, FREE, dtype=np.int8)
    values = node_values(instance, form, state, 4)
    case = NodeCase(seed=0, instance=instance, form=form, k=4, state=state, values=values)
    rng = np.random.default_rng(0)
    subproblem = subproblem_of(case.form, case.k)
    unit = unit_of(
        rng, case, value=2.0, cutoff=2.0, bound=-np.inf, close_below=np.inf, own=False,
        budget=Budget(2, np.inf),
    )  # fmt: skip
    outcome = explore(subproblem, unit)
    assert (outcome.fate == RESISTING).any()
    left = outcome.states[outcome.fate[outcome.open_nodes] == RESISTING]
    listed = [set(hit.tolist()) for hit in outcome.hits]
    for S in case.values:
        assert any(is_in(S, state, case.k) for state in left) or set(S) in listed


def test_scans_may_come_before_bounds():
    """The properties above hold then, too; here, that it happens, and spares bounds."""
    spared = 0
    for seed in range(600):
        case = make_node(seed)
        if case is None or case.r < 1 or not (case.state == FREE).any():
            continue
        unit = unit_of(np.random.default_rng(seed), case, close_below=1e-3, own=False)
        both = [subproblem_of(case.form, case.k, scans_first=first) for first in (True, False)]
        if both[0] is not None:
            scanned, bounded = (explore(subproblem, unit) for subproblem in both)
            spared += scanned.multiplies < bounded.multiplies and (scanned.fate == CLOSED).any()
    assert spared > 50
