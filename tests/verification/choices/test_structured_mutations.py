"""Changed proofs and changed questions are refused, unless the changed claim is still true."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.choice_prover import (
    certify,
    checked,
    enumerated,
    make_asked,
    sealed,
    structure_of,
)
from helpers.mutations import changed, with_tree, without_node
from helpers.prover import tree_of
from helpers.seeds import seeds

from bestk.base.structure import Row


def restructured(asked, certificate, **new):
    structure = replace(asked.structure, **new)
    return replace(asked, structure=structure), replace(certificate, structure=structure)


def drop_rule(rng, asked, c):
    rows = list(asked.structure.rows)
    if rows:
        del rows[rng.integers(len(rows))]
    asked, c = restructured(asked, c, rows=tuple(rows))
    broken = np.where(c.choices.broken >= 0, -1, c.choices.broken)
    return asked, replace(c, choices=c.choices._replace(broken=broken))


def change_limit(rng, asked, c):
    rows = list(asked.structure.rows)
    if rows:
        i = rng.integers(len(rows))
        rows[i] = rows[i]._replace(limit=int(rows[i].limit + rng.choice([-1, 1])))
    return restructured(asked, c, rows=tuple(rows))


def add_rule(rng, asked, c):
    g = rng.permutation(asked.structure.n_groups).astype(np.int64)
    row = Row(g[:1], g[1:2], int(rng.integers(-1, 1)), 0)
    return restructured(asked, c, rows=(*asked.structure.rows, row))


def change_group(rng, asked, c):
    groups = asked.structure.groups.copy()
    groups[rng.integers(len(groups))] = rng.integers(groups.max() + 2)
    new = structure_of(groups)
    return restructured(asked, c, groups=new.groups, group_names=new.group_names)


def change_k(rng, asked, c):
    k = max(0, asked.k + int(rng.choice([-1, 1])))
    return replace(asked, k=k), replace(c, k=k)


def change_side(rng, asked, c):
    s = asked.structure
    if not len(s.matrix):
        return asked, c
    i, step = rng.integers(len(s.matrix)), 0.1 * np.abs(asked.y).mean() * rng.standard_normal()
    return restructured(asked, c, lower=changed(s.lower, i, s.lower[i] + step),
                        upper=changed(s.upper, i, s.upper[i] + step))  # fmt: skip


def change_matrix(rng, asked, c):
    s = asked.structure
    if not len(s.matrix):
        return asked, c
    at = rng.integers(len(s.matrix)), rng.integers(s.matrix.shape[1])
    return restructured(asked, c, matrix=changed(s.matrix, at, 2.0 * s.matrix[at] + 1.0))


def change_chosen(rng, asked, c):
    m = asked.structure.n_groups
    chosen = np.flatnonzero(rng.random(m) < 0.5).astype(np.int64)
    return asked, replace(c, choices=c.choices._replace(chosen=chosen))


def change_coef(rng, asked, c):
    coef = c.coef * rng.choice([0.9, 1.0, 1.1], len(c.coef))
    return asked, replace(c, coef=coef, intercept=asked.intercept(coef),
                          objective=asked.objective(coef))  # fmt: skip


def drop_node(rng, asked, c):
    leaves = np.flatnonzero(c.tree.is_leaf & (c.tree.parent >= 0))
    if not len(leaves):
        return asked, c
    node = int(rng.choice(leaves))
    choices = c.choices._replace(
        broken=np.delete(c.choices.broken, node),
        multipliers=np.delete(c.choices.multipliers, node, axis=0),
    )
    return asked, replace(without_node(c, node), choices=choices)


def add_fixing(rng, asked, c):
    node = int(rng.integers(len(c.tree)))
    tree = c.tree
    rows = [
        {"parent": tree.parent[i], "feature": tree.feature[i], "inside": tree.inside[i],
         "split": tree.split[i], "enumerated": tree.enumerated[i], "g": tree.dual(i)[1],
         "at": tree.dual(i)[0], "in": tree.fixed_in(i), "out": tree.fixed_out(i)}
        for i in range(len(tree))
    ]  # fmt: skip
    side = rng.choice(["in", "out"])
    rows[node][side] = np.append(rows[node][side], rng.integers(asked.structure.n_groups))
    return asked, replace(c, tree=tree_of(rows))


def flip_side(rng, asked, c):
    node = int(rng.integers(len(c.tree)))
    return asked, with_tree(c, inside=changed(c.tree.inside, node, not c.tree.inside[node]))


def other_branching(rng, asked, c):
    nodes = np.flatnonzero(c.tree.feature >= 0)
    if not len(nodes):
        return asked, c
    new = rng.integers(asked.structure.n_groups)
    return asked, with_tree(c, feature=changed(c.tree.feature, rng.choice(nodes), new))


def say_broken(rng, asked, c):
    node = int(rng.integers(len(c.tree)))
    return asked, replace(c, choices=c.choices._replace(broken=changed(c.choices.broken, node, -2)))


def other_multipliers(rng, asked, c):
    lam = c.choices.multipliers * rng.choice([-1.0, 0.5, 3.0])
    return asked, replace(c, choices=c.choices._replace(multipliers=lam))


def other_blocks(rng, asked, c):
    return asked, replace(c, choices=c.choices._replace(blocks=2.0 * c.choices.blocks))


def more_charges(rng, asked, c):
    splits = tuple(split._replace(t=split.t * rng.choice([1.01, 2.0])) for split in c.splits)
    return asked, replace(c, splits=splits)


def fewer_features(rng, asked, c):
    splits = tuple(split._replace(features=split.features[1:], t=split.t[1:]) for split in c.splits)
    return asked, replace(c, splits=splits)


def nothing_enumerated(rng, asked, c):
    return asked, with_tree(c, enumerated=np.zeros(len(c.tree), dtype=bool))


CHANGES = (
    drop_rule, change_limit, add_rule, change_group, change_k, change_side, change_matrix,
    change_chosen, change_coef, drop_node, add_fixing, flip_side, other_branching, say_broken,
    other_multipliers, other_blocks, more_charges, fewer_features, nothing_enumerated,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@seeds(60, chunk=60)
def test_changed_claims_hold_if_they_are_verified(change, seed):
    asked, rng = make_asked(seed), np.random.default_rng(seed)
    fits = asked.fits()
    if not fits or asked.yy <= 1e-12 * float(np.sum(asked.y**2)) or fits[0][0] < 1e-9 * asked.yy:
        return
    for certificate in (certify(asked, seed), enumerated(asked, *fits[0][1:])):
        new, claim = change(rng, asked, certificate)
        found = checked(new, sealed(new, claim))
        if not found:
            assert found.failures
            continue
        best = new.fits()[0][0]
        assert claim.lower_bound <= best + 1e-8 * max(best, 1e-3 * new.yy)
        assert new.is_admissible(claim.choices.chosen.tolist(), claim.coef)


def test_a_missing_child_is_named():
    named = 0
    for seed in range(60):
        asked, rng = make_asked(seed, kind="plain", constraints=False), np.random.default_rng(seed)
        if asked.fits():
            _, claim = drop_node(rng, asked, certify(asked, seed))
            named += any("lacks the child" in text for text in checked(asked, claim).failures)
    assert named > 2


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_is_noticed_somewhere(change):
    if change in (other_multipliers, add_rule):  # other bounds, and fewer models: still true
        return
    for seed in range(200):
        asked, rng = make_asked(seed), np.random.default_rng(seed)
        fits = asked.fits()
        if not fits or fits[0][0] < 1e-6 * max(asked.yy, 1e-300):
            continue
        new, claim = change(rng, asked, certify(asked, seed))
        if not checked(new, sealed(new, claim)):
            return
    raise AssertionError("never noticed")
