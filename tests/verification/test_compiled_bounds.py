"""Compiled bounds of nodes and passes over cells: like their twins, and never too high."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from helpers.prover import (
    FREE,
    IN,
    OUT,
    certify,
    certify_by_enumeration,
    make_problem,
    values_of_supports,
)

from bestk.verification.cover import Walk
from bestk.verification.evidence import from_rows
from bestk.verification.nodes import FloatNodes
from bestk.verification.numerics.bounds import cell_totals, is_definite, left, prove
from bestk.verification.numerics.cells import pass_cells
from bestk.verification.numerics.rounding import UNIT, gamma
from bestk.verification.proving import FloatBackEnd, enumeration_for


@pytest.mark.parametrize("seed", range(40))
def test_totals_of_a_cell_are_the_largest_of_its_supports(seed):
    """Exactly that for the cell; for violated fixings at least that, and not much more."""
    rng = np.random.default_rng(seed)
    m, k = 7, int(rng.integers(0, 5))
    phi = rng.choice([*rng.random(m), 0.0, np.inf], m, p=[*[0.9 / m] * m, 0.07, 0.03])
    state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), m, p=[0.7, 0.15, 0.15])
    phi[state == OUT] = 0.0
    free = rng.permutation(np.flatnonzero(state == FREE))
    outs, ins = free[: seed % 3], free[seed % 3 : seed % 3 + seed % 2]
    best_out = float(phi[outs].max(initial=-1.0))
    weakest_in = float(phi[ins].min()) if len(ins) else -1.0
    inside, allowed = set(np.flatnonzero(state == IN)), set(np.flatnonzero(state != OUT))
    sets = [set(S) for size in range(k + 1) for S in combinations(range(m), size)]
    cell = [S for S in sets if inside <= S <= allowed]
    violating = [S for S in cell if S & set(outs) or not set(ins) <= S]
    found = cell_totals(phi, state, k, best_out, weakest_in)
    for total, supports in zip(found, (cell, violating), strict=True):
        expected = max((phi[list(S)].sum() for S in supports), default=-np.inf)
        assert total == pytest.approx(expected, rel=1e-12) or (len(ins) and total >= expected)
        assert total >= expected * (1 - 1e-15 * m)


def test_what_is_left_of_a_total():
    assert left(1.0, -np.inf, 3) == np.inf  # no support
    assert left(1.0, np.inf, 3) == left(-np.inf, 1.0, 3) == left(np.nan, 1.0, 3) == -np.inf
    assert left(1.0, 0.25, 3) == 0.75 - gamma(15) * 5.25


@pytest.mark.parametrize("seed", range(40))
def test_definite_matrices_are_those_with_a_cholesky_factor(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    B = rng.standard_normal((m, m + 2))
    Q = B @ B.T / m
    least = np.linalg.eigvalsh(Q)[0]
    for shift, expected in ((0.9 * least, True), (1.1 * least, False)):
        padded = np.full((m + 2, m + 2), np.nan)
        padded[:m, :m] = Q - shift * np.eye(m)
        assert is_definite(padded, m) is expected
        if expected:
            factor = np.linalg.cholesky(Q - shift * np.eye(m)).T
            np.testing.assert_allclose(np.triu(padded[:m, :m], 1), np.triu(factor, 1), atol=1e-9)
    assert not is_definite(np.full((1, 1), np.nan), 1)


@pytest.mark.parametrize("seed", range(20))
def test_charges_are_proven_or_lowered_or_refused(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 20))
    B = rng.standard_normal((m, m + 5))
    B /= np.linalg.norm(B, axis=1)[:, None]
    A = B @ B.T
    A[np.diag_indices(m)] = 1.0
    least, t = np.linalg.eigvalsh(A)[0], np.empty(m)

    def proven(charge):
        return prove(A, m, np.full(m, charge), np.empty((m, m)), t)

    assert proven(0.5 * least)
    assert (t == 0.5 * least).all()
    assert proven(least + 8 * UNIT)
    assert (t <= least).all()
    assert (t >= least - 1e4 * UNIT * (m + 4) ** 2).all()
    assert not proven(least + 1e-6)


def bounds(instance, certificate):
    """own, violation and verdicts of all nodes."""
    weight = instance.options.get("sample_weight")
    evidence = from_rows(certificate, instance.X, instance.y, weight)
    nodes = FloatNodes(certificate, evidence, None)
    enumeration = enumeration_for(certificate, evidence, None)
    found = Walk(certificate, FloatBackEnd(evidence, nodes, enumeration))
    found.run()
    return found.proven


@pytest.mark.parametrize("seed", range(60))
def test_bounds_of_the_loop_are_those_of_matrix_products(seed, force):
    """Boxes, intercepts, included features: all that problems have."""
    instance = make_problem(seed)
    if len(instance.y) == 0 or np.ptp(instance.y) == 0:
        pytest.skip("no variation")
    certificate = certify(instance, seed, blocks=False)
    # Charges that fit, that must be lowered, and that are wrong.
    first = certificate.splits[0]
    larger = first._replace(t=first.t * (1.0 + 1e-15) if seed % 2 else first.t + 0.1)
    certificate = replace(certificate, splits=(larger, *certificate.splits[1:]))
    looped = bounds(instance, certificate)
    force.verifier_calls_for_every_split()
    called = bounds(instance, certificate)
    assert looped.broken == called.broken
    np.testing.assert_array_equal(looped.verdict, called.verdict)
    np.testing.assert_allclose(looped.own, called.own, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(looped.violation, called.violation, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_cells_that_are_passed_have_no_support_below_the_target(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, 9)) + rng.standard_normal((25, 1))
    if seed % 4 == 0:
        X[:, 3] = X[:, 1] + 1e-9 * rng.standard_normal(25)
    y, k = X[:, :2].sum(axis=1) + rng.standard_normal(25), int(rng.integers(1, 6))
    values = values_of_supports(X, y, k)
    evidence = from_rows(certify_by_enumeration(X, y, k), X, y, None)
    cells = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), (30, 9), p=[0.7, 0.1, 0.2])
    n_in, n_out = (np.count_nonzero(cells == kind, axis=1) for kind in (IN, OUT))
    cells = cells[(n_in <= k) & (n_out <= 9 - k)]
    least = []
    for state in cells:
        inside, allowed = set(np.flatnonzero(state == IN)), set(np.flatnonzero(state != OUT))
        least.append(min(v for S, v in values.items() if inside <= set(S) <= allowed))
    target = float(np.median(least)) * (1 + 1e-7)
    chosen, passed = np.flatnonzero(rng.random(len(cells)) < 0.8), np.zeros(len(cells), bool)
    given = (evidence.A.A, evidence.c, evidence.eps, evidence.k, target, 1e-6)
    pass_cells(*given, cells, chosen, passed)
    for i, is_passed in zip(chosen, passed, strict=False):
        assert not is_passed or least[i] >= target * (1 - 1e-12)
        n_in, n_free = (np.count_nonzero(cells[i] == kind) for kind in (IN, FREE))
        if seed % 4 and least[i] > target * (1 + 1e-6) and 0 < k - n_in < n_free:
            assert is_passed  # nothing comes close
