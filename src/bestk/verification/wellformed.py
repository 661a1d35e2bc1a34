"""Is a certificate complete and consistent? Nothing after this needs to fear its arrays."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from bestk.results.certificate import Certificate, ProofTree, SplitRecord
from bestk.verification.choices.wellformed import flaws_of_choices, flaws_of_structure
from bestk.verification.limits import limits


def flaws(certificate: Certificate) -> list[str]:
    """Reasons why the certificate cannot be checked, the first of them; none if it can."""
    try:
        return list(islice(_flaws(certificate), limits().failures))
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        return [f"its parts do not fit together ({error})"]


def _flaws(certificate: Certificate) -> Iterator[str]:
    p = len(certificate.coef)
    vectors = (certificate.lower, certificate.upper, certificate.coef)
    if any(np.shape(v) != (p,) or np.asarray(v).dtype.kind != "f" for v in vectors):
        yield "lower, upper and coef are not vectors of one length"
        return
    if np.isnan(certificate.lower).any() or np.isnan(certificate.upper).any():
        yield "lower or upper contains NaN"
    elif (certificate.lower > 0.0).any() or (certificate.upper < 0.0).any():
        yield "lower and upper exclude zero for some features"
    numbers = (certificate.intercept, certificate.objective, certificate.lower_bound)
    if not (np.isfinite(numbers).all() and np.isfinite(certificate.coef).all()):
        yield "coefficients, objective or lower bound are not finite"
    if not (np.isfinite(certificate.alpha) and certificate.alpha >= 0.0):
        yield f"alpha is {certificate.alpha}, not a finite number from 0 on"
    if int(certificate.k) != certificate.k or certificate.k < 0:
        yield f"k is {certificate.k}, not a whole number from 0 on"
    if certificate.is_box_assumed not in (True, False):
        yield "is_box_assumed is not true or false"
    for name in ("include", "exclude", "free"):
        if not _are_features(getattr(certificate, name), p, unique=True):
            yield f"{name} does not list features from 0 to {p - 1}, each once"
            return
    if np.intersect1d(certificate.include, certificate.exclude).size:
        yield "a feature is both included and excluded"
    if np.intersect1d(certificate.free, [*certificate.include, *certificate.exclude]).size:
        yield "a free feature is also included or excluded"
    found = list(islice(flaws_of_structure(certificate), limits().failures))
    yield from found
    if certificate.structure is None and len(certificate.include) > certificate.k:
        yield "more features are included than k allows"
    copies = np.asarray(certificate.copies)
    if copies.size and (copies.ndim != 2 or copies.shape[1] != 2 or not _are_features(copies, p)):
        yield "copies does not list pairs of features"
    elif copies.size and len(np.unique(copies[:, 0])) < len(copies):
        yield "copies lists a feature twice"
    for i, split in enumerate(certificate.splits):
        yield from (f"split {i}: {flaw}" for flaw in _flaws_of_split(split, p))
    m = p if certificate.structure is None else certificate.structure.n_groups
    yield from _flaws_of_tree(certificate.tree, p, m, len(certificate.splits))
    if not found:
        yield from flaws_of_choices(certificate)


def _are_features(array, p: int, *, unique: bool = False) -> bool:
    array = np.asarray(array)
    if array.size == 0:
        return True
    if array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= p:
        return False
    return not unique or (array.ndim == 1 and len(np.unique(array)) == len(array))


def _flaws_of_split(split: SplitRecord, p: int) -> Iterator[str]:
    if np.ndim(split.features) != 1 or not _are_features(split.features, p, unique=True):
        yield "its features are out of range or listed twice"
        return
    size = len(split.features)
    if np.shape(split.t) != (size,) or not np.isfinite(split.t).all() or (split.t < 0).any():
        yield "its charges are not nonnegative numbers, one per feature"
        return
    box = (np.asarray(split.lower), np.asarray(split.upper))
    if any(side.size and side.shape != (size,) for side in box) or box[0].size != box[1].size:
        yield "its box does not have two sides for every feature"
        return
    if any(side.dtype.kind != "f" for side in box) or not ((box[0] <= 0) & (box[1] >= 0)).all():
        yield "its box does not contain zero"
        return
    if len(split.clusters) != len(split.matrices):
        yield "its clusters and blocks do not match"
        return
    members = np.concatenate([np.zeros(0, dtype=np.int64), *split.clusters])
    if not _are_features(members, size, unique=True):
        yield "its clusters overlap or are out of range"
        return
    for cluster, T in zip(split.clusters, split.matrices, strict=True):
        if np.shape(T) != (len(cluster),) * 2 or not np.isfinite(T).all() or len(cluster) == 0:
            yield "a block has the wrong shape or is not finite"
        elif not np.allclose(T, T.T, rtol=1e-9, atol=1e-12):
            yield "a block is not symmetric"
        elif np.any(split.t[cluster] != 0.0):
            yield "a feature is charged both alone and in a cluster"


def _flaws_of_tree(tree: ProofTree, p: int, n_groups: int, n_splits: int) -> Iterator[str]:
    """`n_groups`: what nodes decide on, p features or the groups of a structure."""
    m = len(tree.parent)
    if m == 0:
        yield "the tree has no nodes"
        return
    rows = {"dual_ends": "dual_index", "in_ends": "in_index", "out_ends": "out_index"}
    for name in ("parent", "feature", "inside", "split", "enumerated", *rows):
        column = np.asarray(getattr(tree, name))
        if column.shape != (m,) or column.dtype.kind not in "iub":
            yield f"tree.{name} does not hold one whole number per node"
            return
    parent, feature = np.asarray(tree.parent, dtype=np.int64), np.asarray(tree.feature)
    if parent[0] != -1 or feature[0] != -1:
        yield "node 0 is not a root"
    wrong = np.flatnonzero((parent[1:] < 0) | (parent[1:] >= np.arange(1, m)))
    if len(wrong):
        yield f"node {wrong[0] + 1}: its parent {parent[wrong[0] + 1]} does not come before it"
    wrong = np.flatnonzero((feature < -1) | (feature >= n_groups))
    if len(wrong):
        yield f"node {wrong[0]}: there is no feature {feature[wrong[0]]}"
    wrong = np.flatnonzero((tree.split < -1) | (tree.split >= n_splits))
    if len(wrong):
        yield f"node {wrong[0]}: there is no split {tree.split[wrong[0]]}"
    for ends, index in rows.items():
        stops, entries = np.asarray(getattr(tree, ends), dtype=np.int64), getattr(tree, index)
        if (np.diff(stops, prepend=0) < 0).any() or stops[-1] != len(entries):
            yield f"tree.{ends} does not divide tree.{index} into rows"
        elif np.ndim(entries) != 1 or not _are_features(
            entries, p if index == "dual_index" else n_groups
        ):
            yield f"tree.{index} holds features out of range"
    value = np.asarray(tree.dual_value)
    is_number = value.dtype.kind in "iuf" and bool(np.isfinite(value).all())
    if value.shape != np.shape(tree.dual_index) or not is_number:
        yield "tree.dual_value does not hold one finite number per entry"
