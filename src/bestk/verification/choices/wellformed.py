"""Is a structure, and what a proof about it has beyond a tree, complete and consistent?"""

from collections.abc import Iterator

import numpy as np

from bestk.base.structure import Structure
from bestk.results.certificate import Certificate, ChoiceProof

_LARGEST = 2**31


def flaws_of_structure(certificate: Certificate) -> Iterator[str]:
    """Reasons why the question with its structure makes no sense; none if it does."""
    structure, p = certificate.structure, len(certificate.coef)
    if (structure is None) != (certificate.choices is None):
        yield "it has a structure without choices, or choices without a structure"
        return
    if structure is None:
        return
    groups, m = np.asarray(structure.groups), structure.n_groups
    if groups.shape != (p,) or groups.dtype.kind not in "iu":
        yield "groups does not have the number of a group for every feature"
        return
    numbers, first = np.unique(groups, return_index=True)
    if not (np.array_equal(numbers, np.arange(m)) and (np.diff(first) > 0).all()):
        yield "groups are not numbered in the order of their first features"
        return
    for name in ("include", "exclude", "free"):
        named = np.asarray(getattr(certificate, name), dtype=np.int64)
        if len(structure.features_of(structure.groups_of(named))) != len(named):
            yield f"{name} does not name whole groups"
    included = len(structure.groups_of(np.asarray(certificate.include, dtype=np.int64)))
    if included > certificate.k:
        yield "more groups are included than k allows"
    if certificate.k > _LARGEST:
        yield f"k is {certificate.k}, not a whole number up to 2^31"
    if len(certificate.copies):
        yield "it leaves out copies of features, which a structure does not allow"
    yield from _flaws_of_rows(structure)
    yield from _flaws_of_constraints(structure, p)


def _flaws_of_rows(structure: Structure) -> Iterator[str]:
    for i, row in enumerate(structure.rows):
        for side in (np.asarray(row.plus), np.asarray(row.minus)):
            if not _are_numbers(side, structure.n_groups):
                yield f"row {i} of the rules names groups that are not there"
        if int(row.limit) != row.limit or abs(row.limit) > _LARGEST:
            yield f"row {i} of the rules has the limit {row.limit}, no whole number up to 2^31"


def _flaws_of_constraints(structure: Structure, p: int) -> Iterator[str]:
    matrix, sides = np.asarray(structure.matrix), (structure.lower, structure.upper)
    if matrix.ndim != 2 or matrix.shape[1] != p or matrix.dtype != np.float64:
        yield "the matrix of the constraints does not have a column for every feature"
        return
    if not np.isfinite(matrix).all():
        yield "the matrix of the constraints is not finite"
    if any(np.shape(s) != (len(matrix),) or np.asarray(s).dtype != np.float64 for s in sides):
        yield "the constraints do not have two sides each"
        return
    lower, upper = sides
    if not ((lower <= upper) & (lower < np.inf) & (upper > -np.inf)).all():
        yield "the sides of the constraints contradict each other"


def flaws_of_choices(certificate: Certificate) -> Iterator[str]:
    """The same for the proof; the structure is known to be fine."""
    structure, choices = certificate.structure, certificate.choices
    if structure is None or choices is None:
        return
    n, q = len(certificate.tree.parent), len(structure.matrix)
    chosen = np.asarray(choices.chosen)
    if not _are_numbers(chosen, structure.n_groups) or len(np.unique(chosen)) < len(chosen):
        yield "the groups of the model are out of range or listed twice"
    broken = np.asarray(choices.broken)
    if broken.shape != (n,) or broken.dtype.kind != "i":
        yield "choices.broken does not hold one whole number per node"
    elif (broken < -2).any() or (broken >= len(structure.rows)).any():
        yield "choices.broken names a rule that is not there"
    multipliers = np.asarray(choices.multipliers)
    if multipliers.shape not in ((n, q), (n, 0)) or multipliers.dtype.kind != "f":
        yield "choices.multipliers does not hold one number per node and constraint"
    elif not np.isfinite(multipliers).all():
        yield "choices.multipliers are not finite"
    yield from _flaws_of_blocks(certificate, choices)


def _flaws_of_blocks(certificate: Certificate, choices: ChoiceProof) -> Iterator[str]:
    assert certificate.structure is not None
    p = len(certificate.coef)
    ends, features = np.asarray(choices.block_ends), np.asarray(choices.block_features)
    is_cut = ends.ndim == 1 and (ends.size == 0 or ends.dtype.kind in "iu")
    if not is_cut or not _are_numbers(features, p) or len(np.unique(features)) < len(features):
        yield "blocks do not list features, each once"
        return
    sizes: np.ndarray = np.diff(np.asarray(ends, dtype=np.int64), prepend=0)
    if (sizes <= 0).any() or sizes.sum() != len(features):
        yield "choices.block_ends does not divide choices.block_features into rows"
        return
    blocks = np.asarray(choices.blocks)
    is_number = blocks.dtype.kind in "iuf" and bool(np.isfinite(blocks).all())
    if blocks.shape != (int((sizes**2).sum()),) or not is_number:
        yield "choices.blocks does not hold a finite square for every block"
        return
    for i, (own, triangle) in enumerate(choices.bases()):
        if len(certificate.structure.groups_of(own)) > 1:
            yield f"block {i} has features of several groups"
        if np.isfinite([certificate.lower[own], certificate.upper[own]]).any():
            yield f"block {i} has features with bounds"
        if np.tril(triangle, -1).any() or not triangle.diagonal().all():
            yield f"block {i} is not an upper triangle, or has a zero on its diagonal"


def _are_numbers(array: np.ndarray, count: int) -> bool:
    """A vector of whole numbers from 0 to count - 1."""
    if array.ndim != 1:
        return False
    if array.size == 0:
        return True
    return array.dtype.kind in "iu" and bool(array.min() >= 0) and bool(array.max() < count)
