"""Every support of a cell, none fitted needlessly.

For a support S of at most k features f(S) >= s - 2 eta, with s = 1 - gain of S on A - 2 k eta I,
eta = eps + (4 k + 16) u: elimination is exact for a matrix [[A, c], [c', 1]] whose entries are off
by fewer than 4 k + 16 roundings, and (1 + |b|_1)^2 <= 2 + 2 k |b|^2. So the scan works on shifted
products, and what it passes over is proven. What it lists is judged one by one; beginnings that
products cannot judge are projected out of the columns, whose rests are scaled to unit length again.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import combinations, pairwise
from math import comb, inf
from typing import Any, NamedTuple

import numpy as np

from bestk.verification.evidence import Evidence
from bestk.verification.limits import count_of, limits
from bestk.verification.numerics.cells import margins, pass_cells
from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.numerics.matrices import Stored
from bestk.verification.numerics.rounding import LONG, LONG_UNIT, UNIT, gamma
from bestk.verification.numerics.rows import Columns, reflected, triangle
from bestk.verification.numerics.scan import condition, last_given, scan
from bestk.verification.supports.on_device import PairScan
from bestk.verification.supports.single import DEPENDENT, Judge, assume, assume_dependent
from bestk.verification.threads import shared

# Below this share of y'y products have too few digits left to tell supports apart.
_FEW_DIGITS = 1e-6


class Unjudged(Exception):
    """A cell could not be enumerated, for the reason given."""


class Cell(NamedTuple):
    """The supports inside + at most r of free (live positions)."""

    inside: np.ndarray
    free: np.ndarray
    r: int


class _Rest(NamedTuple):
    """What is left of features and y given others: products, what has to be gained, their error."""

    H: np.ndarray
    d: np.ndarray
    needed: float
    least: float


class Enumeration:
    """The least value over all supports of a cell, or `target` where all of them reach it.

    Supports that contain one of `known` (live positions) are passed over.
    """

    def __init__(
        self,
        evidence: Evidence,
        target: float,
        judge: Judge,
        pool: ThreadPoolExecutor | None,
        device: PairScan | None = None,
        known: list[np.ndarray] | None = None,
    ) -> None:
        self.evidence, self.target, self.judge = evidence, target, judge
        self.pool, self.device, self.known = pool, device, known or []
        self.threads = 1 if pool is None else pool._max_workers
        self.n_supports = 0

    def values(self, cells: np.ndarray) -> list[Any]:
        """Lower bounds on f over each cell (row); an Unjudged where that is not feasible.

        Small cells share the threads among them, large ones have all threads to themselves.
        """
        counts, done = self._counts(cells), self._contain_known(cells == IN)
        counts = [0 if is_done else count for count, is_done in zip(counts, done, strict=True)]
        self.n_supports += sum(int(count) for count in counts if count < inf)
        few = limits().thread_supports
        small = np.array([i for i, n in enumerate(counts) if n < few and not done[i]], int)
        values = dict.fromkeys(np.flatnonzero(done).tolist(), max(self.target, 0.0))
        values |= dict.fromkeys(self._passed(cells, small, counts), max(self.target, 0.0))
        rest = [int(i) for i in small if i not in values]
        found = shared(self.pool, self._alone.value, [self._cell(cells[i]) for i in rest])
        values.update(zip(rest, found, strict=True))
        return [
            values[i] if i in values else self.value(self._cell(cells[i]))
            for i in range(len(cells))
        ]

    def _contain_known(self, has: np.ndarray) -> np.ndarray:
        """Which rows, masks of live features, contain a known support?"""
        found = np.zeros(len(has), dtype=np.bool_)
        for support in self.known:
            found |= has[:, support].all(axis=1)
        return found

    def _counts(self, cells: np.ndarray) -> list[int | float]:
        """How many supports each cell has; infinity for too many."""
        n_free, n_in = (np.count_nonzero(cells == kind, axis=1) for kind in (FREE, IN))
        pairs = np.column_stack([n_free, np.minimum(self.evidence.k - n_in, n_free)])
        different, which = np.unique(pairs, axis=0, return_inverse=True)
        counts = [count_of(*pair) for pair in different.tolist()]
        return [counts[i] for i in which.ravel()]

    def _cell(self, state: np.ndarray) -> Cell:
        inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        return Cell(inside, free, self.evidence.k - len(inside))

    def _passed(self, cells: np.ndarray, small: np.ndarray, counts: list[int | float]) -> list[int]:
        """Which of the small cells are proven in bulk: most have no support that comes close."""
        e = self.evidence
        n_features = np.count_nonzero(cells[small] != OUT, axis=1)
        small = small[n_features <= limits().looped_features]
        if not isinstance(e.A, Stored) or self.target <= 0.0 or len(small) == 0:
            return []
        few, passed = self._few_digits, np.zeros(len(small), dtype=np.bool_)
        A, c = e.A.A, e.c

        def one(part: slice) -> None:
            given = (A, c, e.eps, e.k, self.target, few, cells, small[part])
            pass_cells(*given, passed[part])

        work = np.cumsum([counts[i] for i in small], dtype=np.float64) // limits().thread_supports
        edges = [0, *(np.flatnonzero(np.diff(work)) + 1).tolist(), len(small)]
        shared(self.pool, one, [slice(*edge) for edge in pairwise(edges)])
        return small[passed].tolist()

    @cached_property
    def _alone(self) -> "Enumeration":
        """The same on one thread."""
        return Enumeration(self.evidence, self.target, self.judge, None, known=self.known)

    def value(self, cell: Cell) -> Any:
        """A lower bound on f over inside + (at most r of free); larger supports are no worse."""
        inside, free, r = cell.inside, cell.free, min(cell.r, len(cell.free))
        self.evidence.allowance.check()
        if count_of(len(free), r) == inf:
            return Unjudged(f"it has more than {limits().supports:.0e} supports, too many to try")
        least = max(self.target, 0.0)
        try:
            if least > 0.0:
                for supports in self._by_length(self.hits(inside, free, r)):
                    supports = self._unknown(supports)
                    if len(supports) == 0:
                        continue
                    least = min(least, float(self.judge.bounds(supports).min()))
        except Unjudged as reason:
            return reason
        return least

    def _unknown(self, supports: np.ndarray) -> np.ndarray:
        """Rows of supports that contain none of those known."""
        if not self.known:
            return supports
        has = np.zeros((len(supports), len(self.evidence.c)), dtype=np.bool_)
        np.put_along_axis(has, supports, True, axis=1)
        return supports[~self._contain_known(has)]

    @staticmethod
    def _by_length(supports: list[np.ndarray]) -> list[np.ndarray]:
        groups: dict[int, list[np.ndarray]] = {}
        for support in supports:
            groups.setdefault(len(support), []).append(support)
        return [np.array(groups[size], dtype=np.int64) for size in sorted(groups)]

    def hits(self, inside, free, r) -> list[np.ndarray]:
        """The supports that are not proven to reach the target."""
        if r == 0 or r == len(free):
            return [np.concatenate([inside, free[:r]])]
        if r == 1 and len(free) > limits().listed_features:
            return self._hits_of_one(inside, free)
        if self._are_too_many(inside, free):
            raise Unjudged(f"the products of its {len(free)} features are too many")
        rest = self._given(inside, free, r)
        if rest is None:
            return self._hits_from_columns(inside, free, r)
        if self._is_for_device(len(free), r):
            return self._hits_by_device(rest, inside, free, r)
        return self._hits_of_scan(rest, inside, free, r)

    def _is_for_device(self, m: int, r: int) -> bool:
        if self.device is None or comb(m, r) < limits().device_supports:
            return False
        return self.device.can_try(m, r)

    def _hits_by_device(self, rest: _Rest, inside, free, r) -> list[np.ndarray]:
        """Behind the beginnings that the device could not rule out, as ever."""
        assert self.device is not None
        if rest.needed <= 0.0:
            return self._all(inside, free, r)
        rows = self.device.beginnings(rest.H, rest.d, rest.needed, rest.least, r)
        if rows is None:
            raise Unjudged("too many of its supports come close to the claim")
        found: list[np.ndarray] = []
        for row in rows:
            chosen = row[row >= 0]
            extended = np.concatenate([inside, free[chosen]])
            found += self.hits(extended, free[chosen[-1] + 1 :], r - len(chosen))
            if len(found) > limits().hits:
                raise Unjudged(f"more than {limits().hits} of its supports come close to the claim")
        return found

    def _are_too_many(self, inside, free) -> bool:
        return len(inside) + len(free) > self.evidence.A.largest

    def _hits_of_one(self, inside, free) -> list[np.ndarray]:
        """`hits` for one more feature, from its products with the inside ones alone."""
        e = self.evidence
        shift, slack = margins(len(inside) + 1, e.eps)
        A, B = e.A.block(inside), e.A.between(inside, free)
        variance, d, left = last_given(A, B, e.c[inside], e.c[free], shift)
        needed = left - self.target - slack
        if left < self._few_digits:
            return self._hits_from_columns(inside, free, 1)
        # As in `scan`.
        promising = (variance <= 0.0) | ~(d * d <= (needed - 8.0 * UNIT) * variance)
        if np.count_nonzero(promising) > limits().hits:
            raise Unjudged(f"more than {limits().hits} of its supports come close to the claim")
        return [np.append(inside, j) for j in free[promising]]

    def _given(self, inside, free, r) -> _Rest | None:
        """Products given the inside features, None where they cannot be trusted."""
        e = self.evidence
        shift, slack = margins(len(inside) + r, e.eps)
        order = np.concatenate([inside, free])
        H, d, left = condition(e.A.block(order), e.c[order], len(inside), shift)
        few = self._few_digits
        if left < few:
            return None
        goal = self.target + slack
        return _Rest(H, d, left - goal, max(few - goal, 0.0))

    def _hits_of_scan(self, rest: _Rest, inside, free, r) -> list[np.ndarray]:
        found: list[np.ndarray] = []
        if rest.needed <= 0.0:
            return self._all(inside, free, r)
        for row in self._scanned(rest, r):
            chosen = row[row >= 0]
            extended = np.concatenate([inside, free[chosen]])
            later = free[chosen[-1] + 1 :]
            if len(chosen) == r:
                found.append(extended)
            elif len(chosen) + len(later) >= r:
                found += self._hits_from_columns(extended, later, r - len(chosen))
            if len(found) > limits().hits:
                raise Unjudged(f"more than {limits().hits} of its supports come close to the claim")
        return found

    def _all(self, inside, free, r) -> list[np.ndarray]:
        if comb(len(free), r) > limits().hits:
            raise Unjudged(f"all of its {comb(len(free), r)} supports come close to the claim")
        return [np.concatenate([inside, chosen]) for chosen in combinations(free, r)]

    def _scanned(self, rest: _Rest, r: int) -> np.ndarray:
        """Rows of indices that `scan` lists, in one order for any number of threads."""
        m = len(rest.d)
        spans = _spans(m, r, self.threads)

        def one(span):
            self.evidence.allowance.check()
            room = 256
            while room <= limits().hits:
                hits = np.empty((room, r), dtype=np.int64)
                count = scan(rest.H, rest.d, rest.needed, rest.least, r, span[0], span[1], hits)
                if count >= 0:
                    return hits[:count]
                room *= 16
            raise Unjudged(f"more than {room // 16} of its supports come close to the claim")

        return np.concatenate(shared(self.pool, one, spans))

    @cached_property
    def _columns(self) -> Columns | None:
        """All live columns in extended precision, with few rows; None where that costs too much."""
        e = self.evidence
        p = len(e.c)
        if e.rows is None:
            return _root_of_gram(e)
        n = e.rows.n_rows + (p if e.rows.ridge.any() else 0)
        if n * p * min(n, p) > limits().factored_multiplies:
            return None
        columns = e.rows.columns(e.live)
        return triangle(columns) if n > 2 * (p + 1) else columns

    @property
    def _few_digits(self) -> float:
        """The share of y'y below which columns are asked, if there are any."""
        e = self.evidence
        if e.rows is None or e.rows.n_rows * len(e.c) ** 2 > limits().factored_multiplies:
            return 0.0
        return _FEW_DIGITS

    def _hits_from_columns(self, inside, free, r) -> list[np.ndarray]:
        """`hits` after projecting the inside columns out of the others."""
        if r == len(free):
            return [np.concatenate([inside, free])]
        columns = None if self._are_too_many(inside, free) else self._columns
        if columns is None:
            if comb(len(free), r) <= limits().hits // 100:
                return self._all(inside, free, r)
            raise Unjudged(
                "its features are nearly dependent, and the rows that would tell them apart are "
                "too many, or were not kept"
            )
        projected = _project(columns, inside, free)
        live = projected.norm > DEPENDENT * np.sqrt(float(len(columns.M)))
        if not live.all():
            if self.evidence.is_boxed:
                return self._all(inside, free, r)
            assume_dependent(self.evidence, free[~live])
            free, r = free[live], min(r, int(live.sum()))
            if r == len(free):
                return [np.concatenate([inside, free])]
        rest = self._rest_of(projected, live, len(inside) + r)
        if rest is None:
            return self._all(inside, free, r)
        return self._hits_of_scan(rest, inside, free, r)

    def _rest_of(self, projected: "_Projected", live, k: int) -> _Rest | None:
        """Products of the projected columns, in units of their own lengths."""
        size = projected.y_norm
        if size == 0.0 or projected.share < 0.98:
            return None
        unit = (projected.columns[live] / projected.norm[live][:, None]).astype(np.float64)
        z = (projected.y / size).astype(np.float64)
        unknown = max(float(projected.unknown[live].max(initial=0.0)), projected.y_unknown)
        # Lengths, rounding to double, products of n rows; then what is unknown about the columns.
        eps = gamma(unit.shape[1] + 8) + 2.05 * unknown
        eta = eps + gamma(4 * k + 16)
        if not k * eta < 0.1:
            return None
        H = unit @ unit.T
        H[np.diag_indices(len(H))] = 1.0 - 2.0 * k * eta * 1.01
        left = size**2 * projected.share * (1.0 - 1e-15)
        goal = self.target / left + 2.0 * eta * 1.01
        return _Rest(H, unit @ z, 1.0 - goal, max(_FEW_DIGITS - goal, 0.0))


