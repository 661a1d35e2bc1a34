"""Splits with boxes of their own: what models outside cost, proven anew by the verifier."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.instances import REGIMES, make, make_node
from helpers.seeds import seeds

import bestk
from bestk import Advanced
from bestk.results.certificate import Certificate, SplitRecord
from bestk.verification import ridge_box as profile
from bestk.verification.ridge_box import Box, value_outside


def random_box(rng, p):
    lo, hi = -rng.exponential(0.3, p), rng.exponential(0.3, p)
    lo[rng.random(p) < 0.2] = -np.inf
    hi[rng.random(p) < 0.2] = np.inf
    return Box(lo, hi)


def least_outside(A, c, inner: Box, outer: Box) -> float:
    """min of 1 - 2 c'b + b'A b with some b_j beyond an edge of `inner` that `outer` lacks."""
    best, ridge = np.inf, np.linalg.solve(A, c)
    inverse = np.linalg.inv(A)
    for j in range(len(c)):
        sides = [(inner.hi[j], ridge[j] > inner.hi[j], inner.hi[j] < outer.hi[j])]
        sides += [(inner.lo[j], ridge[j] < inner.lo[j], inner.lo[j] > outer.lo[j])]
        for edge, is_beyond, is_narrower in sides:
            if is_narrower:
                cost = 0.0 if is_beyond else (edge - ridge[j]) ** 2 / inverse[j, j]
                best = min(best, 1.0 - c @ ridge + cost)
    return best


@pytest.mark.parametrize("conditioning", [1.0, 1e-3, 1e-6])
def test_the_value_outside_is_the_profile_of_the_ridge_solution(conditioning):
    rng = np.random.default_rng(0)
    for _ in range(300):
        p = int(rng.integers(1, 12))
        M = rng.standard_normal((p, p)) * np.geomspace(1.0, conditioning, p)[:, None]
        M /= np.sqrt((M**2).sum(axis=0))
        A = M.T @ M
        z = rng.standard_normal(p)
        c = M.T @ (z / np.linalg.norm(z)) * rng.random()
        inner, outer = random_box(rng, p), random_box(rng, p)
        wanted = min(least_outside(A, c, inner, outer), 1.0)
        try:
            value = value_outside(A, c, 0.0, p, inner, outer)
        except ValueError:
            assert np.linalg.eigvalsh(A)[0] < 1e-12
            continue
        if np.isinf(value):
            assert wanted == 1.0
            continue
        least = np.linalg.eigvalsh(A)[0]
        assert value <= wanted + 1e-14 / least
        if least > 1e-4:
            assert value >= wanted - 1e-9


@seeds(25, chunk=25)
@pytest.mark.parametrize("regime", REGIMES)
def test_no_model_outside_is_below(seed, regime):
    """All supports of tiny instances, at points on and beyond the edges of random boxes."""
    case = make_node(seed + 70_000, regime)
    if case is None:
        return
    form, rng = case.form, np.random.default_rng(seed)
    outer, inner = Box(form.lo, form.hi), random_box(rng, form.p)
    inner = Box(np.maximum(inner.lo, outer.lo), np.minimum(inner.hi, outer.hi))
    try:
        value = value_outside(form.A, form.c, form.eps, case.k, inner, outer)
    except ValueError:
        return
    for support in case.values:
        index = np.array(support, dtype=np.intp)
        if len(index) == 0:
            continue
        A, c = form.A[np.ix_(index, index)], form.c[index]
        for _ in range(4):
            b = rng.standard_normal(len(index)) * rng.exponential(1.0)
            b = np.clip(b, form.lo[index], form.hi[index])
            if (b < inner.lo[index]).any() or (b > inner.hi[index]).any():
                assert 1.0 - 2.0 * c @ b + b @ A @ b >= value - 1e-12 * (1 + b @ b)


@pytest.fixture
def boxed(narrowed_at_once):
    return boxed_proof(3)


def boxed_proof(seed: int) -> tuple[Certificate, np.ndarray, np.ndarray]:
    """An instance whose certificate has a split with a box."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((14, 10))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(14)
    advanced, bounds = Advanced(enumeration=False), (-100.0, 100.0)
    result = bestk.solve(X, y, k=3, alpha=0.01, bounds=bounds, advanced=advanced)
    certificate = result.certificate
    assert any(len(split.lower) for split in certificate.splits)
    assert certificate.verify(X, y)
    return certificate, X, y


