"""A record of the proof: the tree, and why each of its leaves is closed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np


class Reason(IntEnum):
    """Why a node of the tree needs no further search (or, BRANCHED, that it has children)."""

    BRANCHED = 0
    BOUND = 1
    ENUMERATED = 2


@dataclass(frozen=True, kw_only=True)
class Record:
    """One node: its parent, what it adds to the parent's IN and OUT, and the proof for it.

    ``dual`` (indices, values) is the g of theory eq. 3 with split number ``split``; it justifies
    both the bound and the fixings ``fixed_in``, ``fixed_out`` (eqs. 5, 6) against ``cutoff``.
    Features are numbered as in the problem.
    """

    parent: int
    feature: int
    inside: bool
    bound: float
    cutoff: float
    split: int
    dual: tuple[np.ndarray, np.ndarray] = field(repr=False)
    fixed_in: np.ndarray = field(repr=False)
    fixed_out: np.ndarray = field(repr=False)
    reason: Reason = Reason.BRANCHED


class SplitRecord(NamedTuple):
    """A split A = Q + T over some features: T is diagonal, or has blocks over clusters.

    Clusters hold positions within ``features``; ``t`` holds the charges of all other features.
    """

    features: np.ndarray
    t: np.ndarray
    clusters: Sequence[np.ndarray] = ()
    matrices: Sequence[np.ndarray] = ()


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The recorded tree. ``records[i]`` is node i; parents come before their children."""

    k: int
    include: np.ndarray
    exclude: np.ndarray
    splits: list[SplitRecord] = field(repr=False)
    records: list[Record] = field(repr=False)
    reasons: dict[int, Reason] = field(repr=False)

    @property
    def n_leaves(self) -> int:
        return sum(reason is not Reason.BRANCHED for reason in self.reasons.values())


class Recorder:
    """Collects records until they take more than `limit` bytes, then lets go of them all."""

    def __init__(self, enabled: bool, limit: float = 64e6) -> None:
        self.records: list[Record] = []
        self.reasons: dict[int, Reason] = {}
        self.splits: list[SplitRecord] = []
        self.enabled = enabled
        self.bytes = 0
        self._limit = limit

    def add_split(self, *split: Any) -> int:
        """Number of the new split, given as the fields of a SplitRecord."""
        self.splits.append(SplitRecord(*split))
        return len(self.splits) - 1

    def add(self, record: Record) -> int:
        """Number of the new record; meaningless once recording has stopped."""
        if not self.enabled:
            return -1
        self.records.append(record)
        self.bytes += 300 + record.dual[0].nbytes + record.dual[1].nbytes
        self.bytes += record.fixed_in.nbytes + record.fixed_out.nbytes
        if self.bytes > self._limit:
            self.enabled = False
            self.records, self.reasons, self.bytes = [], {}, 0
        return len(self.records) - 1

    def close(self, number: int, reason: Reason) -> None:
        if self.enabled:
            self.reasons[number] = reason

    def certificate(self, k: int, include: np.ndarray, exclude: np.ndarray) -> Certificate | None:
        if not self.enabled:
            return None
        return Certificate(
            k=k,
            include=include,
            exclude=exclude,
            splits=self.splits,
            records=self.records,
            reasons=self.reasons,
        )
