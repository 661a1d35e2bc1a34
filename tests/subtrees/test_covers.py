"""Known supports at nodes: the compiled loops against sets."""

from math import comb

import numpy as np
from helpers.seeds import seeds

from bestk.base.constants import FREE, IN, OUT
from bestk.subtrees.covers import (
    NO_COVERS,
    among,
    as_rows,
    contains_one,
    feature_of_cover,
    has_many,
    is_covered,
)


def drawn(seed):
    """(supports, state, r, dual) of p features."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 9))
    sizes = rng.integers(1, p + 1, rng.integers(0, 5))
    supports = [np.sort(rng.permutation(p)[:size]) for size in sizes]
    state = rng.choice([FREE, IN, OUT], p).astype(np.int8)
    return supports, state, int(rng.integers(0, p + 1)), rng.standard_normal(p).round(1)


@seeds(500, chunk=50)
def test_kernels_do_what_sets_do(seed):
    supports, state, r, dual = drawn(seed)
    rows, p = as_rows(supports), len(state)
    inside, out = set(np.flatnonzero(state == IN)), set(np.flatnonzero(state == OUT))
    n_free = int((state == FREE).sum())
    assert is_covered(state, rows) == any(set(s) <= inside for s in supports)
    missing = [set(s) - inside for s in supports if not set(s) & out]
    possible = [left for left in missing if len(left) <= r]
    many = sum(comb(n_free - len(left), r - len(left)) for left in possible) > 16
    assert has_many(state, rows, r, n_free) == many
    chosen = feature_of_cover(state, rows, r, dual)
    nearest = min((len(left) for left in possible if left), default=0)
    if nearest == 0:
        assert chosen == -1
    else:
        first = next(left for left in possible if len(left) == nearest)
        assert chosen in first
        assert abs(dual[chosen]) == max(abs(dual[j]) for j in first)
    assert not is_covered(state, NO_COVERS)
    assert feature_of_cover(state, NO_COVERS, r, dual) == -1
    here = np.flatnonzero(state != OUT)
    kept = [set(here[row[row >= 0]]) for row in among(rows, here, p)]
    assert kept == [set(s) for s in supports if set(s) <= set(here)]


@seeds(200, chunk=50)
def test_supports_that_contain_a_known_one(seed):
    supports, state, r, _ = drawn(seed)
    p, rng = len(state), np.random.default_rng([seed, 1])
    others = np.array([rng.permutation(p)[:r] for _ in range(6)]).reshape(6, r)
    found = contains_one(others, as_rows(supports), p)
    wanted = [any(set(s) <= set(other) for s in supports) for other in others]
    assert found.tolist() == wanted
