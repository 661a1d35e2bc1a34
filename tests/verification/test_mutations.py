"""A proof that was changed is refused, and for the right reason."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mutations import changed, node_like, proof, with_tree, without_node
from helpers.prover import EMPTY, Form, checked, sealed

from bestk.base.fingerprint import rows_digest
from bestk.results.certificate import Certificate
from bestk.verification.verify import verify


@pytest.mark.parametrize("exact", [False, True])
def test_a_dropped_leaf_is_noticed(exact):
    instance, certificate = proof()
    assert checked(instance, certificate, exact=exact)
    tree = certificate.tree
    for leaf in np.flatnonzero(tree.is_leaf & (tree.parent >= 0)):
        found = checked(instance, without_node(certificate, int(leaf)), exact=exact)
        assert not found, leaf
        (reason,) = found.failures
        assert "proven only to" in reason
        parent, feature = tree.parent[leaf], tree.feature[leaf]
        side = "with" if tree.inside[leaf] else "without"
        is_only_child = np.count_nonzero(tree.parent == parent) == 1
        lacks = f"node {parent} lacks the child {side} feature {feature}"
        assert ("it proves" if is_only_child else lacks) in reason


OBJECTIVE, ONLY = "the objective of the model is", "the lower bound is proven only to"


def with_flipped_dual(certificate: Certificate) -> Certificate:
    """The dual vector of a leaf that was closed by it, with the other sign."""
    tree = certificate.tree
    closed = node_like(certificate, leaf=True, split=True, enumerated=False)
    row = slice(int(tree.dual_ends[closed - 1]), int(tree.dual_ends[closed]))
    flipped = changed(tree.dual_value, row, -tree.dual_value[row])
    return with_tree(certificate, dual_value=flipped)


def without_enumeration(certificate: Certificate) -> Certificate:
    tried = node_like(certificate, enumerated=True, root=False)
    enumerated = changed(certificate.tree.enumerated, tried, False)
    return with_tree(certificate, enumerated=enumerated)


def claiming(*, objective=1.0, lower_bound=1.0):
    """The claims multiplied."""
    return lambda c: replace(
        c, objective=c.objective * objective, lower_bound=c.lower_bound * lower_bound
    )


CHANGES = {
    "sign of a dual": (with_flipped_dual, [ONLY]),
    "no enumeration": (without_enumeration, [ONLY]),
    "both claims higher": (claiming(objective=1 + 1e-6, lower_bound=1 + 1e-6), [OBJECTIVE, ONLY]),
    "bound above objective": (
        claiming(lower_bound=1.01),
        ["is above the objective", ONLY],
    ),
    "both claims lower": (claiming(objective=1 - 1e-6, lower_bound=1 - 1e-6), [OBJECTIVE]),
    "coefficients": (lambda c: replace(c, coef=c.coef * (1 + 1e-4)), [OBJECTIVE]),
    "intercept": (
        lambda c: replace(c, intercept=0.1),
        ["the model has an intercept, the problem has none", OBJECTIVE],
    ),
}


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_changed_numbers_prove_less(name, exact):
    instance, certificate = proof()
    change, reasons = CHANGES[name]
    found = checked(instance, change(certificate), exact=exact)
    assert not found
    assert len(found.failures) == len(reasons)
    for reason, failure in zip(reasons, found.failures, strict=True):
        assert reason in failure


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("factor", [1.5, 1.01])
def test_raised_charges_are_not_semidefinite(factor, exact):
    instance, certificate = proof()
    splits = tuple(split._replace(t=split.t * factor) for split in certificate.splits)
    found = checked(instance, replace(certificate, splits=splits), exact=exact)
    assert not found
    for number, failure in enumerate(sorted(found.failures[:2])):
        assert failure == f"split {number}: its matrix A - T is not positive semidefinite"
    assert ONLY in found.failures[2]


def test_enumeration_in_another_place_is_as_good():
    instance, certificate = proof()
    flag = np.zeros(len(certificate.tree), dtype=bool)
    flag[0] = True
    found = checked(instance, with_tree(certificate, enumerated=flag))
    assert found, str(found)
    split = np.full(len(flag), -1, dtype=np.int32)
    none = np.zeros(len(flag), dtype=np.int64)
    bare = with_tree(
        certificate, enumerated=flag, split=split, in_ends=none, out_ends=none,
        in_index=EMPTY, out_index=EMPTY,
    )  # fmt: skip
    assert checked(instance, bare).lower_bound == pytest.approx(certificate.objective, rel=1e-10)


@pytest.mark.parametrize("side", ["all inside", "swapped"])
def test_other_sides_are_noticed(side):
    instance, certificate = proof()
    inside = certificate.tree.inside
    other = np.ones_like(inside) if side == "all inside" else ~inside
    found = checked(instance, with_tree(certificate, inside=other))
    assert not found
    assert ONLY in found.failures[-1]
    assert found.lower_bound <= certificate.objective * (1 + 1e-12)


def test_other_parents_are_noticed():
    """A node may move to where it proves as much: without a feature, above its old place."""
    instance, certificate = proof()
    tree, accepted = certificate.tree, []
    for node in range(2, len(tree)):
        above = [int(tree.parent[node])]
        while above[-1] > 0:
            above.append(int(tree.parent[above[-1]]))
        for parent in range(node):
            if parent == tree.parent[node]:
                continue
            other = with_tree(certificate, parent=changed(tree.parent, node, parent))
            found = checked(instance, other)
            assert found.lower_bound <= certificate.objective * (1 + 1e-12)
            assert bool(found) == (tree.feature[node] < 0 and parent in above), (node, parent)
            if found:
                accepted.append(node)
            else:
                assert ONLY in found.failures[-1], (node, parent)
    assert accepted


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


SEMIDEFINITE = "not positive semidefinite"


@pytest.mark.parametrize(
    ("problem", "reasons"),
    [({"k": 4}, [ONLY]), ({"alpha": 0.05}, [SEMIDEFINITE, SEMIDEFINITE, OBJECTIVE, ONLY])],
    ids=["k", "alpha"],
)
def test_a_forged_fingerprint_does_not_help(problem, reasons):
    """Proofs are checked on the data: with another k or alpha the same tree proves less."""
    instance, certificate = proof()
    digest = rows_digest(instance.X, instance.y)
    found = checked(instance, sealed(replace(certificate, **problem), digest))
    assert not found
    for reason, failure in zip(reasons, found.failures, strict=True):
        assert reason in failure


def test_a_fingerprint_of_other_data_does_not_help():
    instance, certificate = proof()
    y = instance.y * 1.001
    found = verify(sealed(certificate, rows_digest(instance.X, y)), instance.X, y)
    assert not found
    assert OBJECTIVE in found.failures[0]


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
    for _ in range(40 if exact else 150):
        found = checked(instance, scrambled(rng, certificate, worse), exact=exact)
        assert not found
        assert ONLY in found.failures[-1]
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
