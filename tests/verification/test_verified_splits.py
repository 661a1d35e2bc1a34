"""The verifier's bounds of nodes are below the optimum of the cell, and as in rational numbers."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.instances import make
from helpers.prover import FREE, IN, OUT, Form, certify, values_of_supports

from bestk.results.certificate import SplitRecord
from bestk.verification.evidence import from_rows
from bestk.verification.exact.form import ExactForm, exact_products
from bestk.verification.numerics.rounding import fill_gains, largest_gain
from bestk.verification.splits import ProvenSplit, Task


@pytest.mark.parametrize("seed", range(12))
def test_blocks_of_any_size_bound_every_cell(seed):
    """Clusters of three and more: below the optimum of the cell, and as in rational numbers."""
    rng = np.random.default_rng(seed)
    instance = make(int(rng.integers(100)), "plain")
    X = rng.standard_normal((20, 8)) + 0.7 * rng.standard_normal((20, 1))
    instance = replace(instance, X=X, y=X[:, 0] + rng.standard_normal(20), k=4, options={})
    form = Form(instance)
    order = rng.permutation(8)
    clusters = (order[:3], order[3:7])
    t = np.where(np.isin(np.arange(8), order[7:]), 1.0, 0.0)
    T = np.diag(t)
    for cluster in clusters:
        T[np.ix_(cluster, cluster)] = form.A[np.ix_(cluster, cluster)]
    share = 0.9 / np.linalg.eigvals(np.linalg.solve(form.A, T)).real.max()
    record = SplitRecord(form.live, share * t, clusters,
                         tuple(share * T[np.ix_(c, c)] for c in clusters))  # fmt: skip
    evidence = from_rows(certify(instance), instance.X, instance.y, None)
    products = exact_products(instance.X, instance.y, None, False, range(8))
    exact = ExactForm(certify(instance), *products)
    values = values_of_supports(instance.X, instance.y, 4)
    for _ in range(6):
        state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), 8, p=[0.7, 0.15, 0.15])
        state[np.flatnonzero(state == IN)[4:]] = FREE
        g = np.linalg.solve(form.A, form.c).astype(np.float32) * rng.random()
        free = np.flatnonzero(state == FREE)
        fixed = (free[:1], free[1:3])
        task = Task(0, state, np.arange(8), g.astype(float), *fixed)
        (found,), (true,) = (s.evaluate([task]) for s in
                             (ProvenSplit(evidence, record), exact.split(record)))  # fmt: skip
        assert found.own <= float(true.own) <= found.own + 1e-9
        assert found.violation <= float(true.violation) <= found.violation + 1e-9
        inside, allowed = set(np.flatnonzero(state == IN)), set(np.flatnonzero(state != OUT))
        cell = [v for S, v in values.items() if inside <= set(S) <= allowed]
        assert found.own <= min(cell, default=np.inf)
        for j in fixed[0]:
            lacking = [v for S, v in values.items() if inside <= set(S) <= allowed - {j}]
            assert found.violation <= min(lacking, default=np.inf)
        for j in fixed[1]:
            having = [v for S, v in values.items() if inside | {j} <= set(S) <= allowed]
            assert found.violation <= min(having, default=np.inf)


def test_gains_in_a_box_without_charges():
    """Compiled as in numpy, and never below what is attained: t > 0, t = 0, t < 0."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, error = rng.standard_normal((4, 30)), rng.random(4) * 1e-3
        t = rng.choice([0.0, -1e-13, -0.1, 1e-12, 0.5], 30)
        lo, hi = -rng.choice([0.0, 0.1, 3.0, np.inf], 30), rng.choice([0.0, 0.1, 3.0, np.inf], 30)
        gains, wanted = np.full(u.shape, -1.0), rng.random(u.shape) < 0.8
        fill_gains(u, error, t, lo, hi, wanted, gains)
        expected = largest_gain(u, error[:, None], t, lo, hi)
        np.testing.assert_array_equal(gains[wanted], expected[wanted])
        assert (gains[~wanted] == -1.0).all()
        x = np.linspace(np.maximum(lo, -50.0), np.minimum(hi, 50.0), 101)[:, None]
        v = u + rng.choice([-1.0, 1.0], u.shape) * error[:, None]
        attained = (2 * v * x - t * x * x).max(axis=0)
        assert (expected >= attained - 1e-12 * (1 + np.abs(attained))).all()
