"""Kernels of the search over choices beside plain loops that say the same."""

from itertools import count, product

import numpy as np
from helpers import choices
from helpers.seeds import seeds

from bestk.base.constants import FREE, IN, OUT
from bestk.choices.charges import first_charges
from bestk.choices.fits import constrained_least_squares
from bestk.choices.kernels.bound import conclude
from bestk.choices.kernels.enumeration import multiplies_of, scan_all, try_all
from bestk.choices.kernels.propagation import POSSIBLE, n_counted, propagate, rules_of
from bestk.choices.kernels.relaxation import relax
from bestk.choices.penalty import penalty_of
from bestk.choices.run import Prepared
from bestk.structure.asked import Asked
from bestk.structure.compose import NoModel
from bestk.supports.margins import margins


def random_state(rng, m: int) -> np.ndarray:
    return rng.choice([FREE, FREE, FREE, IN, OUT], size=m).astype(np.int8)


def completions(structure, free, k, state) -> list[np.ndarray]:
    """All choices that the rules allow below a state."""
    options = [{FREE: (IN, OUT), IN: (IN,), OUT: (OUT,)}[s] for s in state]
    found = []
    for one in product(*options):
        chosen = np.flatnonzero(np.array(one) == IN)
        if len(np.setdiff1d(chosen, free)) <= k and not structure.broken(chosen):
            found.append(np.array(one, dtype=np.int8))
    return found


@seeds(1500, chunk=150)
def test_propagation_loses_nothing_and_ends_at_what_is_allowed(seed):
    rng = np.random.default_rng([seed, 1])
    instance = choices.make(seed)
    structure, k = instance.structure, instance.k
    free = rng.choice(structure.n_groups, size=int(rng.integers(0, 2)), replace=False)
    state = random_state(rng, structure.n_groups)
    before = completions(structure, free, k, state)
    after = state.copy()
    code = propagate(rules_of(structure, free), k, after)
    if code != POSSIBLE:
        assert not before
        return
    assert ((state == FREE) | (state == after)).all()
    kept = completions(structure, free, k, after)
    assert {row.tobytes() for row in kept} == {row.tobytes() for row in before}
    if not (after == FREE).any():
        assert len(kept) == 1, "what is decided is allowed"


def prepared(instance) -> Prepared | None:
    names = ("include", "exclude", "free", "groups", "rules", "constraints")
    asked = Asked(**{name: instance.options.get(name) for name in names})
    try:
        return Prepared.of(instance.problem(), asked)
    except ValueError:
        return None


