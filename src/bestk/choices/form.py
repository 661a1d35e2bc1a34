"""The standard form of a problem with structure: coordinates of groups, and constraints in them.

Inside a group any basis is as good as another one: with b = W x for a regular block W the group
reaches the same models. In coordinates in which its block of A is the identity a charge for the
group is one number, and nearly dependent features of a group do no harm (theory: groups). Bounds on
coefficients need the features themselves: groups with bounds keep them.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.structure import Structure
from bestk.choices.kernels.propagation import Rules, rules_of
from bestk.form.matrix import CAUTION
from bestk.form.standard_form import StandardForm
from bestk.problem.regression import Regression

# Added to a group's block of A before it is factored: coordinates stay tame beside dependence.
_TAME = 1e-6
# Residual columns of a group that are shorter than this have no direction of their own.
_DEPENDENT = 1e-13


class Space(NamedTuple):
    """What kernels need: coordinates end to end, those of group g at ``starts[g]:starts[g + 1]``.

    ``is_round`` says of a group that its block of A is the identity. ``C``, ``lower`` and ``upper``
    are the constraints in coordinates, ``C_size`` bounds the parts that C is summed up from;
    ``eps`` bounds the error of all entries of A and c, with caution.
    """

    A: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    starts: np.ndarray
    is_round: np.ndarray
    eps: float
    C: np.ndarray
    C_size: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    rules: Rules


@dataclass(frozen=True, kw_only=True, eq=False)
class ChoiceForm:
    """A problem with structure, in coordinates: ``space``, and how these belong to features.

    Coordinate i belongs to feature ``features[i]``; ``bases`` are (features, W) of blocks that are
    not the identity. ``dependent`` features repeat others of their group and are left out.
    """

    problem: Regression = field(repr=False)
    structure: Structure
    space: Space = field(repr=False)
    features: np.ndarray
    scale: np.ndarray = field(repr=False)
    bases: list[tuple[np.ndarray, np.ndarray]] = field(repr=False)
    dependent: np.ndarray

    @property
    def p(self) -> int:
        return len(self.features)

    @property
    def is_plain(self) -> bool:
        """Whether every group is one feature, without bounds or constraints."""
        space = self.space
        boxed = np.isfinite(space.lo).any() or np.isfinite(space.hi).any()
        return not (self.structure.has_groups or boxed or len(space.C))

    def most_coordinates(self, k: int, inside: np.ndarray) -> int:
        """The largest number of coordinates of a choice of k groups besides those `inside`."""
        sizes = np.diff(self.space.starts)
        others = np.sort(np.delete(sizes, inside))[::-1]
        return int(sizes[inside].sum() + others[:k].sum())


def choice_form(
    problem: Regression, structure: Structure, exclude: np.ndarray, free: np.ndarray
) -> ChoiceForm:
    """The form over all features that can enter a model; `free` are groups."""
    useful = (problem.moments.squares > 0.0) & (problem.lower < problem.upper)
    useful &= np.isfinite(problem.ridge)
    useful[exclude] = False
    if problem.yy <= 0.0:
        useful[:] = False
    features = np.flatnonzero(useful)
    features = features[np.argsort(structure.groups[features], kind="stable")]
    dependent = np.zeros(0, dtype=np.intp)
    if len(features):
        dependent = _dependent(problem, structure, features)
        features = features[~np.isin(features, dependent)]
    if len(features) == 0:
        return _empty(problem, structure, free, dependent)
    order = np.argsort(features)
    form = StandardForm.of(problem, features[order])
    back = np.argsort(order)
    A = form.matrix.submatrix(np.arange(form.p))[np.ix_(back, back)]
    lo, hi, scale = form.lo[back], form.hi[back], form.scale[back]
    starts = np.searchsorted(structure.groups[features], np.arange(structure.n_groups + 1))
    W, bases, is_round = _bases(A, lo, hi, starts, features)
    C = structure.matrix[:, features] * scale
    C[_is_open(problem, structure, features, exclude)] = 0.0
    width, size = float(np.abs(W).sum(axis=0).max()), int(np.diff(starts).max())
    rounding = (4 * size + 16) * UNIT_ROUNDOFF if bases else 0.0
    if bases:
        A = W.T @ A @ W
        A = 0.5 * (A + A.T)
    space = Space(
        A=np.ascontiguousarray(A),
        c=W.T @ form.c[back],
        lo=lo,
        hi=hi,
        starts=starts.astype(np.int64),
        is_round=is_round,
        eps=CAUTION * (form.eps + rounding) * width**2,
        C=np.ascontiguousarray(C @ W),
        C_size=np.ascontiguousarray(np.abs(C) @ np.abs(W)),
        lower=np.where((C != 0.0).any(axis=1), structure.lower, -np.inf),
        upper=np.where((C != 0.0).any(axis=1), structure.upper, np.inf),
        rules=rules_of(structure, free),
    )
    return ChoiceForm(
        problem=problem,
        structure=structure,
        space=space,
        features=features,
        scale=scale,
        bases=bases,
        dependent=dependent,
    )


def _is_open(problem, structure, features, exclude) -> np.ndarray:
    """Which constraints have features whose columns are zero: those satisfy them at no cost.

    Bounds leave such constraints out, which only lowers them; fits know them all.
    """
    dead = problem.lower < problem.upper
    dead[exclude], dead[features] = False, False
    return (structure.matrix[:, dead] != 0.0).any(axis=1)


def _empty(problem, structure, free, dependent) -> ChoiceForm:
    """Nothing has an effect on the data; what satisfies constraints is for fits to find out."""
    nothing, q = np.zeros(0), len(structure.matrix)
    space = Space(
        A=np.zeros((0, 0)), c=nothing, lo=nothing, hi=nothing,
        starts=np.zeros(structure.n_groups + 1, dtype=np.int64),
        is_round=np.ones(structure.n_groups, dtype=np.bool_), eps=0.0, C=np.zeros((q, 0)),
        C_size=np.zeros((q, 0)), lower=np.full(q, -np.inf), upper=np.full(q, np.inf),
        rules=rules_of(structure, free),
    )  # fmt: skip
    return ChoiceForm(
        problem=problem, structure=structure, space=space, features=np.zeros(0, dtype=np.intp),
        scale=nothing, bases=[], dependent=dependent,
    )  # fmt: skip


def _bases(A, lo, hi, starts, features):
    """(W, its blocks that are not the identity, which groups have unit blocks in A afterwards)"""
    W, bases = np.eye(len(A)), []
    is_round = np.ones(len(starts) - 1, dtype=np.bool_)
    for g in range(len(starts) - 1):
        part = slice(starts[g], starts[g + 1])
        size = part.stop - part.start
        if size < 2:
            continue
        if np.isfinite(lo[part]).any() or np.isfinite(hi[part]).any():
            is_round[g] = False
            continue
        block = A[part, part]
        tame = 0.0 if np.linalg.eigvalsh(block)[0] > _TAME else _TAME
        L, failed = lapack.dpotrf(block + tame * np.eye(size), lower=1, clean=1)
        if failed:
            is_round[g] = False
            continue
        W[part, part] = np.triu(solve_triangular(L, np.eye(size), lower=True).T)
        is_round[g] = tame == 0.0
        bases.append((features[part], W[part, part].copy()))
    return W, bases, is_round


def _dependent(problem: Regression, structure: Structure, features: np.ndarray) -> np.ndarray:
    """Features that earlier ones of their group explain up to rounding, and nothing else asks for.

    All levels of a factor beside an intercept, say: no model of the group needs the last one. With
    a penalty, bounds or constraints it makes a difference which of them are used.
    """
    if problem.alpha > 0.0 or not structure.has_groups:
        return np.zeros(0, dtype=np.intp)
    found = []
    asked = (structure.matrix != 0.0).any(axis=0)
    asked |= np.isfinite(problem.lower) | np.isfinite(problem.upper)
    for g in np.unique(structure.groups[features]):
        own = features[structure.groups[features] == g]
        if len(own) < 2 or asked[own].any():
            continue
        M, _ = problem.columns(own)
        found.append(own[_repeats(M / np.linalg.norm(M, axis=0))])
    return np.sort(np.concatenate([np.zeros(0, dtype=np.intp), *found]))


def _repeats(M: np.ndarray) -> np.ndarray:
    """Mask of columns of length one that have next to nothing beyond those before them."""
    basis = np.zeros((len(M), 0))
    repeats = np.zeros(M.shape[1], dtype=bool)
    for j in range(M.shape[1]):
        rest = M[:, j]
        for _ in range(2):  # the second time for what rounding left
            rest = rest - basis @ (basis.T @ rest)
        length = np.linalg.norm(rest)
        repeats[j] = length <= _DEPENDENT * np.sqrt(len(M))
        if not repeats[j]:
            basis = np.column_stack([basis, rest / length])
    return repeats