class _Projected(NamedTuple):
    """Columns (as rows) and y without what the inside columns explain of them.

    In units of |r_y|, |true residual| >= root(share) |r_y - sum of v_j r_j / |r_j||
    - (y_unknown + sum of unknown_j |v_j|) for all coefficients of the inside columns. The square of
    that is at least share * (|.|^2 - 2.05 max(unknown) (1 + |v|_1)^2).
    """

    columns: np.ndarray
    norm: np.ndarray
    unknown: np.ndarray
    y: np.ndarray
    y_norm: float
    y_unknown: float
    share: float


def _project(columns: Columns, inside, free) -> _Projected:
    """Project in extended precision and say how wrong the result may be.

    Reflections are exact for columns off by e. With R the triangle of the inside columns an error e
    in them acts like e times the coefficients of a column on them, R^-1 q, and moves a residual of
    length F by at most e |R^-1| F beside that.
    """
    m = len(inside)
    every = np.vstack([columns.M[:, np.concatenate([inside, free])].T, columns.z])
    C, error = reflected(every, m)
    error += columns.error
    steps = min(m, C.shape[1])
    R, q = C[:steps, :steps].T, C[m:, :steps]
    rest = C[m:, steps:]
    norm = np.sqrt((rest * rest).sum(axis=1)).astype(np.float64)
    coefficients, inverse = _solved(R, q)
    spread = error * inverse * np.sqrt(max(m, 1)) * 1.1
    amount = 1.1 * error * (1.0 + coefficients)
    with np.errstate(divide="ignore", invalid="ignore"):
        unknown = np.where(norm > 0.0, amount / norm, np.inf)
    return _Projected(
        columns=rest[:-1], norm=norm[:-1], unknown=unknown[:-1], y=rest[-1], y_norm=float(norm[-1]),
        y_unknown=float(unknown[-1]), share=1.0 - spread**2 if spread < 1.0 else 0.0,
    )  # fmt: skip


