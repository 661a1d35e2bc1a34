"""A table whose rows lie in partitions, on this machine or on many: it is summed up where it is.

Every partition becomes sums, two sums become one, and only the last ones come here. Dask runs
this, with whatever workers it has; what a lost worker had is made again.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestk.base.cluster.client import INSTALL, Cluster
from bestk.base.cluster.collections import blocks_of
from bestk.base.fingerprint import DataDigest
from bestk.base.threads import blas_threads
from bestk.base.tuning import tuning
from bestk.base.validation import (
    as_matrix,
    as_vector,
    as_weights,
    names_of,
    require_finite,
    require_names,
    require_some_weight,
)
from bestk.problem.moments import is_wide
from bestk.problem.parts import Part
from bestk.problem.rows import dealt

Triple = tuple[np.ndarray, np.ndarray, np.ndarray | None]


class TablePart(Protocol):
    """Rows that any process can read, such as those of a file; see :mod:`bestk.readers`."""

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, where that is known without reading."""

    def read(self) -> Triple:
        """(X, y, weight), in memory."""

    def count(self) -> int:
        """How many rows there are."""


class Table(NamedTuple):
    """Partitions as delayed triples (X, y, weight) with their numbers of rows."""

    partitions: list[Any]
    lengths: list[int]
    n_features: int
    names: tuple[str, ...] | None
    client: Any

    @classmethod
    def of_collections(cls, X: Any, y: Any, weight: Any, client: Any, names: Any = None) -> "Table":
        """Of Dask arrays or data frames."""
        delayed = _delayed()
        blocks = blocks_of(X, y, weight)
        names = require_names(names_of(X) if names is None else names, blocks.n_features)
        lengths = [length for length in blocks.lengths if length is not None]
        if len(lengths) < len(blocks.lengths):
            lengths = _computed(
                lambda: [delayed(len, pure=False)(block) for block in blocks.y], client
            )
        partitions = [
            delayed(checked_rows, pure=False)(i, *triple)
            for i, triple in enumerate(blocks.triples())
        ]
        return cls(partitions, lengths, blocks.n_features, names, client)

    @classmethod
    def of_parts(cls, parts: Sequence[TablePart], names: tuple[str, ...], client: Any) -> "Table":
        """Of parts of files, which workers read."""
        delayed = _delayed()
        lengths = [part.n_rows for part in parts if part.n_rows is not None]
        if len(lengths) < len(parts):
            lengths = _computed(
                lambda: [delayed(count_part, pure=False)(part) for part in parts], client
            )
        partitions = [delayed(read_part, pure=False)(i, part) for i, part in enumerate(parts)]
        return cls(partitions, lengths, len(names), names, client)

    @property
    def n_rows(self) -> int:
        return sum(self.lengths)

    @property
    def is_wide(self) -> bool:
        return is_wide(self.n_rows, self.n_features)

    def sums(self, fit_intercept: bool) -> tuple[Part, str]:
        """(sums of all rows, digest of the data).

        Nearly dependent features are read a second time, if they are few: a triangle tells them
        apart, but takes several times as long as sums.
        """
        (total, *_), digest = self.sums_of_folds(fit_intercept, 1, 0)
        if self.n_features <= tuning().triangle_features and total.is_doubtful:
            share = Share(0, 1, 0, fit_intercept, with_triangle=True)
            (total,) = _computed(lambda: [self._sums(share)], self.client)
        return total, digest

    def sums_of_folds(self, fit_intercept: bool, n_folds: int, seed: int) -> tuple[list[Part], str]:
        """(sums of the rows of each fold, digest of the data), from one reading.

        Rows are dealt out to folds at random, in every partition for itself.
        """
        self._require_rows()
        shares = [Share(fold, n_folds, seed, fit_intercept) for fold in range(n_folds)]

        def wanted() -> list[Any]:
            return [self._digest(), *(self._sums(share) for share in shares)]

        digest, *folds = _computed(wanted, self.client)
        if any(part is None for part in folds):
            raise ValueError(
                f"there are too few rows for n_folds = {n_folds}; lower n_folds, so that every "
                "fold has rows"
            )
        total = sum(part.moments.weight for part in folds)
        require_some_weight(total, "the weight of the partitions")
        return folds, str(digest)

    def _digest(self) -> Any:
        firsts = np.cumsum([0, *self.lengths[:-1]]).tolist()
        digest = _delayed()(digest_of, pure=False)
        pairs = zip(self.partitions, firsts, strict=True)
        return _reduced([digest(rows, first) for rows, first in pairs], _digests_joined)

    def _sums(self, share: "Share") -> Any:
        part = _delayed()(part_of, pure=False)
        parts = [part(rows, number, share) for number, rows in enumerate(self.partitions)]
        return _reduced(parts, _parts_joined)

    def gathered(self) -> Triple:
        """All rows in this process: for wide data, of which sums say too little."""
        self._require_rows()
        needed, free = 8 * self.n_rows * self.n_features, _free_memory()
        if 2 * needed > free:
            raise MemoryError(
                f"X is wide ({self.n_rows} rows, {self.n_features} features), so its rows are "
                f"needed here: {2 * needed / 2**30:.3g} GiB, and {free / 2**30:.3g} GiB are free; "
                "leave out features, or use a machine with more memory"
            )
        rows = _computed(lambda: self.partitions, self.client)
        X, y = (np.concatenate([part[i] for part in rows]) for i in (0, 1))
        weights = [part[2] for part in rows]
        return X, y, None if weights[0] is None else np.concatenate(weights)

    def _require_rows(self) -> None:
        if self.n_rows == 0:
            raise ValueError(
                "X has no rows: all its partitions are empty; check the step that selected the rows"
            )


