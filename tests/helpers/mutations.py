"""A small proof with all kinds of nodes, and changes to parts of it."""

from dataclasses import replace
from functools import cache

import numpy as np

from bestk.results.certificate import Certificate
from helpers.instances import Instance
from helpers.prover import certify, tree_of


def node_like(certificate: Certificate, **wanted) -> int:
    """A node with these properties of its row."""
    tree = certificate.tree
    for node in range(len(tree)):
        row = {"enumerated": bool(tree.enumerated[node]), "leaf": bool(tree.is_leaf[node]),
               "split": tree.split[node] >= 0, "root": node == 0}  # fmt: skip
        if all(row[name] == value for name, value in wanted.items()):
            return node
    return -1


@cache
def proof() -> tuple[Instance, Certificate]:
    """A proof with all kinds of nodes, nothing in it to spare."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 8)) + 0.6 * rng.standard_normal((30, 1))
    y = X[:, :3] @ [1.0, -0.8, 0.6] + 0.7 * rng.standard_normal(30)
    instance = Instance(regime="plain", X=X, y=y, k=3, options={"alpha": 0.1})
    for seed in range(100):
        certificate = certify(instance, seed, blocks=False, leaf_size=4)
        tree = certificate.tree
        fixes = np.diff(tree.in_ends + tree.out_ends, prepend=0) > 0
        kinds = (
            tree.is_leaf & ~tree.enumerated & (tree.split >= 0),  # closed by its bound
            tree.enumerated,
            ~tree.is_leaf & fixes,
            (tree.feature < 0) & (tree.parent >= 0),  # a second proof of the same cell
        )
        if len(tree) >= 16 and all(kind[1:].any() for kind in kinds):
            return instance, certificate
    raise AssertionError("no such proof")


def with_tree(certificate: Certificate, **columns) -> Certificate:
    return replace(certificate, tree=replace(certificate.tree, **columns))


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def without_node(certificate: Certificate, node: int) -> Certificate:
    """The leaf `node` moved to where it proves nothing: below itself it has no other side."""
    tree = certificate.tree
    rows = [
        {"parent": tree.parent[i], "feature": tree.feature[i], "inside": tree.inside[i],
         "split": tree.split[i], "enumerated": tree.enumerated[i], "g": tree.dual(i)[1],
         "at": tree.dual(i)[0], "in": tree.fixed_in(i), "out": tree.fixed_out(i)}
        for i in range(len(tree)) if i != node
    ]  # fmt: skip
    for row in rows:
        row["parent"] -= row["parent"] > node
    return replace(certificate, tree=tree_of(rows))