def _solved(R, q) -> tuple[np.ndarray, float]:
    """(sum of |R^-1 q| for each row of q, |R^-1|), roughly; inf where R is singular."""
    if len(R) == 0:
        return np.zeros(len(q)), 0.0
    if (R.diagonal() == 0).any():
        return np.full(len(q), np.inf), np.inf
    right = np.vstack([q, np.eye(len(R), dtype=LONG)]).T
    x = np.zeros_like(right)
    for i in range(len(R) - 1, -1, -1):
        x[i] = (right[i] - R[i, i + 1 :] @ x[i + 1 :]) / R[i, i]
    inverse = x[:, len(q) :]
    size = float(np.sqrt((inverse * inverse).sum()))
    if size * len(R) ** 2 * LONG_UNIT > 0.01:
        return np.full(len(q), np.inf), np.inf
    return np.abs(x[:, : len(q)]).sum(axis=0).astype(np.float64), size


def _root_of_gram(evidence: Evidence) -> Columns:
    """Columns whose products are A and c, as far as products can tell."""
    values, vectors = np.linalg.eigh(evidence.A.block(np.arange(len(evidence.c))))
    lost = 4 * len(values) * (evidence.eps + UNIT)
    keep = values > lost
    text = f"only products are known: directions of less than {lost:.1g} variance do not count"
    assume(evidence, text)
    root = np.sqrt(values[keep])
    z = (vectors[:, keep].T @ evidence.c) / root
    M = np.vstack([root[:, None] * vectors[:, keep].T, np.zeros(len(values))])
    z = np.append(z, np.sqrt(max(0.0, 1.0 - float(z @ z))))
    return Columns(M.astype(LONG), z.astype(LONG), 0.0)


def _spans(m: int, r: int, threads: int) -> list[tuple[int, int]]:
    """Ranges of first features that begin about equally many sets of r."""
    count = comb(m, r)
    parts = 1 if threads == 1 or count < limits().thread_supports else min(8 * threads, m)
    if parts == 1:
        return [(0, m)]
    sets = np.cumsum([float(comb(m - 1 - t, r - 1)) for t in range(m)])
    cuts = np.searchsorted(sets, np.arange(1, parts) * sets[-1] / parts) + 1
    edges = np.unique(np.concatenate([[0], cuts, [m]])).tolist()
    return list(pairwise(edges))
