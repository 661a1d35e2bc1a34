"""Sums of parts of a table: whatever the parts, the exact sums up to the error that is told."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.seeds import seeds

from bestk.problem.parts import Part
from bestk.problem.rows import moments_of

KINDS = ("plain", "far from zero", "drifting", "weights", "constant", "tiny", "huge", "zero weight")


def rows_of(seed):
    """(kind, X, y, weight, cuts) of a small table with awkward columns."""
    rng = np.random.default_rng([seed, 41])
    kind = KINDS[seed % len(KINDS)]
    n, p = int(rng.integers(1, 60)), int(rng.integers(1, 7))
    X, y = rng.standard_normal((n, p)), 3.0 + rng.standard_normal(n)
    weight = None
    if kind == "far from zero":
        X += 10.0 ** rng.uniform(0, 7, p)
    elif kind == "drifting":
        X += np.linspace(0, 1e4, n)[:, None] * rng.standard_normal(p)
        y += np.linspace(0, 1e3, n)
    elif kind == "weights":
        weight = rng.uniform(0.0, 2.0, n)
    elif kind == "zero weight":
        weight = np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0.5, 2.0, n))
    elif kind == "constant":
        X[:, 0], X[:, -1] = 0.1, -1e6 / 3.0
    elif kind in ("tiny", "huge"):
        X *= {"tiny": 1e-60, "huge": 1e60}[kind]
    cuts = np.sort(rng.integers(0, n + 1, int(rng.integers(0, 7))))
    edges = [0, *cuts.tolist(), n]
    return (
        kind,
        X,
        y,
        weight,
        [slice(a, b) for a, b in pairwise(edges) if a < b],
    )


def joined(parts, rng):
    """Neighbours or not, in any order."""
    parts = list(parts)
    while len(parts) > 1:
        i, j = sorted(rng.choice(len(parts), 2, replace=False))
        second = parts.pop(j)
        parts[i] = parts[i] + second
    return parts[0]


def exact_sums(X, y, weight, centre):
    """Products of [X y] in extended precision."""
    Z = np.column_stack([X, y]).astype(np.longdouble)
    w = np.ones(len(y), dtype=np.longdouble) if weight is None else weight.astype(np.longdouble)
    if centre and w.sum() > 0:
        Z = Z - (w @ Z) / w.sum()
    return (Z.T * w) @ Z


@seeds(1600, chunk=200)
@pytest.mark.parametrize("centre", [False, True])
def test_parts_give_the_sums_up_to_their_error(seed, centre):
    kind, X, y, weight, cuts = rows_of(seed)
    rng = np.random.default_rng([seed, 42])
    parts = [
        Part.of_rows(X[cut], y[cut], None if weight is None else weight[cut], centre)
        for cut in cuts
    ]
    moments = joined(parts, rng).sums()
    moments = moments.centred() if centre else moments
    exact = exact_sums(X, y, weight, centre)
    found = np.block([[moments.gram, moments.moment[:, None]], [moments.moment[None], moments.yy]])
    live = found.diagonal() > 0.0
    size = np.sqrt(np.abs(exact.diagonal()))
    off = np.abs(found - exact)[np.ix_(live, live)] / np.outer(size, size)[np.ix_(live, live)]
    assert moments.error >= off.max(initial=0.0)
    assert moments.n_rows == len(y)
    if kind == "constant" and centre:
        assert not live[0]
    # What was taken for a constant is one, up to rounding.
    scale = np.abs(np.column_stack([X, y])).max(axis=0)
    total = len(y) if weight is None else weight.sum()
    assert (exact.diagonal()[~live] <= total * (1e-13 * scale[~live]) ** 2).all()


def test_errors_stay_small_where_one_origin_for_all_would_lose_every_digit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3)) + np.repeat(np.arange(40.0) * 1e6, 100)[:, None]
    y = rng.standard_normal(4000)
    cuts = [slice(i, i + 100) for i in range(0, 4000, 100)]
    total = joined([Part.of_rows(X[c], y[c], None, True) for c in cuts], rng)
    assert total.sums().centred().error < 1e-12
    assert moments_of(X, y, None, True).error < 1e-11


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_triangles_of_parts_stand_for_all_rows(seed, centre):
    _, X, y, weight, cuts = rows_of(seed)
    parts = [
        Part.of_rows(X[c], y[c], None if weight is None else weight[c], centre, with_triangle=True)
        for c in cuts
    ]
    rows = joined(parts, np.random.default_rng(seed)).rows()
    exact = exact_sums(X, y, weight, centre)
    found = np.column_stack([rows.X, rows.y])
    size = np.abs(np.column_stack([X, y])).max(axis=0)
    np.testing.assert_allclose(
        found.T @ found / np.outer(size, size),
        (exact / np.outer(size, size)).astype(float),
        atol=1e-12 * len(y), rtol=1e-10,
    )  # fmt: skip


def test_sums_of_rows_that_weigh_nothing():
    X, y = np.ones((3, 2)), np.ones(3)
    nothing = Part.of_rows(X, y, np.zeros(3), True)
    something = Part.of_rows(2.0 * X + np.arange(3)[:, None], y, None, True)
    for total in (nothing + something, something + nothing):
        np.testing.assert_allclose(total.moments.gram, 2.0)
        assert total.moments.weight == 3.0
