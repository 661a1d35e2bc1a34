"""Verification by columns: what products of all features prove, without forming them."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.forcing import forced
from helpers.instances import REGIMES, Instance, make, make_medium, tolerance
from helpers.mutations import without_node
from helpers.prover import (
    EMPTY,
    HARD,
    Form,
    assert_refused,
    certify,
    certify_by_enumeration,
    checked,
    is_tiny,
    make_problem,
    sealed,
    values_of_supports,
)
from helpers.seeds import seeds

import bestk
from bestk.base.fingerprint import rows_digest
from bestk.verification.evidence import from_rows
from bestk.verification.numerics.matrices import ByColumns, Stored
from bestk.verification.supports.enumeration import Enumeration
from bestk.verification.supports.single import Judge


def both(instance: Instance, certificate):
    """The same verification by columns and by products."""
    with forced() as force:
        force.wide_verifier()
        found = checked(instance, certificate)
    return found, checked(instance, certificate)


def agree(instance: Instance, certificate) -> None:
    found, stored = both(instance, certificate)
    assert bool(found) == bool(stored), f"{found}\n{stored}"
    if not stored:  # signs on copies with opposite signs: no products can judge these
        assert instance.regime == "duplicate"
        assert "bounds" in instance.options
        return
    slack = 1e-9 * stored.objective + 1e-12 * Form(instance).yy
    assert abs(found.lower_bound - stored.lower_bound) <= slack
    assert found.objective == stored.objective
    if instance.regime not in HARD:
        assert found.assumptions == stored.assumptions
    if not is_tiny(instance, certificate.objective):
        more = certificate.objective * (1 + 1e-6)
        greedy = replace(certificate, lower_bound=more, objective=more)
        for refused in both(instance, greedy):
            assert_refused(refused)


@seeds(12, start=40)
@pytest.mark.parametrize("regime", REGIMES)
def test_random_proofs_are_judged_as_by_products(seed, regime):
    """Charges far above the penalty, and blocks: proven on products of the features they need."""
    instance = make_problem(seed, regime)
    agree(instance, certify(instance, seed))


@seeds(200, chunk=20)
def test_proofs_of_the_search_by_rows_hold_and_prove_no_more_than_is_true(seed, wide_search):
    instance = make(seed + 40_000)
    certificate = instance.solve(node_limit=60).certificate
    found, stored = both(instance, certificate)
    optimum, yy = instance.brute_force(), Form(instance).yy
    assert found, str(found)
    assert stored, str(stored)
    slack = tolerance(instance, optimum, yy)
    assert found.lower_bound <= optimum + slack
    if instance.regime not in HARD:
        assert abs(found.lower_bound - stored.lower_bound) <= slack


@pytest.mark.parametrize("seed", range(8))
def test_trees_of_the_search_by_rows_need_all_their_leaves(seed, wide_search, wide_verifier):
    instance = make_medium(seed)
    certificate = instance.solve(advanced=bestk.Advanced(enumeration=False)).certificate
    assert checked(instance, certificate)
    tree = certificate.tree
    leaves = np.flatnonzero(tree.is_leaf & (tree.feature >= 0))[:2]
    assert len(leaves) > 1
    for leaf in leaves:
        found = checked(instance, without_node(certificate, leaf))
        assert not found, leaf
        assert "proven only to" in found.failures[-1]


def test_the_last_feature_needs_no_products_among_the_others(wide_verifier):
    rng = np.random.default_rng(0)
    for k in (1, 2, 4):
        X, y = rng.standard_normal((15, 9)), rng.standard_normal(15)
        X[:, 4] = X[:, 3]
        values = values_of_supports(X, y, k)
        evidence = from_rows(certify_by_enumeration(X, y, k), X, y, None)
        inside, free = np.arange(k - 1), np.arange(k - 1, 9)
        order = sorted(v for S, v in values.items() if set(inside) <= set(S))
        for rank in (0, 2, len(order) - 1):
            target = order[rank] * (1 + 1e-9)
            search = Enumeration(evidence, target, Judge(evidence, target), None)
            found = search._hits_of_one(inside, free)
            expected = {S for S, v in values.items() if set(inside) <= set(S) and v < target}
            assert {tuple(sorted(S.tolist())) for S in found} == expected


def test_charges_above_the_penalty_need_products_of_few_features(force, wide_verifier):
    instance = Instance(
        regime="plain", X=np.random.default_rng(0).standard_normal((30, 8)),
        y=np.random.default_rng(1).standard_normal(30), k=2, options={"alpha": 1.0},
    )  # fmt: skip
    certificate = certify(instance, blocks=False)
    assert checked(instance, certificate)
    force.verifier_forms_products_of(7)
    found = checked(instance, certificate)
    assert any("too many" in reason for reason in found.failures), str(found)


@pytest.mark.parametrize("kind", ["float32", "int8", "fortran"])
def test_other_types_and_layouts(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (30, 2500)).astype(np.int8)
    y = X[:, :3].sum(axis=1) + rng.standard_normal(30).astype(np.float32)
    X = {"float32": X.astype(np.float32), "int8": X, "fortran": np.asfortranarray(X * 1.0)}[kind]
    result = bestk.solve(X, y, k=2, alpha=1.0, node_limit=20, fit_intercept=True, n_threads=1)
    found = result.certificate.verify(X, y, n_threads=1)
    assert found, str(found)
    assert isinstance(from_rows(result.certificate, X, y, None).A, ByColumns)


@pytest.mark.parametrize("factor", [1e-180, 1e-120, 1e120, 1e180])
def test_extreme_units(factor, wide_verifier):
    instance = make(0, "plain")
    instance.options = {}
    plain = certify(instance)
    scaled = replace(instance, X=instance.X * [factor, *[1.0] * (instance.X.shape[1] - 1)])
    certificate = replace(plain, coef=np.append(plain.coef[:1] / factor, plain.coef[1:]))
    found = checked(scaled, sealed(certificate, rows_digest(scaled.X, scaled.y)))
    assert found, str(found)


@pytest.mark.parametrize("factor", [2.0**-900, 2.0**900])
@pytest.mark.parametrize("centre", [False, True])
def test_extreme_weights(factor, centre, wide_verifier):
    instance = make(0, "plain")
    weight = np.random.default_rng(0).random(len(instance.y))
    instance.options = {"sample_weight": weight, "fit_intercept": centre}
    plain = certify(instance)
    scaled = replace(instance, options={"sample_weight": factor * weight, "fit_intercept": centre})
    objective = plain.objective * factor
    certificate = replace(plain, objective=objective, lower_bound=objective)
    found = checked(scaled, sealed(certificate, rows_digest(scaled.X, scaled.y, factor * weight)))
    assert found, str(found)


def test_the_matrices_are_interchangeable():
    rng = np.random.default_rng(0)
    Z, ridge = rng.standard_normal((7, 4)), rng.random(7)
    Z *= np.sqrt((1 - ridge) / (Z**2).sum(axis=1))[:, None]
    by, stored = ByColumns(Z, ridge), Stored(Z @ Z.T + np.diag(ridge))
    order, some = rng.permutation(7), np.array([5, 0, 2])
    G, t = rng.standard_normal((3, 3)), rng.random(3)
    for name, args in {"block": [order], "between": [some, np.array([1, 6])],
                       "blocks": [np.array([[0, 3], [5, 1]])]}.items():  # fmt: skip
        np.testing.assert_allclose(getattr(by, name)(*args), getattr(stored, name)(*args))
    np.testing.assert_allclose(by.product(some, G, t)(order), stored.product(some, G, t)(order))
    part = by.restricted(some), stored.restricted(some)
    np.testing.assert_allclose(*(m.block(np.arange(3)) for m in part))
    assert by.penalty(EMPTY).size == 0
    assert stored.penalty(some) is None
