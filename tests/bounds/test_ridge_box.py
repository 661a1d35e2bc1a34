"""Boxes from the ridge profile: no model below the cutoff is outside, and trees may use them."""

import numpy as np
import pytest
from helpers.checks import check_result
from helpers.forcing import forced
from helpers.forms import uniform_split
from helpers.instances import REGIMES, batched_optimum, make, make_medium, make_node
from helpers.seeds import seeds

import bestk
from bestk import Advanced, Problem, Status
from bestk.bounds.ridge_box import ridge_box
from bestk.datasets import make_synthetic
from bestk.form.presolve import Presolved


@seeds(30, chunk=30)
@pytest.mark.parametrize("regime", REGIMES)
def test_every_model_below_the_cutoff_is_in_the_box(seed, regime):
    """Also models that are no best fits: points between fits and the cutoff's edge."""
    case = make_node(seed + 50_000, regime)
    if case is None:
        return
    form, problem = case.form, case.form.problem
    smallest = uniform_split(form.A, form.eps).smallest
    rng = np.random.default_rng(seed)
    for cutoff in (case.optimum * (1 + 1e-6) + 1e-9, case.optimum + 0.3 * rng.random()):
        box = ridge_box(form, smallest, case.k, cutoff)
        if box is None:
            continue
        assert (box.lo <= 0.0).all()
        assert (box.hi >= 0.0).all()
        for support, value in case.values.items():
            if value >= cutoff:
                continue
            index = np.array(support, dtype=np.intp)
            coef = problem.fit(form.features[index])[0] / form.scale[index]
            direction = rng.standard_normal(len(index))
            curvature = direction @ form.A[np.ix_(index, index)] @ direction
            room = np.sqrt((cutoff - value) / max(curvature, 1e-300)) * (1 - 1e-9)
            for b in (coef, coef + room * direction, coef - room * direction):
                inside = (b >= form.lo[index]) & (b <= form.hi[index])
                loss = 1.0 - b @ (2.0 * form.c[index] - form.A[np.ix_(index, index)] @ b)
                if b is not coef and not (inside.all() and loss < cutoff):
                    continue  # not a model of this problem, or not below the cutoff
                slack = 1e-9 * (1.0 + np.abs(b))
                assert (b >= box.lo[index] - slack).all()
                assert (b <= box.hi[index] + slack).all()


def test_the_box_is_as_narrow_as_the_profile():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
    form = Presolved.of(Problem.from_data(X, y, alpha=0.5)).form
    inverse = np.linalg.inv(form.A)
    ridge = inverse @ form.c
    least = 1.0 - form.c @ ridge
    cutoff = least + 0.1
    box = ridge_box(form, uniform_split(form.A, form.eps).smallest, 5, cutoff)
    reach = np.sqrt(0.1 * inverse.diagonal())
    np.testing.assert_allclose(box.hi, np.maximum(ridge + reach, 0.0), rtol=1e-5)
    np.testing.assert_allclose(box.lo, np.minimum(ridge - reach, 0.0), rtol=1e-5)
    assert ridge_box(form, 0.0, 5, cutoff) is None


@seeds(400, chunk=50)
def test_trees_in_narrowed_boxes_prove_the_optimum(seed, narrowed_at_once):
    instance = make(seed + 60_000)
    result = instance.solve(advanced=Advanced(enumeration=False), node_limit=400)
    check_result(instance, result, 1e-4)
    weight = instance.options.get("sample_weight")
    assert result.certificate.verify(instance.X, instance.y, weight, n_threads=1)


@pytest.mark.parametrize("seed", range(8))
def test_larger_trees_in_narrowed_boxes(seed, narrowed_at_once):
    instance = make_medium(seed)
    result = instance.solve(advanced=Advanced(enumeration=False))
    assert result.status is Status.OPTIMAL
    check_result(instance, result, 1e-4, batched_optimum(instance))
    assert result.certificate.verify(instance.X, instance.y)


def test_a_narrower_box_saves_nodes_and_is_part_of_the_proof(narrowed_at_once):
    data = make_synthetic(66, 60, 4, rho=0.1, snr=5.0)
    options = {"k": 4, "bounds": (-100.0, 100.0), "advanced": Advanced(enumeration=False)}
    narrow = bestk.solve(data.X, data.y, **options)
    with forced() as force:
        force.never_narrowed()
        wide = bestk.solve(data.X, data.y, **options)
    assert narrow.status is wide.status is Status.OPTIMAL
    assert narrow.support.tolist() == wide.support.tolist()
    assert narrow.n_nodes < wide.n_nodes
    assert any(len(split.lower) for split in narrow.certificate.splits)
    assert not any(len(split.lower) for split in wide.certificate.splits)
    assert narrow.certificate.verify(data.X, data.y)


@pytest.mark.parametrize("part", [0.2, 0.4, 0.5, 0.7, 0.9])
def test_a_resumed_run_keeps_its_box(part, tmp_path, narrowed_at_once):
    """And its path, also if a better split was due when the limit came."""
    data = make_synthetic(66, 60, 4, rho=0.1, snr=5.0)
    options = {"k": 4, "bounds": (-100.0, 100.0), "advanced": Advanced(enumeration=False)}
    whole = bestk.solve(data.X, data.y, **options)
    file = tmp_path / "run.npz"
    first = bestk.solve(
        data.X, data.y, **options, node_limit=int(part * whole.n_nodes), checkpoint=str(file)
    )
    assert first.status is Status.NODE_LIMIT
    result = bestk.resume(str(file), data.X, data.y)
    assert result.n_nodes == whole.n_nodes
    assert result.lower_bound == whole.lower_bound
    assert result.certificate.verify(data.X, data.y)