def cell(seed: int, wanted=lambda ready, k, state: True):
    """(instance, what is prepared, a propagated state below the root, its choices)

    The first one from a seed on in which there is something to choose, as `wanted`.
    """
    for attempt in count(seed, 100_000):
        rng, instance = np.random.default_rng([attempt, 2]), choices.make(attempt)
        ready = prepared(instance)
        if ready is None or ready.form.p == 0 or instance.kind == "no variation":
            continue
        try:
            state = ready.root(instance.k)
        except NoModel:
            continue
        free = np.flatnonzero(state == FREE)
        for g in rng.choice(free, size=len(free) // 2, replace=False) if len(free) else ():
            state[g] = rng.choice([IN, OUT])
        is_possible = propagate(ready.form.space.rules, instance.k, state) == POSSIBLE
        if is_possible and wanted(ready, instance.k, state):
            uncounted = ready.structure.groups_of(ready.free)
            below = completions(ready.structure, uncounted, instance.k, state)
            return instance, ready, state, below
    raise AssertionError("unreachable")


def has_scan(ready: Prepared, k: int, state: np.ndarray) -> bool:
    """Is every free group one coordinate, with some to leave out?"""
    space = ready.form.space
    sizes = np.diff(space.starts)[state == FREE]
    return bool((sizes == 1).all() and 0 < k - n_counted(space.rules, state) < len(sizes))


@seeds(1200, chunk=100)
def test_any_dual_vector_and_multipliers_bound_a_node(seed):
    rng = np.random.default_rng([seed, 3])
    instance, ready, state, allowed = cell(seed)
    space, k, p = ready.form.space, instance.k, ready.form.p
    most = ready.form.most_coordinates(k, np.flatnonzero(state == IN))
    r = k - n_counted(space.rules, state)
    x, lam = rng.normal(size=p) * 0.3, np.zeros(len(space.C))
    t = rng.choice([1.0, 0.5]) * first_charges(space.A, space.eps)
    if rng.random() < 0.7:
        relax(space, penalty_of(space), t, state, r, x, lam, 0.0, 1.0, rng.random() < 0.5)
    elif len(lam):
        lam = rng.normal(size=len(lam)) / (1.0 + np.abs(space.C).max())
        lam[np.isinf(space.upper)] = np.minimum(lam[np.isinf(space.upper)], 0.0)
        lam[np.isinf(space.lower)] = np.maximum(lam[np.isinf(space.lower)], 0.0)
    yy = instance.problem().yy
    values = {
        row.tobytes(): choices.value(instance, np.flatnonzero(row == IN)) / yy for row in allowed
    }
    least = min(values.values(), default=np.inf)
    slack = 1e-7 * (1.0 + min(least, 1e6))
    bound = conclude(space, most, t, state.copy(), r, x, lam, np.inf, False)
    assert bound <= least + slack
    if np.isfinite(least) and np.isfinite(bound):
        cutoff = bound + rng.random() * max(least - bound, 0.0)
        fixed = state.copy()
        conclude(space, most, t, fixed, r, x, lam, cutoff, True)
        for row in allowed:
            breaks = ((fixed != FREE) & (row != fixed)).any()
            assert not breaks or values[row.tobytes()] >= cutoff - slack


@seeds(1200, chunk=100)
def test_what_is_not_listed_is_not_better(seed):
    rng = np.random.default_rng([seed, 4])
    instance, ready, state, allowed = cell(seed)
    space, k, yy = ready.form.space, instance.k, instance.problem().yy
    values = [choices.value(instance, np.flatnonzero(row == IN)) / yy for row in allowed]
    finite = [v for v in values if np.isfinite(v)] or [1.0]
    value = float(rng.choice(finite)) * float(rng.choice([1.0, 1.1, 0.9]))
    shift, slack = margins(space.eps, ready.form.p)
    hits = np.empty((64, len(state)), dtype=np.int8)
    found = try_all(space, k, shift, slack, value, state, hits)
    if found < 0:
        return
    listed = {row.tobytes() for row in hits[:found]}
    assert listed <= {row.tobytes() for row in allowed}
    for row, own in zip(allowed, values, strict=True):
        assert row.tobytes() in listed or own >= value - 1e-7 * (1.0 + value)


@seeds(600, chunk=100)
def test_a_scan_lists_what_may_be_better_and_is_allowed(seed):
    rng = np.random.default_rng([seed, 6])
    instance, ready, state, allowed = cell(seed, has_scan)
    space, k, yy = ready.form.space, instance.k, instance.problem().yy
    values = [choices.value(instance, np.flatnonzero(row == IN)) / yy for row in allowed]
    finite = [v for v in values if np.isfinite(v)] or [1.0]
    value = float(rng.choice(finite)) * float(rng.choice([1.0, 1.1, 0.9]))
    shift, slack = margins(space.eps, ready.form.p)
    hits = np.empty((64, len(state)), dtype=np.int8)
    found = scan_all(space, k, shift, slack, value, state, hits)
    if found < 0:
        return
    listed = {row.tobytes() for row in hits[:found]}
    assert len(listed) == found
    assert listed <= {row.tobytes() for row in allowed}
    for row, own in zip(allowed, values, strict=True):
        # A part of something that is listed is worth no less than that.
        above = any(((row != IN) | (other == IN)).all() for other in hits[:found])
        assert above or own >= value - 1e-7 * (1.0 + value)


def test_the_price_of_trying_all_grows_with_what_is_tried():
    prices = [multiplies_of(20, 20, r) for r in range(1, 8)]
    assert (np.diff(prices) > 0).all()
    assert multiplies_of(400, 400, 200) == np.inf


@seeds(1500, chunk=100)
def test_constrained_fits_are_the_best_or_there_is_none(seed):
    rng = np.random.default_rng([seed, 5])
    n, p, q = int(rng.integers(1, 8)), int(rng.integers(1, 5)), int(rng.integers(0, 5))
    M = rng.normal(size=(n, p))
    if rng.random() < 0.2:
        M[:, 0] = M[:, -1]
    M /= np.maximum(np.linalg.norm(M, axis=0), 1e-300)
    z = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
    C = np.round(rng.normal(size=(q, p)), 1) * (rng.random((q, p)) < 0.7)
    ends = np.round(rng.normal(size=q), 1) * np.linalg.norm(z)
    kind = rng.integers(0, 4, size=q)
    lower = np.where(kind == 1, -np.inf, ends)
    upper = np.where(kind == 0, ends, np.where(kind == 2, np.inf, ends + np.linalg.norm(z)))
    best = choices.constrained_minimum(M, z, C, lower, upper)
    fit = constrained_least_squares(M, z, C, lower, upper)
    if fit is None:
        assert best == np.inf
        return
    size = np.linalg.norm(z) ** 2 + np.linalg.norm(M @ fit.b) ** 2
    assert np.sum((z - M @ fit.b) ** 2) <= best + 1e-8 * size
    reach = 1e-8 * (np.linalg.norm(fit.b) + np.linalg.norm(z))
    assert (C @ fit.b >= lower - reach).all()
    assert (C @ fit.b <= upper + reach).all()
    assert fit.kkt <= 1e-8
    slope = 2.0 * M.T @ (z - M @ fit.b)
    assert np.abs(slope - C.T @ fit.multipliers).max() <= 1e-7 * (np.linalg.norm(z) + 1.0)
