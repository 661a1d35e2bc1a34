"""The active-set method against coordinate descent, weak duality and NumPy's factorisations."""

import numpy as np
import pytest
from helpers.forms import boxes, random_form, random_states, uniform_split
from helpers.instances import proven_split
from helpers.relaxations import bound_value, descended, relaxed_value
from helpers.seeds import seeds

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.active_set import room_for, settle
from bestk.bounds.kernels.cholesky import factor, invert_factored, solve_factored
from bestk.bounds.kernels.relaxation import Relaxed


class Case:
    """A node of a random form without a box, with charges of one of several kinds."""

    def __init__(self, seed, p=None, rows=None):
        rng = np.random.default_rng([seed, 5])
        p = p or int(rng.integers(1, 15))
        _, self.A, self.c = random_form(seed, p, rows or int(rng.integers(p + 1, 40)))
        self.t = uniform_split(self.A).t if rng.random() < 0.5 else proven_split(rng, self.A)
        self.lo, self.hi = boxes(rng, p, "none")
        self.state = random_states(rng, 1, p)[0]
        self.r = int(rng.integers(0, np.count_nonzero(self.state == FREE) + 2))
        self.rng, self.p = rng, p

    def start(self, kind):
        if kind == "cold":
            return np.zeros(self.p)
        if kind == "far away":
            b = self.rng.standard_normal(self.p)
        else:  # what the parent would leave, without one of its features
            b = self.descended()[0]
            b[self.rng.integers(self.p)] = 0.0
        return np.where(self.state == OUT, 0.0, b)

    def settled(self, b, cutoff=2.0, level=0.0):
        """(b, level, multiplies, is settled)"""
        b, relaxed = b.copy(), Relaxed(self.A, self.c, self.t, self.lo, self.hi)
        root, room = np.sqrt(self.t), room_for(self.p)
        return b, *settle(relaxed, root, self.state, self.r, b, level, cutoff, room)

    def descended(self):
        arguments = self.A, self.c, self.t, self.lo, self.hi, self.state, self.r
        return descended(*arguments, np.zeros(self.p), closeness=1e-9, sweeps=20_000)

    def bound(self, b):
        return bound_value(self.A, self.c, self.t, self.lo, self.hi, self.state, self.r, b)

    def primal(self, b):
        """A value of the relaxation: no bound exceeds it."""
        free = self.state == FREE
        if self.r == 0:
            b = np.where(free, 0.0, b)
        if self.r == 0 or not free.any():
            return 1.0 - 2.0 * self.c @ b + b @ self.A @ b
        return relaxed_value(self.A, self.c, self.t, self.state, self.r, b)


KINDS = ["cold", "far away", "nearby"]


@pytest.mark.parametrize("kind", KINDS)
@seeds(300, chunk=50)
def test_what_is_settled_is_the_optimum(seed, kind):
    """By weak duality: the value of its b is no less than the bound of any, its own included."""
    case = Case(seed)
    if not (case.t > 0).all():
        return
    b, level, _, is_settled = case.settled(case.start(kind))
    assert (b[case.state == OUT] == 0.0).all()
    assert np.isfinite(level)
    long = case.descended()[0]
    assert case.bound(b) <= case.primal(long) + 1e-9
    if is_settled:
        assert case.primal(b) - case.bound(b) <= 1e-6
        assert case.bound(b) >= case.bound(long) - 1e-6


def test_nearly_every_node_is_settled():
    cases = [case for case in map(Case, range(300)) if (case.t > 1e-6).all()]
    settled = [case.settled(case.start("nearby"))[-1] for case in cases]
    assert len(cases) > 200
    assert np.mean(settled) > 0.9


@seeds(60, chunk=20)
def test_many_features_are_settled_from_nothing(seed):
    case = Case(seed, p=60, rows=90)
    case.r = min(case.r, 8)
    b, level, multiplies, is_settled = case.settled(np.zeros(60))
    long = case.descended()[0]
    assert case.bound(b) <= case.primal(long) + 1e-9
    assert multiplies > 0.0
    if not is_settled:
        return
    assert case.bound(b) >= case.bound(long) - 1e-6
    # From its own solution and level there is nothing left to do.
    again, _, less, is_settled = case.settled(b, level=level)
    assert is_settled
    assert less <= multiplies
    assert case.bound(again) >= case.bound(b) - 1e-9


