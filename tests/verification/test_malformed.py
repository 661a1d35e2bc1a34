"""Certificates that are no certificates are failures that say what is wrong with them."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.mutations import changed, proof, with_tree
from helpers.prover import checked


def in_tree(name, at, value):
    """One entry of a column of the tree; `at` may depend on its number of nodes."""

    def change(certificate):
        column = getattr(certificate.tree, name)
        place = at(len(certificate.tree)) if callable(at) else at
        return with_tree(certificate, **{name: changed(column, place, value)})

    return change


def column(name, new):
    return lambda c: with_tree(c, **{name: new(getattr(c.tree, name))})


def in_split(**new):
    """Fields of the first split, by functions of the split."""

    def change(certificate):
        first, *others = certificate.splits
        first = first._replace(**{name: value(first) for name, value in new.items()})
        return replace(certificate, splits=(first, *others))

    return change


def field(**new):
    return lambda certificate: replace(certificate, **new)


def inner(m):
    return m // 2


PAIR = np.array([0, 1])
NOT_BEFORE, NO_FEATURE = "does not come before it", "there is no feature"
DIVIDED, PER_NODE = "does not divide tree.dual_index into rows", "one whole number per node"
CHARGES, LISTED = "its charges are not nonnegative numbers", "out of range or listed twice"
NOT_FINITE = "coefficients, objective or lower bound are not finite"
MALFORMED = {
    "a parent of itself": (in_tree("parent", 10, 10), NOT_BEFORE),
    "a parent that is not there": (in_tree("parent", inner, 99), NOT_BEFORE),
    "a root with a parent": (in_tree("parent", 0, 0), "node 0 is not a root"),
    "a root with a feature": (in_tree("feature", 0, 1), "node 0 is not a root"),
    "a feature too far": (in_tree("feature", inner, 8), NO_FEATURE),
    "a feature below none": (in_tree("feature", inner, -2), NO_FEATURE),
    "a split too far": (in_tree("split", inner, 9), "there is no split 9"),
    "a dual that is NaN": (in_tree("dual_value", 0, np.nan), "one finite number per entry"),
    "a dual that is infinite": (in_tree("dual_value", 0, np.inf), "one finite number per entry"),
    "a dual of no feature": (in_tree("dual_index", 0, 8), "dual_index holds features out of range"),
    "a fixing of no feature": (in_tree("in_index", 0, 8), "in_index holds features out of range"),
    "rows in reverse": (column("dual_ends", lambda ends: ends[::-1].copy()), DIVIDED),
    "rows too long": (column("dual_ends", lambda ends: ends + 1), DIVIDED),
    "a row missing": (column("in_ends", lambda ends: ends[:-1]), PER_NODE),
    "no nodes": (column("parent", lambda parent: parent[:0]), "the tree has no nodes"),
    "parents as floats": (column("parent", lambda parent: parent.astype(float)), PER_NODE),
    "a negative charge": (in_split(t=lambda s: changed(s.t, 0, -0.1)), CHARGES),
    "a charge that is NaN": (in_split(t=lambda s: changed(s.t, 0, np.nan)), CHARGES),
    "a charge missing": (in_split(t=lambda s: s.t[:-1]), CHARGES),
    "a feature twice": (in_split(features=lambda s: changed(s.features, 0, s.features[1])), LISTED),
    "a feature out of range": (in_split(features=lambda s: changed(s.features, 0, 99)), LISTED),
    "a cluster without a block": (
        in_split(clusters=lambda s: (PAIR,)),
        "its clusters and blocks do not match",
    ),
    "a cluster out of range": (
        in_split(clusters=lambda s: (np.array([0, 99]),), matrices=lambda s: (np.eye(2),)),
        "its clusters overlap or are out of range",
    ),
    "clusters that overlap": (
        in_split(clusters=lambda s: (PAIR, PAIR), matrices=lambda s: (np.eye(2), np.eye(2))),
        "its clusters overlap or are out of range",
    ),
    "a block of another size": (
        in_split(clusters=lambda s: (PAIR,), matrices=lambda s: (np.eye(3),)),
        "a block has the wrong shape",
    ),
    "a block that is not symmetric": (
        in_split(
            clusters=lambda s: (PAIR,), matrices=lambda s: (np.array([[1.0, 0.5], [0.0, 1.0]]),)
        ),
        "a block is not symmetric",
    ),
    "a feature charged twice": (
        in_split(clusters=lambda s: (PAIR,), matrices=lambda s: (np.eye(2),)),
        "charged both alone and in a cluster",
    ),
    "a negative k": (field(k=-1), "k is -1"),
    "alpha that is NaN": (field(alpha=np.nan), "alpha is nan"),
    "a negative alpha": (field(alpha=-1.0), "alpha is -1"),
    "an infinite bound": (field(lower_bound=np.inf), NOT_FINITE),
    "an objective that is NaN": (field(objective=np.nan), NOT_FINITE),
    "a coefficient that is NaN": (
        lambda c: replace(c, coef=changed(c.coef, 0, np.nan)),
        NOT_FINITE,
    ),
    "a bound missing": (lambda c: replace(c, lower=c.lower[:-1]), "not vectors of one length"),
    "bounds that are NaN": (field(upper=np.full(8, np.nan)), "lower or upper contains NaN"),
    "bounds without zero": (field(lower=np.full(8, 1.0)), "lower and upper exclude zero"),
    "no such feature included": (field(include=np.array([9])), "include does not list features"),
    "a feature included twice": (field(include=np.array([1, 1])), "include does not list features"),
    "too many included": (field(include=np.arange(4)), "more features are included than k allows"),
    "included and excluded": (
        field(include=np.array([2]), exclude=np.array([2])),
        "both included and excluded",
    ),
    "a copy of no feature": (field(copies=np.array([[0, 99]])), "does not list pairs of features"),
    "copies that are no pairs": (field(copies=PAIR), "does not list pairs of features"),
    "a copy listed twice": (
        field(copies=np.array([[0, 1], [0, 2]])),
        "copies lists a feature twice",
    ),
    # Without coefficients it has no number of features, so it is not about these data.
    "no coefficients": (field(coef=None), "fingerprint"),
    "no tree": (field(tree=None), "the certificate is malformed"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_certificates_are_failures(name):
    instance, certificate = proof()
    change, reason = MALFORMED[name]
    found = checked(instance, change(certificate))
    assert not found
    assert reason in found.failures[0]
    assert found.failures[0] in str(found)


def test_of_very_many_flaws_some_are_named():
    """A file may have millions of them."""
    instance, certificate = proof()
    wrong = certificate.splits[0]._replace(t=np.full(len(certificate.splits[0].t), -1.0))
    found = checked(instance, replace(certificate, splits=(wrong,) * 1000))
    assert 1 < len(found.failures) < 50