def with_boxes(certificate: Certificate, change) -> Certificate:
    splits = [
        split._replace(lower=change(split.lower), upper=change(split.upper))
        if len(split.lower)
        else split
        for split in certificate.splits
    ]
    return replace(certificate, splits=tuple(splits))


@pytest.mark.parametrize("exact", [False, True])
def test_a_box_that_leaves_out_good_models_is_worth_no_more_than_they_are(boxed, exact):
    certificate, X, y = boxed
    assert certificate.verify(X, y, exact=exact)
    narrower = with_boxes(certificate, lambda side: 0.5 * side)
    check = narrower.verify(X, y, exact=exact)
    assert not check
    assert "proven only to" in check.failures[-1]
    wider = with_boxes(certificate, lambda side: np.where(side > 0, np.inf, -np.inf))
    check = wider.verify(X, y, exact=exact)
    assert not check  # the bounds were for the box
    assert "proven only to" in check.failures[-1]


def test_without_the_profile_a_narrow_box_would_be_believed(boxed, monkeypatch):
    """The test above can fail."""
    certificate, X, y = boxed
    monkeypatch.setattr("bestk.verification.splits.value_outside", lambda *args: np.inf)
    assert with_boxes(certificate, lambda side: 0.5 * side).verify(X, y)


@seeds(200, chunk=50)
def test_exact_and_floating_point_agree_about_boxes(seed, narrowed_at_once):
    instance = make(seed + 80_000)
    result = instance.solve(advanced=Advanced(enumeration=False), node_limit=100)
    certificate, weight = result.certificate, instance.options.get("sample_weight")
    if not any(len(split.lower) for split in certificate.splits) or instance.X.size > 150:
        return
    rough = certificate.verify(instance.X, instance.y, weight, n_threads=1)
    assert rough
    exact = certificate.verify(instance.X, instance.y, weight, exact=True)
    assert exact, str(exact)
    slack = 1e-12 * result.yy
    assert rough.lower_bound <= exact.lower_bound * (1 + 1e-9) + slack
    assert rough.lower_bound >= exact.lower_bound * (1 - 1e-8) - slack


@seeds(6)
def test_exact_and_floating_point_agree_about_larger_boxes(seed, narrowed_at_once):
    certificate, X, y = boxed_proof(seed)
    rough, exact = certificate.verify(X, y), certificate.verify(X, y, exact=True)
    assert exact, str(exact)
    assert rough.lower_bound == pytest.approx(exact.lower_bound, rel=1e-8)


def test_boxes_are_checked_before_use(boxed):
    certificate, X, y = boxed
    number = next(i for i, split in enumerate(certificate.splits) if len(split.lower))
    split: SplitRecord = certificate.splits[number]
    for wrong, reason in [
        (split._replace(lower=split.lower[1:]), "two sides"),
        (split._replace(upper=split.upper[:0]), "two sides"),
        (split._replace(lower=np.abs(split.lower) + 1.0), "zero"),
        (split._replace(upper=np.full_like(split.upper, np.nan)), "zero"),
    ]:
        splits = (*certificate.splits[:number], wrong, *certificate.splits[number + 1 :])
        check = replace(certificate, splits=splits).verify(X, y)
        assert not check
        assert reason in check.failures[0]


def test_boxes_survive_a_file(boxed, tmp_path):
    certificate, X, y = boxed
    certificate.save(tmp_path / "proof.npz")
    again = Certificate.load(tmp_path / "proof.npz")
    for one, other in zip(certificate.splits, again.splits, strict=True):
        np.testing.assert_array_equal(one.lower, other.lower)
        np.testing.assert_array_equal(one.upper, other.upper)
    assert again.verify(X, y)
    arrays = certificate.to_arrays()
    before = {name: array for name, array in arrays.items() if "box" not in name}
    del before["splits.lower"], before["splits.upper"]
    assert not any(len(split.lower) for split in Certificate.from_arrays(before).splits)


def test_a_singular_matrix_proves_no_box():
    A, c = np.ones((2, 2)), np.array([0.5, 0.5])
    box = Box(np.array([-0.1, -0.1]), np.array([0.1, 0.1]))
    outer = Box(np.full(2, -np.inf), np.full(2, np.inf))
    with pytest.raises(ValueError, match="box is not proven"):
        value_outside(A, c, 1e-16, 2, box, outer)
    assert np.isinf(profile.value_outside(A, c, 1e-16, 2, outer, outer))