class Share(NamedTuple):
    """Which rows of every partition are summed up, and how."""

    fold: int
    n_folds: int
    seed: int
    fit_intercept: bool
    with_triangle: bool = False


# What workers run: pure functions, whose errors name the partition --------------------------


def checked_rows(number: int, X: Any, y: Any, weight: Any) -> Triple:
    where = f"X of partition {number}"
    X = as_matrix(where, X)
    y = as_vector(f"y of partition {number}", y, length=X.shape[0], of="rows of X there")
    try:
        weight = as_weights(weight, X.shape[0])
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from None
    return _aligned(X), _aligned(y), None if weight is None else _aligned(weight)


def _aligned(array: np.ndarray) -> np.ndarray:
    """What came over a wire may begin at any byte: BLAS leaves such arrays to slower loops."""
    return np.require(array, requirements=["ALIGNED"])


def read_part(number: int, part: TablePart) -> Triple:
    return checked_rows(number, *part.read())


def count_part(part: TablePart) -> int:
    return part.count()


def digest_of(rows: Triple, first_row: int) -> DataDigest:
    digest = DataDigest()
    digest.n_rows = first_row
    digest.add(*rows)
    digest.n_rows = len(rows[1])
    return digest


def part_of(rows: Triple, number: int, share: Share) -> Part | None:
    """Sums of those rows of a partition that a share is about; None if there are none."""
    X, y, weight = rows
    if share.n_folds > 1:
        rng = np.random.default_rng([share.seed, number])
        first = int(rng.integers(share.n_folds))
        mine = np.flatnonzero(dealt(rng, first, len(y), share.n_folds) == share.fold)
        X, y, weight = X[mine], y[mine], None if weight is None else weight[mine]
    if len(y) == 0:
        return None
    with blas_threads(1), np.errstate(over="ignore", invalid="ignore"):
        part = Part.of_rows(X, y, weight, share.fit_intercept, with_triangle=share.with_triangle)
    if not np.isfinite(part.reach).all():
        require_finite(f"X of partition {number}", X)
        require_finite(f"y of partition {number}", y)
        raise ValueError(f"X'X of partition {number} overflows: rescale its largest columns")
    return part


def _parts_joined(first: Part | None, second: Part | None) -> Part | None:
    if first is None or second is None:
        return first or second
    with blas_threads(1):
        return first + second


def _digests_joined(first: DataDigest, second: DataDigest) -> DataDigest:
    return first.joined(second)


# With Dask ----------------------------------------------------------------------------------


def _delayed() -> Any:
    try:
        from dask import delayed
    except ImportError as error:
        raise ImportError(f"this needs Dask, which is not installed: {INSTALL}") from error
    return delayed


def _reduced(values: list[Any], joined: Callable[..., Any]) -> Any:
    """Two become one, again and again: a tree whose shape depends on their number alone."""
    join = _delayed()(joined, pure=False)
    while len(values) > 1:
        pairs = [join(*values[i : i + 2]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[len(values) - len(values) % 2 :]
    return values[0]


def _computed(make: Callable[[], list[Any]], client: Any) -> list[Any]:
    """Delayed values, computed by the workers of the client, or as Dask does without one."""
    import dask

    return list(dask.compute(*make())) if client is None else Cluster(client).computed(make)


def _free_memory() -> float:
    """Bytes that this process could still use, where the system tells."""
    try:
        import psutil
    except ImportError:
        return np.inf
    return float(psutil.virtual_memory().available)