@seeds(60, chunk=20)
def test_a_bound_at_the_cutoff_is_enough(seed):
    case = Case(seed, p=12, rows=30)
    start = case.bound(np.zeros(12))
    best = case.bound(case.settled(np.zeros(12))[0])
    if best - start < 1e-6:
        return
    goal = start + 0.5 * (best - start)
    b, _, _, is_settled = case.settled(np.zeros(12), cutoff=goal)
    if is_settled:
        assert case.bound(b) >= goal - 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_features_that_are_in_are_fitted_where_nothing_is_left_to_choose(seed):
    case = Case(seed, p=8, rows=25)
    case.state = case.rng.choice(np.array([IN, OUT], dtype=np.int8), 8)
    case.r = 0
    inside = np.flatnonzero(case.state == IN)
    b, _, _, is_settled = case.settled(np.zeros(8))
    assert is_settled
    part = case.A[np.ix_(inside, inside)]
    np.testing.assert_allclose(b[inside], np.linalg.solve(part, case.c[inside]), atol=1e-9)


@pytest.mark.parametrize("copies", [2, 5])
def test_singular_working_sets_are_left_to_descent(copies):
    """Copies that are all IN, without charges for them: no factor, and it is not settled."""
    A, c = np.ones((copies, copies)), np.full(copies, 0.5)
    t, state = np.full(copies, 1e-3), np.full(copies, IN, dtype=np.int8)
    infinite, b = np.full(copies, np.inf), np.zeros(copies)
    relaxed = Relaxed(A, c, t, -infinite, infinite)
    _, _, is_settled = settle(relaxed, np.sqrt(t), state, 0, b, 0.0, 2.0, room_for(copies))
    assert not is_settled
    assert (b == 0.0).all()


# Small matrices ----------------------------------------------------------------------------


def matrix(seed):
    rng = np.random.default_rng(seed)
    m, room = int(rng.integers(1, 20)), int(rng.integers(0, 4))
    M = rng.standard_normal((m + 5, m))
    M = M.T @ M / m
    # Whatever is below the diagonal or outside must not be read.
    U = np.full((m + room, m + room), np.nan)
    U[:m, :m][np.triu_indices(m)] = M[np.triu_indices(m)]
    return rng, M, U, m


@pytest.mark.parametrize("seed", range(40))
def test_factors_solutions_and_inverses_are_those_of_numpy(seed):
    rng, M, U, m = matrix(seed)
    assert factor(U, m)
    upper = np.triu(np.nan_to_num(U[:m, :m]))
    np.testing.assert_allclose(upper, np.linalg.cholesky(M).T, rtol=1e-9, atol=1e-11)
    right = rng.standard_normal(m)
    x = np.append(right, [np.nan, np.nan])
    solve_factored(U, x, m)
    np.testing.assert_allclose(M @ x[:m], right, rtol=1e-7, atol=1e-8)
    assert np.isnan(x[m:]).all()
    V, P = np.full_like(U, np.nan), np.full_like(U, np.nan)
    invert_factored(U, V, P, m)
    inverse = np.linalg.inv(M)
    np.testing.assert_allclose(P[:m, :m], inverse, rtol=1e-7, atol=1e-9 * np.abs(inverse).max())
    np.testing.assert_array_equal(P[:m, :m], P[:m, :m].T)


@pytest.mark.parametrize("seed", range(20))
def test_singular_and_indefinite_matrices_have_no_factor(seed):
    _, M, _, m = matrix(seed)
    smallest = np.linalg.eigvalsh(M)[0]
    assert not factor(M - (smallest + 1e-3) * np.eye(m), m)
    wide = np.random.default_rng(seed).standard_normal((m, m + 1))
    assert not factor(wide.T @ wide / m, m + 1)
    assert not factor(np.full((m, m), np.nan), m)
    assert factor(np.zeros((0, 0)), 0)
