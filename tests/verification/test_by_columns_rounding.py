"""Rounding of the verification by columns, against rational numbers."""

from fractions import Fraction

import numpy as np
import pytest
from helpers.instances import Instance
from helpers.prover import FREE, IN, OUT, Form, certify

from bestk.results.certificate import SplitRecord
from bestk.verification.evidence import from_rows
from bestk.verification.exact.form import ExactForm, exact_products
from bestk.verification.numerics.matrices import ByColumns
from bestk.verification.numerics.rounding import UNIT
from bestk.verification.splits import ProvenSplit, Task


def awkward(seed: int) -> tuple[Instance, bool]:
    """Few rows, many features, large means, weights and mixed units; is there an intercept?"""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 12)), int(rng.integers(2, 9))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-6, 7, p)
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-5, 6)
    options = {"alpha": float(rng.choice([0.0, 1e-3, 1e3]))}
    if seed % 2:
        options["fit_intercept"] = True
        X, y = X + 10.0 ** rng.integers(0, 12) * X.std(axis=0), y + 1e9 * y.std()
    if seed % 3 == 0:
        options["sample_weight"] = rng.random(n) * 10.0 ** rng.integers(-4, 5)
    return Instance(regime="plain", X=X, y=y, k=2, options=options), bool(seed % 2)


def exact_form(instance: Instance, evidence) -> tuple[np.ndarray, np.ndarray]:
    """(A, c) of the data in the units of the evidence, rounded only in the end."""
    options, p = instance.options, instance.X.shape[1]
    weight, centre = options.get("sample_weight"), options.get("fit_intercept", False)
    G, denominator = exact_products(instance.X, instance.y, weight, centre, range(p))
    unit = [Fraction(float(x)) for x in evidence.to_form]
    whole = Fraction(evidence.unit)
    A = np.empty((p, p), dtype=object)
    for i in range(p):
        for j in range(p):
            value = Fraction(int(G[i, j]), denominator) + (i == j) * Fraction(options["alpha"])
            A[i, j] = value / (unit[i] * unit[j] * whole)
    c = np.array([Fraction(int(G[i, p]), denominator) / (unit[i] * whole) for i in range(p)])
    return A, c


@pytest.mark.parametrize("seed", range(60))
def test_products_are_known_as_well_as_is_said(seed, wide_verifier):
    instance, _ = awkward(seed)
    certificate = certify(instance, blocks=False)
    evidence = from_rows(certificate, instance.X, instance.y, instance.options.get("sample_weight"))
    p = len(evidence.live)
    assert isinstance(evidence.A, ByColumns)
    assert p == instance.X.shape[1]
    A, c = exact_form(instance, evidence)
    every = np.arange(p)
    columns = np.vectorize(Fraction)(evidence.A.Z)
    exact = columns @ columns.T + np.diag(np.vectorize(Fraction)(evidence.A.ridge))
    assert np.abs(exact - A).astype(float).max() <= evidence.eps
    assert np.abs(evidence.A.block(every) - A).astype(float).max() <= evidence.eps
    assert np.abs(evidence.A.blocks(every[None])[0] - A).astype(float).max() <= evidence.eps
    assert np.abs(evidence.c - c).astype(float).max() <= evidence.eps
    half = p // 2
    between = evidence.A.between(every[:half], every[half:])
    assert np.abs(between - A[:half, half:]).astype(float).max(initial=0.0) <= evidence.eps
    # The error is not only large enough, it is of the size of some roundings.
    assert evidence.eps <= 1e-6 if seed % 2 else evidence.eps <= 1e-14


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_nodes_are_those_of_rational_numbers(seed, wide_verifier):
    """Charges at the penalty, none at all in a box, far above it, and blocks."""
    rng = np.random.default_rng(seed)
    kind = ("penalty", "none", "above", "blocks")[seed % 4]
    n, p, k = int(rng.integers(3, 10)), 8, 3
    if kind in ("above", "blocks"):
        n += 8
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4, p)
    y = X[:, 0] / X[:, 0].std() + rng.standard_normal(n)
    size = 2.0 / np.abs(X).max()
    options = {"bounds": (-size, size)} if kind == "none" else {"alpha": 0.3 * (X**2).mean()}
    instance = Instance(regime="plain", X=X, y=y, k=k, options=options)
    certificate, form = certify(instance, blocks=False), Form(instance)
    evidence = from_rows(certificate, X, y, None)
    exact = ExactForm(certificate, *exact_products(X, y, None, False, range(p)))
    t, clusters, blocks = np.zeros(p), (), ()
    if kind == "penalty":
        t = options["alpha"] / ((X**2).sum(axis=0) + options["alpha"]) * (1 - 1e-14)
    elif kind == "above":
        t = np.full(p, 0.9 * np.linalg.eigvalsh(form.A)[0])
    elif kind == "blocks":
        order = rng.permutation(p)
        clusters, t[order[5:]] = (order[:3], order[3:5]), 1.0
        T = np.diag(t)
        for cluster in clusters:
            T[np.ix_(cluster, cluster)] = form.A[np.ix_(cluster, cluster)]
        share = 0.9 / np.linalg.eigvals(np.linalg.solve(form.A, T)).real.max()
        t, blocks = share * t, tuple(share * T[np.ix_(c, c)] for c in clusters)
    record = SplitRecord(form.live[::-1].copy() if kind == "penalty" else form.live,
                         t[::-1].copy() if kind == "penalty" else t, clusters, blocks)  # fmt: skip
    tasks = []
    for _ in range(8):
        state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), p, p=[0.6, 0.15, 0.25])
        state[np.flatnonzero(state == IN)[k:]] = OUT
        free = np.flatnonzero(state == FREE)
        g = (form.c * rng.random(p) * (rng.random(p) < 0.7)).astype(np.float32).astype(float)
        used = np.flatnonzero(g)
        tasks.append(Task(0, state, used, g[used], free[:1], free[1:3]))
    found = ProvenSplit(evidence, record).evaluate(tasks)
    true = exact.split(record).evaluate(tasks)
    for mine, exactly in zip(found, true, strict=True):
        for value, best in zip(mine, exactly, strict=True):
            assert value <= float(best) * (1 + 1e-15)
            assert value >= float(best) - 1e-9 * (1 + abs(float(best)))


def test_sums_over_rows_count_among_the_roundings():
    """Equal numbers are rounded the same way again and again."""
    found = []
    for n in (2000, 20_000, 50_000):
        for value in (0.1, 0.3, 0.7):
            Z = np.full((2, n), value / np.sqrt(n))
            matrix, zero = ByColumns(Z, np.zeros(2)), np.zeros(1)
            product = matrix.product(zero.astype(int), np.ones((1, 1)), zero)
            exact = n * Fraction(float(Z[0, 0])) ** 2
            error = abs(Fraction(float(product(np.arange(2))[0, 1])) - exact)
            assert error <= (1 + matrix.n_terms + 6) * Fraction(UNIT) * exact
            found.append(float(error / exact))
    assert max(found) > 7 * UNIT  # what a product of stored numbers may be off
