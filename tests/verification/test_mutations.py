"""A proof that was changed is refused, and for the right reason."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mutations import changed, node_like, proof, with_tree, without_node
from helpers.prover import EMPTY, Form, checked, sealed

from bestk.base.fingerprint import rows_digest
from bestk.results.certificate import Certificate
from bestk.verification.verify import verify


def test_a_dropped_leaf_is_noticed():
    instance, certificate = proof()
    assert checked(instance, certificate)
    leaves = np.flatnonzero(certificate.tree.is_leaf)
    for leaf in leaves[leaves > 0]:
        found = checked(instance, without_node(certificate, int(leaf)))
        assert not found
        assert "lacks the child" in found.failures[-1] or "it proves" in found.failures[-1]


def test_changed_numbers_prove_less():
    instance, certificate = proof()
    tree = certificate.tree
    closed = node_like(certificate, leaf=True, split=True, enumerated=False)
    tried = node_like(certificate, enumerated=True, root=False)
    row = slice(int(tree.dual_ends[closed - 1]), int(tree.dual_ends[closed]))
    flipped = changed(tree.dual_value, row, -tree.dual_value[row])
    mutations = {
        "sign of a dual": with_tree(certificate, dual_value=flipped),
        "no enumeration": with_tree(certificate, enumerated=changed(tree.enumerated, tried, False)),
        "lower bound": replace(certificate, lower_bound=certificate.lower_bound * (1 + 1e-6),
                               objective=certificate.objective * (1 + 1e-6)),
        "bound above objective": replace(certificate, lower_bound=certificate.objective * 1.01),
        "better objective": replace(certificate, objective=certificate.objective * (1 - 1e-6),
                                    lower_bound=certificate.objective * (1 - 1e-6)),
        "coefficient": replace(certificate, coef=certificate.coef * (1 + 1e-4)),
        "intercept": replace(certificate, intercept=0.1),
    }  # fmt: skip
    for name, mutated in mutations.items():
        assert not checked(instance, mutated), name
        assert not checked(instance, mutated, exact=True), name


def test_raised_charges_are_not_semidefinite():
    instance, certificate = proof()
    for factor in (1.5, 1.01):
        splits = tuple(split._replace(t=split.t * factor) for split in certificate.splits)
        for exact in (False, True):
            found = checked(instance, replace(certificate, splits=splits), exact=exact)
            assert not found
            assert "not positive semidefinite" in found.failures[0]


def test_enumeration_in_another_place_is_as_good():
    instance, certificate = proof()
    flag = np.zeros(len(certificate.tree), dtype=bool)
    flag[0] = True
    found = checked(instance, with_tree(certificate, enumerated=flag))
    assert found or all("fix" not in reason for reason in found.failures)
    split = np.full(len(flag), -1, dtype=np.int32)
    none = np.zeros(len(flag), dtype=np.int64)
    bare = with_tree(
        certificate, enumerated=flag, split=split, in_ends=none, out_ends=none,
        in_index=EMPTY, out_index=EMPTY,
    )  # fmt: skip
    assert checked(instance, bare).lower_bound == pytest.approx(certificate.objective, rel=1e-10)


def test_swapped_sides_and_other_parents_are_noticed():
    instance, certificate = proof()
    tree = certificate.tree
    assert not checked(instance, with_tree(certificate, inside=np.ones(len(tree), dtype=bool)))
    swapped = checked(instance, with_tree(certificate, inside=~tree.inside))
    assert swapped.lower_bound <= certificate.objective * (1 + 1e-12)
    refused = 0
    for node in range(2, len(tree)):
        for parent in range(node):
            if parent != tree.parent[node]:
                other = with_tree(certificate, parent=changed(tree.parent, node, parent))
                found = checked(instance, other)
                assert found.lower_bound <= certificate.objective * (1 + 1e-12)
                refused += not found
    assert refused > 0.9 * (len(tree) - 2)


def test_other_data_or_another_problem_are_noticed():
    instance, certificate = proof()
    X, y = instance.X, instance.y
    ulp = X.copy()
    ulp[3, 2] = np.nextafter(ulp[3, 2], 1.0)
    others = [
        verify(certificate, ulp, y),
        verify(certificate, X[:-1], y[:-1]),
        verify(certificate, X, y + 1e-9),
        verify(certificate, X[:, :-1], y),
        verify(certificate, X, y, np.full(len(y), 2.0)),
        verify(certificate, X[::-1], y[::-1]),
    ]
    far = np.full(8, 9.0)
    problems = {"k": 4, "alpha": 0.2, "fit_intercept": True, "include": np.array([1]),
                "exclude": np.array([7]), "lower": -far, "upper": far}  # fmt: skip
    others += [checked(instance, replace(certificate, **{k: v})) for k, v in problems.items()]
    for found in others:
        assert not found
        assert "fingerprint" in found.failures[0]


def test_a_forged_fingerprint_does_not_help():
    """Proofs are checked on the data: with another k or alpha the same tree proves less."""
    instance, certificate = proof()
    digest = rows_digest(instance.X, instance.y)
    for change in ({"k": 4}, {"alpha": 0.05}):
        forged = sealed(replace(certificate, **change), digest)
        assert not checked(instance, forged)
    digest = rows_digest(instance.X, instance.y * 1.001)
    forged = sealed(certificate, digest)
    assert not verify(forged, instance.X, instance.y * 1.001)


def test_inadmissible_models_are_noticed():
    instance, certificate = proof()
    used = np.flatnonzero(certificate.coef)
    digest = rows_digest(instance.X, instance.y)
    unused = np.setdiff1d(np.arange(8), used)
    for change, reason in (
        ({"k": 2}, "more than k"),
        ({"include": unused[:1]}, "more than k"),
        ({"exclude": used[:1]}, "excluded"),
        ({"upper": np.full(8, 1e-3), "lower": np.full(8, -1e-3)}, "out of its bounds"),
    ):
        found = checked(instance, sealed(replace(certificate, **change), digest))
        assert not found
        assert any(reason in failure for failure in found.failures), (change, found.failures)


def scrambled(rng, certificate: Certificate, value: float) -> Certificate:
    """A few random changes to a proof, all of them well-formed, and a claim of `value`."""
    tree, m = certificate.tree, len(certificate.tree)
    columns = {}
    for name in rng.choice(["parent", "feature", "inside", "split", "enumerated", "dual"], 2):
        at = int(rng.integers(1, m))
        if name == "dual":
            noise = rng.standard_normal(len(tree.dual_value)) * rng.choice([0.01, 0.3, 3.0])
            columns["dual_value"] = (tree.dual_value + noise).astype(np.float32)
        else:
            new = {
                "parent": rng.integers(at), "feature": rng.integers(-1, 8), "inside": True,
                "split": rng.integers(-1, 2), "enumerated": rng.random() < 0.5,
            }[name]  # fmt: skip
            columns[name] = changed(columns.get(name, getattr(tree, name)), at, new)
    if rng.random() < 0.3:  # somebody else's fixings
        columns["in_index"] = rng.integers(0, 8, len(tree.in_index))
        columns["out_index"] = rng.integers(0, 8, len(tree.out_index))
    factor = rng.choice([1.0, 1.0, 0.9, 1.001])
    splits = tuple(split._replace(t=split.t * factor) for split in certificate.splits)
    claim = replace(certificate, splits=splits, lower_bound=value, objective=value)
    return with_tree(claim, **columns)


@pytest.mark.parametrize("exact", [False, True])
def test_no_scrambled_proof_proves_too_much(exact):
    """The model is not the best one, so a bound above the optimum would show."""
    instance, certificate = proof()
    form, optimum = Form(instance), certificate.objective
    coef, _ = form.fit([4, 5, 6])
    worse = form.objective(instance, coef, 0.0)
    certificate = replace(certificate, coef=coef)
    rng = np.random.default_rng(exact)
    for _ in range(60 if exact else 400):
        found = checked(instance, scrambled(rng, certificate, worse), exact=exact)
        assert not found
        assert found.objective == pytest.approx(worse)
        assert found.lower_bound <= optimum * (1 + 1e-12)


def test_decided_features_cannot_be_decided_again():
    instance, certificate = proof()
    tree = certificate.tree
    node = int(np.flatnonzero(tree.feature >= 0)[0])
    rows = np.arange(len(tree))
    again = with_tree(
        certificate, in_ends=np.where(rows >= node, 1, 0), out_ends=np.zeros(len(tree), dtype=int),
        in_index=tree.feature[node : node + 1], out_index=EMPTY,
    )  # fmt: skip
    assert any("not free" in reason for reason in checked(instance, again).failures)
