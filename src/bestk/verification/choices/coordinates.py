"""Coordinates of groups: b = W x, where W is the identity but for blocks within groups.

With w_j the sum of |W| over column j, |b|_1 <= sum of w_j |x_j|. A choice has at most K of them, so
what is unknown of the data costs at most

    eps (1 + |b|_1)^2 <= 2 eps + 2 eps K sum of w_j^2 x_j^2.

W'A W and W'c are computed with roundings of parts that add up to w_i w_j: they are entries known up
to eps w_i w_j like any other, with a slightly larger eps.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.evidence import Evidence, Unfit
from bestk.verification.numerics.choice import FREE, IN
from bestk.verification.numerics.rounding import UNIT, gamma
from bestk.verification.supports.single import assume, assume_dependent, dependent_columns


class Basis(NamedTuple):
    """A block of W: x = ``triangle``^-1 b at live positions of one group."""

    places: np.ndarray
    triangle: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """The problem in coordinates, numbered like the live features of the evidence.

    Coordinate j belongs to group ``owner[j]`` and has width ``w[j]``. Those that are not ``kept``
    depend on others of their group: no choice needs them. A choice has at most ``most``.
    """

    evidence: Evidence = field(repr=False)
    owner: np.ndarray
    bases: list[Basis] = field(repr=False)
    w: np.ndarray = field(repr=False)
    c: np.ndarray = field(repr=False)
    eps: float
    kept: np.ndarray
    most: int

    def block(self, places: np.ndarray) -> np.ndarray:
        """A new array (W'A W)[places][:, places]"""
        touched = [basis for basis in self.bases if np.isin(basis.places, places).any()]
        every = np.unique(np.concatenate([places, *(basis.places for basis in touched)]))
        if len(every) > self.evidence.A.largest:
            raise ValueError(f"its {len(every)} features are too many for a matrix in memory")
        A = self.evidence.A.block(every)
        for basis in touched:
            at = np.searchsorted(every, basis.places)
            A[:, at] = A[:, at] @ basis.triangle
            A[at] = basis.triangle.T @ A[at]
        at = np.searchsorted(every, places)
        A = A[np.ix_(at, at)]
        return np.triu(A) + np.triu(A, 1).T  # symmetric in every digit

    def turned(self, rows: np.ndarray) -> np.ndarray:
        """W'r of each row r over the live features."""
        for basis in self.bases:
            rows[:, basis.places] = rows[:, basis.places] @ basis.triangle
        return rows

    def spread(self, rows: np.ndarray) -> np.ndarray:
        """|W|'r of each row r >= 0, up to rounding: how large the parts of `turned` are."""
        for basis in self.bases:
            rows[:, basis.places] = rows[:, basis.places] @ np.abs(basis.triangle)
        return rows

    @property
    def roundings(self) -> int:
        """How many more roundings a number has gone through after `turned`."""
        return max((len(basis.places) for basis in self.bases), default=0)


def coordinates_of(certificate: Certificate, evidence: Evidence, root: np.ndarray) -> Coordinates:
    """Unfit where a block of the certificate is about features that take no part."""
    structure, choices = certificate.structure, certificate.choices
    assert structure is not None
    assert choices is not None
    owner = structure.groups[evidence.live].astype(np.int64)
    bases = []
    for features, triangle in choices.bases():
        places = evidence.position[features]
        if (places < 0).any():
            raise Unfit(
                f"choices.blocks has feature {features[places < 0][0]}, which cannot be in a model"
            )
        bases.append(Basis(places, np.asarray(triangle, dtype=np.float64)))
    size = max((len(basis.places) for basis in bases), default=0)
    w, c = np.ones(len(evidence.c)), evidence.c.copy()
    for places, triangle in bases:
        w[places] = np.abs(triangle).sum(axis=0) * (1.0 + gamma(size + 2))
        c[places] = c[places] @ triangle
    kept = ~_dependent(certificate, evidence, owner)
    return Coordinates(
        evidence=evidence, owner=owner, bases=bases, w=w, c=c, kept=kept,
        eps=evidence.eps + (gamma(2 * size + 6) if bases else 0.0),
        most=_most(np.bincount(owner, minlength=len(root)), root, certificate),
    )  # fmt: skip


def _most(sizes: np.ndarray, root: np.ndarray, certificate: Certificate) -> int:
    """The largest number of live features of a choice: those that must be, k largest others."""
    others = np.sort(sizes[root == FREE])[::-1]
    return int(sizes[root == IN].sum() + others[: int(certificate.k)].sum())


def _dependent(certificate: Certificate, evidence: Evidence, owner: np.ndarray) -> np.ndarray:
    """Mask of live features that splits leave out since others of their group explain them.

    Only without a penalty, and where neither bounds nor constraints ask for a coefficient of the
    group: then the others reach the same models. A feature that is not in fact dependent stays, and
    splits without it do not cover it.
    """
    e, dependent = evidence, np.zeros(len(evidence.c), dtype=bool)
    structure = certificate.structure
    assert structure is not None
    if certificate.alpha > 0.0 or len(certificate.splits) == 0:
        return dependent
    used = np.zeros(len(e.c), dtype=bool)
    for split in certificate.splits:
        places = e.position[split.features]
        used[places[places >= 0]] = True
    asked = (structure.matrix != 0.0).any(axis=0)[e.live] | np.isfinite(e.lo) | np.isfinite(e.hi)
    for group in np.unique(owner[~used]):
        own = np.flatnonzero(owner == group)
        if asked[own].any() or not used[own].any():
            continue
        own = np.concatenate([own[used[own]], own[~used[own]]])  # what stays comes first
        found = own[_repeats(e, own) & ~used[own]]
        dependent[found] = True
        if e.rows is not None:
            assume_dependent(e, found)
        for j in e.live[found] if e.rows is None else ():
            assume(e, f"feature {j} depends on others as far as products tell")
    return dependent


def _repeats(evidence: Evidence, places: np.ndarray) -> np.ndarray:
    """Mask of features with next to nothing beyond those before them."""
    e = evidence
    if e.rows is not None:
        return dependent_columns(e.rows.columns(e.live[places]))
    lost = 4 * len(e.c) * (e.eps + UNIT)
    A, repeats = e.A.block(places), np.zeros(len(places), dtype=bool)
    for i in range(len(places)):
        repeats[i] = A[i, i] <= lost
        if not repeats[i]:
            A[i + 1 :, i + 1 :] -= np.outer(A[i + 1 :, i] / A[i, i], A[i, i + 1 :])
    return repeats
