"""Is a list right? Fits of this file say so, none of the solver's.

The supports of exactly k features below a threshold are those that contain a listed one. Where
there are not too many supports of k features, all of them are tried; elsewhere, all that differ
from a listed one by one feature. Rounding may decide on what lies within `SLACK` of the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, islice
from math import comb
from typing import NamedTuple

import numpy as np

from ..harness.referee import refitted
from .problems import Problem

SLACK = 1e-8
"""A share of the threshold that is not told from rounding."""
DOUBT = 1e-7
"""A share of y'y: fits by normal equations that are so near to the threshold are made again."""
MOST = 10_000_000
CHUNK = 100_000

Support = tuple[int, ...]


class Checked(NamedTuple):
    """How a list was checked, how many supports of k features it stands for, and what is wrong."""

    how: str
    of_size_k: int | None
    complaints: list[str]


class Fits:
    """Best objectives of many supports at a time."""

    def __init__(self, data: Problem):
        self.X, self.y = data.centred()
        self.alpha, self.yy = data.alpha, float(self.y @ self.y)
        norms = np.linalg.norm(self.X, axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        scaled = self.X / scale
        self.G = scaled.T @ scaled + np.diag(self.alpha / scale**2)
        self.b = scaled.T @ self.y

    def values(self, supports: np.ndarray) -> np.ndarray:
        """By normal equations: fast, and rounded."""
        if supports.shape[1] == 0:
            return np.full(len(supports), self.yy)
        b = self.b[supports]
        coef = np.linalg.solve(self.G[supports[:, :, None], supports[:, None, :]], b[..., None])
        return self.yy - np.sum(b * coef[..., 0], axis=1)

    def refitted(self, support: Sequence[int]) -> float:
        """By least squares on the data."""
        return refitted(self.X, self.y, np.array(support, dtype=int), self.alpha)

    def below(self, supports: Iterator[np.ndarray], threshold: float) -> dict[Support, float]:
        """Supports with an objective of at most the threshold and SLACK."""
        found = {}
        limit, doubt = threshold * (1.0 + SLACK), DOUBT * self.yy
        for chunk in supports:
            values = self.values(chunk)
            for i in np.flatnonzero(values <= limit + doubt):
                value = values[i]
                if value > limit - doubt:
                    value = self.refitted(chunk[i])
                if value <= limit:
                    found[tuple(chunk[i].tolist())] = value
        return found


def check(data: Problem, k: int, within: float, answer: dict) -> Checked:
    """What is wrong with a list of supports, their objectives and a threshold?"""
    fits, p = Fits(data), data.X.shape[1]
    listed = [tuple(support) for support in answer["supports"]]
    threshold = answer["threshold"]
    complaints = wrong_models(fits, listed, answer["objectives"], threshold, k)
    if abs(threshold - (1.0 + within) * answer["best"]) > SLACK * threshold:
        complaints.append("another threshold")
    if comb(p, k) <= MOST:
        near = fits.below(chunks(combinations(range(p), k), k), threshold)
        stands_for = expanded(listed, k, p)
        missing = {s for s, value in near.items() if value < threshold * (1.0 - SLACK)} - stands_for
        extra = stands_for - near.keys()
        how, count = f"all {comb(p, k):,} supports", len(stands_for)
    else:
        swapped = sorted(swaps(listed, p) - set(listed))
        near = {}
        for size in sorted({len(s) for s in swapped}):
            near |= fits.below(chunks((s for s in swapped if len(s) == size), size), threshold)
        below = [s for s, value in near.items() if value < threshold * (1.0 - SLACK)]
        missing = {s for s in below if not any(set(s).issuperset(one) for one in listed)}
        extra = set()
        how, count = f"{len(swapped):,} swaps", None
    if near and min(near.values()) < answer["best"] * (1.0 - SLACK):
        complaints.append("there is a better model")
    complaints += [f"{len(missing)} missing, such as {min(missing)}"] if missing else []
    complaints += [f"{len(extra)} above the threshold, such as {min(extra)}"] if extra else []
    return Checked(how, count, complaints)


def wrong_models(
    fits: Fits, listed: list[Support], objectives: list[float], threshold: float, k: int
) -> list[str]:
    """Models that are not as claimed, or that a smaller one makes superfluous."""
    complaints = []
    for support, claimed in zip(listed, objectives, strict=True):
        value = fits.refitted(support)
        if abs(value - claimed) > SLACK * threshold:
            complaints.append(f"{support} has {value:.10g}, not {claimed:.10g}")
        if value > threshold * (1.0 + SLACK) or len(support) > k:
            complaints.append(f"{support} does not belong to the list")
        smaller = [support[:i] + support[i + 1 :] for i in range(len(support))]
        if any(fits.refitted(rest) < threshold * (1.0 - SLACK) for rest in smaller):
            complaints.append(f"{support} can be reduced")
    if len(set(listed)) < len(listed):
        complaints.append("models are listed twice")
    return complaints


def expanded(listed: Sequence[Support], k: int, p: int) -> set[Support]:
    """All supports of k features that contain a listed one."""
    found: set[Support] = set()
    for support in (one for one in listed if len(one) <= k):
        others = [j for j in range(p) if j not in support]
        more = combinations(others, k - len(support))
        found.update(tuple(sorted(support + added)) for added in more)
    return found


def swaps(listed: Sequence[Support], p: int) -> set[Support]:
    """All supports that have one feature of a listed one replaced."""
    return {
        tuple(sorted((*support[:i], *support[i + 1 :], j)))
        for support in listed
        for i in range(len(support))
        for j in range(p)
        if j not in support
    }


def chunks(supports, size: int) -> Iterator[np.ndarray]:
    """Supports of one size as arrays, a few at a time."""
    supports = iter(supports)
    while some := list(islice(supports, CHUNK)):
        flat = np.fromiter(chain.from_iterable(some), dtype=np.intp, count=len(some) * size)
        yield flat.reshape(len(some), size)
