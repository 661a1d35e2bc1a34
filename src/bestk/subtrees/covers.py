"""Supports that are known already: what contains one of them need not be searched again.

Rows of indices hold one support each, filled up with -1. A node whose features IN contain such a
support is done; a node in which one is still possible is better branched than enumerated, since all
that contains the support would be listed.
"""

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.constants import IN, OUT
from bestk.supports.prices import choices

NO_COVERS = np.empty((0, 0), dtype=np.int64)
# Supports that contain a known one, up to which a node may be enumerated all the same.
_FEW = 16.0


def as_rows(supports: list[np.ndarray]) -> np.ndarray:
    """Supports as rows."""
    width = max(map(len, supports), default=0)
    rows = np.full((len(supports), width), -1, dtype=np.int64)
    for row, support in zip(rows, supports, strict=True):
        row[: len(support)] = support
    return rows


def among(rows: np.ndarray, here: np.ndarray, size: int) -> np.ndarray:
    """Supports in the numbers of some of `size` features, those that have only such features."""
    if not len(rows):
        return rows
    place = np.full(size + 1, -1, dtype=np.int64)  # the last one is for -1
    place[here] = np.arange(len(here))
    found = place[rows]
    return np.ascontiguousarray(found[((found >= 0) == (rows >= 0)).all(axis=1)])


def contains_one(supports: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Which supports (rows of indices below `size`) contain one of those known?"""
    has = np.zeros((len(supports), size + 1), dtype=bool)
    np.put_along_axis(has, supports, True, axis=1)
    has[:, size] = True  # what fills up a row is in every support
    found = np.zeros(len(supports), dtype=bool)
    for row in rows:
        found |= has[:, row].all(axis=1)
    return found


@kernel
def is_covered(state, covers):
    """Do the features IN contain a known support?"""
    for row in range(covers.shape[0]):
        covered = True
        for i in range(covers.shape[1]):
            j = covers[row, i]
            if j >= 0 and state[j] != IN:
                covered = False
                break
        if covered:
            return True
    return False


@kernel
def missing(state, covers, row, r):
    """How many features of a known support are not IN; -1 where it is no longer possible."""
    count = 0
    for i in range(covers.shape[1]):
        j = covers[row, i]
        if j < 0:
            break
        if state[j] == OUT:
            return -1
        count += state[j] != IN
    return count if count <= r else -1


@kernel
def has_many(state, covers, r, n_free):
    """Are there many supports of the node that contain a known one?"""
    total = 0.0
    for row in range(covers.shape[0]):
        left = missing(state, covers, row, r)
        if left >= 0:
            total += choices(n_free - left, r - left)
            if total > _FEW:
                return True
    return False


@kernel
def feature_of_cover(state, covers, r, dual):
    """The feature to branch on: of the known support that is nearest to being IN; -1 if none is.

    Among its features the one with the largest relaxed coefficient.
    """
    best, fewest = -1, r + 1
    for row in range(covers.shape[0]):
        left = missing(state, covers, row, r)
        if 0 < left < fewest:
            best, fewest = row, left
    if best < 0:
        return -1
    feature, size = -1, -1.0
    for i in range(covers.shape[1]):
        j = covers[best, i]
        if j >= 0 and state[j] != IN and abs(dual[j]) > size:
            feature, size = j, abs(dual[j])
    return feature
