"""Certificates that are no certificates are failures that say what is wrong with them."""

from dataclasses import replace

import numpy as np
from helpers.mutations import changed, proof, with_tree
from helpers.prover import checked


def test_malformed_certificates_are_failures():
    instance, certificate = proof()
    tree, split = certificate.tree, certificate.splits[0]
    inner = len(tree) // 2
    far = len(tree) + 5

    def with_split(**fields):
        return replace(certificate, splits=(split._replace(**fields), *certificate.splits[1:]))

    malformed = [
        with_tree(certificate, parent=changed(tree.parent, inner, inner)),
        with_tree(certificate, parent=changed(tree.parent, inner, far)),
        with_tree(certificate, parent=changed(tree.parent, 0, 0)),
        with_tree(certificate, feature=changed(tree.feature, inner, 8)),
        with_tree(certificate, feature=changed(tree.feature, inner, -2)),
        with_tree(certificate, split=changed(tree.split, inner, 9)),
        with_tree(certificate, dual_value=changed(tree.dual_value, 0, np.nan)),
        with_tree(certificate, dual_value=changed(tree.dual_value, 0, np.inf)),
        with_tree(certificate, dual_index=changed(tree.dual_index, 0, 8)),
        with_tree(certificate, dual_ends=tree.dual_ends[::-1].copy()),
        with_tree(certificate, dual_ends=tree.dual_ends + 1),
        with_tree(certificate, in_ends=tree.in_ends[:-1]),
        with_tree(certificate, parent=tree.parent[:0]),
        with_tree(certificate, parent=tree.parent.astype(float)),
        with_split(t=changed(split.t, 0, -0.1)),
        with_split(t=changed(split.t, 0, np.nan)),
        with_split(t=split.t[:-1]),
        with_split(features=changed(split.features, 0, split.features[1])),
        with_split(features=changed(split.features, 0, 99)),
        with_split(clusters=(np.array([0, 1]),)),
        with_split(clusters=(np.array([0, 99]),), matrices=(np.eye(2),)),
        with_split(clusters=(np.array([0, 1]),), matrices=(np.eye(3),)),
        replace(certificate, k=-1),
        replace(certificate, alpha=np.nan),
        replace(certificate, lower_bound=np.inf),
        replace(certificate, objective=np.nan),
        replace(certificate, coef=changed(certificate.coef, 0, np.nan)),
        replace(certificate, lower=certificate.lower[:-1]),
        replace(certificate, lower=np.full(8, 1.0)),
        replace(certificate, include=np.array([9])),
        replace(certificate, include=np.array([1, 1])),
        replace(certificate, include=np.arange(4)),
        replace(certificate, include=np.array([2]), exclude=np.array([2])),
        replace(certificate, copies=np.array([[0, 99]])),
        replace(certificate, copies=np.array([1, 2])),
        replace(certificate, coef=None),
        replace(certificate, tree=None),
    ]  # fmt: skip
    for i, mutated in enumerate(malformed):
        found = checked(instance, mutated)
        assert not found, i
        assert found.failures, i
        assert str(found)
