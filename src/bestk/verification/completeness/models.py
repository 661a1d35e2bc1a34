"""The models of a list: well formed, admissible, and none of them a part of another one."""

from itertools import accumulate, combinations

import numpy as np

from bestk.base.structure import Structure
from bestk.base.validation import counted
from bestk.results.completeness import CompletenessCertificate, ListedModel
from bestk.verification.limits import count_of


def malformed(c: CompletenessCertificate, p: int) -> list[str]:
    """What is wrong with how models, largest supports and groups are written; p features."""
    found = []
    for i, model in enumerate(c.models):
        support = np.asarray(model.support)
        plain = support.ndim == 1 and (support.size == 0 or support.dtype.kind in "iu")
        if not plain or np.shape(model.values) != support.shape:
            found.append(f"model {i} does not have one coefficient for each feature")
        elif support.size and not (support.min() >= 0 and support.max() < p):
            found.append(f"model {i} has features out of range")
        elif (np.diff(support) <= 0).any():
            found.append(f"model {i} lists its features out of order or twice")
        elif not np.isfinite([*np.asarray(model.values, float), model.intercept]).all():
            found.append(f"model {i} has coefficients that are not finite")
    for i, support in enumerate(c.largest or ()):
        support = np.asarray(support)
        if support.ndim != 1 or (support.size and support.dtype.kind not in "iu"):
            found.append(f"the largest support {i} does not list features")
        elif support.size and not (support.min() >= 0 and support.max() < p):
            found.append(f"the largest support {i} has features out of range")
    if c.structure is not None:
        groups = np.asarray(c.structure.groups)
        if groups.shape != (p,) or groups.dtype.kind not in "iu":
            found.append("groups do not number every feature's group")
    return found


def flaws_of(model: ListedModel, c: CompletenessCertificate) -> list[str]:
    """What keeps a model from being admissible; nothing if it may be listed."""
    found = []
    if c.structure is not None:
        found += _flaws_of_choice(model, c, c.structure)
    elif (size := len(np.setdiff1d(model.support, c.free))) > c.k:
        found.append(f"it has {counted(size, 'feature')}, more than k = {c.k}")
    if len(np.setdiff1d(c.include, model.support)):
        found.append("it lacks an included feature")
    if len(np.intersect1d(c.exclude, model.support)):
        found.append("it has an excluded feature")
    slack = 1e-12 * np.abs(model.values)
    low, high = c.lower[model.support], c.upper[model.support]
    if ((model.values < low - slack) | (model.values > high + slack)).any():
        found.append("a coefficient is out of its bounds")
    if model.intercept != 0.0 and not c.fit_intercept:
        found.append("it has an intercept, and the problem has none")
    return found


def _flaws_of_choice(
    model: ListedModel, c: CompletenessCertificate, structure: Structure
) -> list[str]:
    """Does a model with structure obey it?"""
    found = []
    groups = structure.groups_of(model.support)
    size = len(np.setdiff1d(groups, structure.groups_of(c.free)))
    if len(structure.features_of(groups)) != len(model.support):
        found.append("it has some features of a group, and not all of them")
    if size > c.k:
        found.append(f"it has {counted(size, 'group')}, more than k = {c.k}")
    if np.setdiff1d(c.free, model.support).size:
        found.append("it lacks a free group")
    if structure.broken(groups):
        found.append("it breaks a rule")
    C, size = structure.matrix[:, model.support], np.abs(model.values).max(initial=0.0)
    value, parts = C @ model.values, np.abs(C) @ (np.abs(model.values) + 1e-2 * size)
    for i in range(len(C)):
        ends = [abs(end) for end in (structure.lower[i], structure.upper[i]) if np.isfinite(end)]
        slack = 1e-8 * (parts[i] + max(ends, default=0.0))
        if not structure.lower[i] - slack <= value[i] <= structure.upper[i] + slack:
            found.append(f"it violates constraint {i}")
    return found


def seconds_of_models(models: tuple[ListedModel, ...], n_rows: int) -> float:
    """How long it takes to evaluate models and to compare them with each other, about."""
    sizes = [len(model.support) for model in models]
    n, largest, entries = len(models), max(sizes, default=0), sum(sizes) + 2 * len(models)
    return 1e-4 * n + 1e-7 * n * min(n, 2 ** min(largest, 60)) + 2e-8 * entries * n_rows


def containments(supports: list[frozenset[int]]) -> list[str]:
    """Supports of the list (or choices of groups) that contain others, or stand there twice."""
    known, sizes = set(supports), sorted({len(support) for support in supports})
    found = []
    if len(known) < len(supports):
        found.append("a model is listed twice")
    for i, support in enumerate(supports):
        smaller = [size for size in sizes if size < len(support)]
        parts = (count_of(len(support), size, len(known)) for size in smaller)
        if any(total > len(known) for total in accumulate(parts)):  # too many to form
            has_other = any(other < support for other in known)
        else:
            has_other = any(
                frozenset(part) in known for size in smaller for part in combinations(support, size)
            )
        if has_other:
            found.append(f"model {i} contains another one of the list")
    return found
