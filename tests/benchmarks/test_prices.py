"""Prices per feature instead of k, for solvers that know nothing else."""

from itertools import combinations

import numpy as np
import pytest

from benchmarks.harness.prices import forward_penalty, forward_selection, triangle
from benchmarks.harness.referee import refitted

ALPHA = 0.1


def test_penalty_lies_between_the_gains_around_k(data):
    X, y = data
    best = [
        min(refitted(X, y, np.array(s, dtype=int), ALPHA) for s in combinations(range(6), k))
        for k in (1, 2, 3)
    ]
    price = forward_penalty(X, y, 2, ALPHA)
    assert best[1] - best[2] < price < best[0] - best[1]
    assert price == pytest.approx(forward_penalty(X, y, 2, ALPHA, [0, 3]))


def test_forward_selection_takes_what_lowers_the_objective_most(data):
    X, y = data
    chosen, gains = forward_selection(X, y, 4, ALPHA)
    value = float(y @ y)
    for step in range(4):
        now = {
            j: refitted(X, y, np.array([*chosen[:step], j]), ALPHA)
            for j in range(6)
            if j not in chosen[:step]
        }
        assert chosen[step] == min(now, key=now.__getitem__)
        assert gains[step] == pytest.approx(value - min(now.values()))
        value = min(now.values())


@pytest.mark.parametrize("is_dependent", [False, True])
def test_triangle_keeps_every_objective(data, is_dependent):
    X, y = data
    if is_dependent:
        X = np.column_stack([X[:, :5], np.zeros(len(X))])
    R, z = triangle(X, y)
    assert len(R) == 7
    for b in np.random.default_rng(1).standard_normal((5, 6)):
        assert np.sum((z - R @ b) ** 2) == pytest.approx(np.sum((y - X @ b) ** 2))
