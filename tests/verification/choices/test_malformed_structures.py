"""Structures and proofs about them that make no sense are failures that say so."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from helpers.choice_prover import Asked, certify, checked, sealed, structure_of
from helpers.mutations import changed, with_tree

from bestk.base.structure import Row


@cache
def proof():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 6)) + 0.5 * rng.standard_normal((30, 1))
    y = X[:, 0] - X[:, 2] + rng.standard_normal(30)
    rows = [([0], [1], 0), ([2, 3], [], 1)]
    structure = structure_of([0, 0, 1, 2, 2, 3], rows, [np.ones(6)], [0.0], [0.0])
    asked = Asked(
        X=X, y=y, k=3, structure=structure, lower=np.full(6, -np.inf), upper=np.full(6, np.inf),
    )  # fmt: skip
    certificate = certify(asked, 1)
    assert checked(asked, certificate)
    assert len(certificate.choices.block_ends) == 2
    return asked, certificate


def structure(**new):
    return lambda c: replace(c, structure=replace(c.structure, **{
        name: value(c.structure) for name, value in new.items()}))  # fmt: skip


def choices(**new):
    return lambda c: replace(c, choices=c.choices._replace(**{
        name: value(c.choices) for name, value in new.items()}))  # fmt: skip


def row(**new):
    return structure(rows=lambda s: (s.rows[0]._replace(**new), *s.rows[1:]))


ORDER, WHOLE = "not numbered in the order", "does not name whole groups"
SIDES, TRIANGLE = "two sides each", "not an upper triangle"
MALFORMED = {
    "no choices": (lambda c: replace(c, choices=None), "a structure without choices"),
    "no structure": (lambda c: replace(c, structure=None), "choices without a structure"),
    "groups out of order": (structure(groups=lambda s: s.groups[::-1].copy()), ORDER),
    "a group missing": (structure(groups=lambda s: changed(s.groups, 5, 2)), ORDER),
    "groups as floats": (structure(groups=lambda s: s.groups.astype(float)), "for every feature"),
    "a feature without a group": (structure(groups=lambda s: s.groups[:-1]), "for every feature"),
    "half a group included": (lambda c: replace(c, include=np.array([0])), WHOLE),
    "half a group free": (lambda c: replace(c, free=np.array([3])), WHOLE),
    "too many included": (lambda c: replace(c, include=np.arange(6)), "more groups are included"),
    "copies": (lambda c: replace(c, copies=np.array([[0, 1]])), "copies of features"),
    "a rule on no group": (row(plus=np.array([4])), "names groups that are not there"),
    "a rule on floats": (row(minus=np.array([0.5])), "names groups that are not there"),
    "half a limit": (row(limit=0.5), "has the limit"),
    "an endless limit": (row(limit=2**40), "has the limit"),
    "a matrix of another size": (structure(matrix=lambda s: s.matrix[:, :-1]), "column for every"),
    "a matrix that is NaN": (structure(matrix=lambda s: s.matrix * np.nan), "is not finite"),
    "a side missing": (structure(lower=lambda s: s.lower[:0]), SIDES),
    "sides that are NaN": (structure(upper=lambda s: s.upper * np.nan), "contradict"),
    "sides in reverse": (structure(lower=lambda s: s.upper + 1.0), "contradict"),
    "chosen out of range": (
        choices(chosen=lambda c: np.array([4])),
        "out of range or listed twice",
    ),
    "chosen twice": (choices(chosen=lambda c: np.array([1, 1])), "out of range or listed twice"),
    "broken too short": (choices(broken=lambda c: c.broken[:-1]), "one whole number per node"),
    "a broken row that is not": (choices(broken=lambda c: changed(c.broken, 0, 2)), "not there"),
    "broken below all": (choices(broken=lambda c: changed(c.broken, 0, -3)), "not there"),
    "multipliers missing": (
        choices(multipliers=lambda c: c.multipliers[:-1]),
        "one number per node",
    ),
    "multipliers of NaN": (choices(multipliers=lambda c: c.multipliers * np.nan), "not finite"),
    "blocks that overlap": (
        choices(block_features=lambda c: changed(c.block_features, 0, c.block_features[1])),
        "each once",
    ),
    "blocks cut wrongly": (choices(block_ends=lambda c: c.block_ends + 1), "does not divide"),
    "half a block": (choices(blocks=lambda c: c.blocks[:-1]), "a finite square"),
    "a block that is NaN": (choices(blocks=lambda c: c.blocks * np.nan), "a finite square"),
    "a block of zeros": (choices(blocks=lambda c: c.blocks * 0.0), TRIANGLE),
    "a full block": (choices(blocks=lambda c: np.ones(len(c.blocks))), TRIANGLE),
    "a block of two groups": (
        choices(block_features=lambda c: changed(c.block_features, 0, 5)),
        "features of several groups",
    ),
    "a block with bounds": (lambda c: replace(c, lower=np.zeros(6)), "features with bounds"),
    "a branching on no group": (
        lambda c: with_tree(c, feature=changed(c.tree.feature, len(c.tree) - 1, 4)),
        "there is no feature",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_structures_are_failures(name):
    asked, certificate = proof()
    change, reason = MALFORMED[name]
    found = checked(asked, change(certificate))
    assert not found
    assert any(reason in failure for failure in found.failures), found.failures


def test_a_structure_is_part_of_the_fingerprint():
    asked, certificate = proof()
    new = replace(certificate.structure, rows=(Row(np.array([0]), np.array([], int), 0, 0),))
    found = checked(asked, replace(certificate, structure=new))
    assert "fingerprint" in found.failures[0]


def test_blocks_of_features_that_take_no_part_are_refused():
    asked, certificate = proof()
    X = asked.X.copy()
    X[:, 0] = 0.0
    other = replace(asked, X=X)
    found = checked(other, sealed(other, certificate))
    assert not found
    assert "which cannot be in a model" in found.failures[0]


def test_splits_with_parts_that_are_not_for_groups_are_refused():
    asked, certificate = proof()
    splits = tuple(
        s._replace(lower=np.full(len(s.t), -1.0), upper=np.ones(len(s.t)))
        for s in certificate.splits
    )
    found = checked(asked, replace(certificate, splits=splits))
    assert not found
    assert any("do not go with groups" in failure for failure in found.failures)


MODELS = {
    "more than k": ({"k": 1}, "more than k = 1"),
    "an excluded group": ({"exclude": np.array([2])}, "uses an excluded group"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_not_admissible(name):
    asked, certificate = proof()
    new, reason = MODELS[name]
    claim = sealed(asked, replace(certificate, **new))
    found = checked(asked, claim)
    assert any(reason in failure for failure in found.failures), found.failures


def test_models_without_a_group_that_must_be_there():
    asked, certificate = proof()
    others = np.setdiff1d(np.arange(4), certificate.choices.chosen)
    for name in ("include", "free"):
        new = {name: asked.structure.features_of(others)}
        found = checked(asked, sealed(asked, replace(certificate, **new)))
        assert any("lacks a group" in failure for failure in found.failures), found.failures


def test_models_that_break_rules_or_constraints():
    asked, certificate = proof()
    coef = certificate.coef * 1.0
    coef[2] += 0.1
    found = checked(asked, replace(certificate, coef=coef))
    assert any("out of constraint 0" in failure for failure in found.failures)
    chosen = np.array([0])
    found = checked(
        asked, replace(certificate, choices=certificate.choices._replace(chosen=chosen))
    )
    assert any("breaks the rules: rule 0" in failure for failure in found.failures)
    assert any("outside of its groups" in failure for failure in found.failures)


def test_of_very_many_broken_rules_some_are_named():
    asked, certificate = proof()
    structure = asked.structure
    rows = [Row(np.array([0]), np.zeros(0, np.int64), 0, i) for i in range(1000)]
    structure = replace(structure, rows=tuple(rows), words=("never",) * 1000)
    choices = certificate.choices._replace(chosen=np.array([0]))
    found = checked(
        asked, sealed(asked, replace(certificate, structure=structure, choices=choices))
    )
    assert any(failure.endswith("never; and 980 more") for failure in found.failures)
    assert len(str(found)) < 10_000
