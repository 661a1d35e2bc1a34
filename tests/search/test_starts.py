"""Supports to start from: grown to the size that is allowed, and improved, before the search."""

import numpy as np
import pytest

import bestk
from bestk import Advanced

GREEDY = Advanced(beam_width=1)


def alike(seed, n=40, p=30):
    """Neighbours are nearly copies, as in spectra: there greedy models are often poor."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.standard_normal((n, p)), axis=1)
    return X, X[:, [3, 12, 21]] @ [1.0, -2.0, 1.5] + 0.5 * rng.standard_normal(n)


def with_one_more(X, y, support):
    """The smallest objective of a support with one more feature."""
    others = np.setdiff1d(np.arange(X.shape[1]), support)
    return min(float(np.linalg.lstsq(X[:, [*support, j]], y, rcond=None)[1][0]) for j in others)


@pytest.mark.parametrize("seed", range(20))
def test_a_path_goes_on_from_the_size_before(seed):
    """Without any search: each size is at least as good as the last one and its best addition."""
    X, y = alike(seed)
    path = bestk.solve_path(X, y, ks=range(1, 8), node_limit=0, advanced=GREEDY)
    for smaller, larger in zip(path.results, path.results[1:], strict=False):
        best = with_one_more(X, y, smaller.support)
        assert larger.objective <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_an_initial_support_is_completed(seed):
    X, y = alike(seed)
    start = bestk.solve(X, y, k=5).support
    found = bestk.solve(X, y, k=6, initial_support=start, node_limit=0, advanced=GREEDY)
    assert found.objective <= with_one_more(X, y, start) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_what_must_be_included_stays(seed):
    X, y = alike(seed)
    options = {"include": [5, 6], "node_limit": 0, "advanced": GREEDY}
    for result in bestk.solve_path(X, y, ks=range(2, 6), **options).results:
        assert {5, 6} <= set(result.support.tolist())
        assert len(result.support) <= result.k
