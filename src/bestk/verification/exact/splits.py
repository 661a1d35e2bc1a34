"""Bounds from splits over integers: the same checks as in splits, without any rounding."""

import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from bestk.results.certificate import SplitRecord
from bestk.verification.exact.elimination import (
    inverse_times,
    is_semidefinite,
    scaled,
    unit_columns,
    whole,
)
from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.splits import Outcome, Task, lowered

if TYPE_CHECKING:
    from bestk.verification.exact.form import ExactForm


class ExactSplit:
    """A split over integers; see splits.ProvenSplit."""

    def __init__(self, form: "ExactForm", record: SplitRecord) -> None:
        self.form = form
        place = form.position[record.features]
        kept = np.flatnonzero(place >= 0)
        self.features = place[kept]
        self.where = np.full(len(form.live), -1)
        self.where[self.features] = np.arange(len(kept))
        T = np.diag(np.asarray(record.t, dtype=np.float64))
        for members, block in zip(record.clusters, record.matrices, strict=True):
            T[np.ix_(members, members)] = 0.5 * (block + block.T)
        T = T[np.ix_(kept, kept)]
        new = np.full(len(place), -1)
        new[kept] = np.arange(len(kept))
        self.clusters = [c[c >= 0] for c in (new[members] for members in record.clusters)]
        self.clusters = [cluster for cluster in self.clusters if len(cluster)]
        for lower in lowered(len(kept)):
            self._set(T - lower * np.eye(len(kept)))
            if is_semidefinite(self.Q):
                break
        else:
            raise ValueError("its matrix A - T is not positive semidefinite")
        self._take_box(record, kept)
        inside = np.concatenate([np.zeros(0, dtype=np.int64), *self.clusters])
        self.single = np.setdiff1d(np.arange(len(kept)), inside).tolist()
        self.inverses = [self._inverse(cluster) for cluster in self.clusters]

    def _set(self, T: np.ndarray) -> None:
        """Q, T and c as integers over self.D."""
        T_whole, shift = whole(T)
        self.T = T_whole * self.form.D
        self.D = self.form.D << shift
        both = np.append(self.features, len(self.form.B) - 1)
        B = self.form.B[np.ix_(both, both)] << shift if shift else self.form.B[np.ix_(both, both)]
        self.Q, self.c, self.q = B[:-1, :-1] - self.T, B[:-1, -1], int(B[-1, -1])

    def _inverse(self, cluster) -> list[list[Fraction]]:
        """Inverse of the cluster's block of T."""
        T = [[Fraction(int(self.T[i, j]), self.D) for j in cluster] for i in cluster]
        if not is_semidefinite(self.T[np.ix_(cluster, cluster)]):
            raise ValueError("a block of its charges is not positive definite")
        columns = inverse_times(T, unit_columns(len(T)))
        if columns is None:
            raise ValueError("a block of its charges is singular")
        return columns

    def _take_box(self, record: SplitRecord, kept: np.ndarray) -> None:
        """The box of the split, and what models outside cost at least (theory: ridge-profile)."""
        form, outside = self.form, math.inf
        self.lo = [form.lo[j] for j in self.features]
        self.hi = [form.hi[j] for j in self.features]
        if len(record.lower):
            both = [int(j) for j in self.features]
            A = [[Fraction(int(form.B[i, j]), form.D) for j in both] for i in both]
            c = [Fraction(int(form.B[i, -1]), form.D) for i in both]
            solved = inverse_times(A, [*unit_columns(len(both)), c])
            if solved is None:
                raise ValueError("its box is not proven: the matrix A is singular")
            ridge = solved[-1]
            least = Fraction(int(form.B[-1, -1]), form.D) - sum(map(operator.mul, c, ridge))
            for i, (j, where) in enumerate(zip(both, kept, strict=True)):
                for sign, own, bound in ((-1, self.lo, record.lower), (1, self.hi, record.upper)):
                    edge = scaled(float(bound[where]), form.scale[j])
                    if edge is not None and (own[i] is None or sign * edge < sign * own[i]):
                        own[i] = edge
                        beyond = max(sign * (edge - ridge[i]), Fraction(0))
                        outside = min(outside, least + beyond**2 / solved[i][i])
        self.outside = outside

    def covers(self, state: np.ndarray) -> bool:
        return not (state[self.where < 0] != OUT).any()

    def evaluate(self, tasks: list[Task]) -> list[Outcome]:
        return [self._evaluate(task) for task in tasks]

    def _evaluate(self, task: Task) -> Outcome:
        self.form.allowance.check()
        g = np.zeros(len(self.features))
        place = self.where[task.places]
        np.add.at(g, place[place >= 0], task.dual[place >= 0])
        g_whole, shift = whole(g)
        Qg = self.Q @ g_whole if len(g) else np.zeros(0, dtype=object)
        u = [
            Fraction(int((c << shift) - x), self.D << shift)
            for c, x in zip(self.c, Qg, strict=True)
        ]
        base = Fraction(self.q, self.D)
        if len(g):
            base -= Fraction(int(g_whole @ Qg), self.D << (2 * shift))
        state = task.state[self.features].tolist()

        def value(feature: int | None = None, forced: int = FREE) -> Any:
            now = state[:]
            if feature is not None:
                now[int(self.where[feature])] = forced
            total = self._largest(u, now)
            return math.inf if total is None else base - total

        violated = [value(j, IN) for j in task.fixed_out] + [value(j, OUT) for j in task.fixed_in]
        own, violation = value(), min(violated, default=math.inf)
        return Outcome(min(own, self.outside), min(violation, self.outside))

    def _largest(self, u, state) -> Any:
        """The largest sum over supports of a cell (theory: bound, cluster-bound), None if none."""
        k = self.form.k
        gains = {i: self._phi(i, u[i]) for i in self.single if state[i] != OUT}
        must = [gains[i] for i in gains if state[i] == IN]
        may = sorted((gains[i] for i in gains if state[i] == FREE), reverse=True)
        best: list[Any] = [0, *[None] * k]
        for cluster, inverse in zip(self.clusters, self.inverses, strict=True):
            best = _combined(best, self._options(cluster, inverse, u, state), k)
        totals = [
            best[m] + sum(must) + sum(may[: k - len(must) - m])
            for m in range(k - len(must) + 1)
            if best[m] is not None
        ]
        return max(totals, default=None)

    def _phi(self, i: int, u: Fraction) -> Any:
        t = Fraction(int(self.T[i, i]), self.D)
        lo = self.lo[i]
        sides = (_one_side(u, t, self.hi[i]), _one_side(-u, t, None if lo is None else -lo))
        return max(0, *sides)

    def _options(self, cluster, inverse, u, state) -> dict[int, Any]:
        """{number of features: largest gain} of a cluster; from three on the whole of it."""
        must = [i for i in cluster if state[i] == IN]
        may = [i for i in cluster if state[i] != OUT]
        options: dict[int, Any] = {} if must else {0: Fraction(0)}
        for i in may:
            if set(must) <= {i}:
                gain = u[i] ** 2 * self.D / int(self.T[i, i])
                options[1] = max(options.get(1, gain), gain)
            for j in may:
                if i < j and set(must) <= {i, j}:
                    a, b, c = (int(self.T[x]) for x in ((i, i), (i, j), (j, j)))
                    gain = (c * u[i] ** 2 - 2 * b * u[i] * u[j] + a * u[j] ** 2) * self.D
                    gain = gain / (a * c - b * b)
                    options[2] = max(options.get(2, gain), gain)
        if len(may) > 2:
            ends = [(u[i], column) for i, column in zip(cluster, inverse, strict=True)]
            gain = sum(x * sum(y * u[j] for y, j in zip(column, cluster, strict=True))
                       for x, column in ends)  # fmt: skip
            options[max(3, len(must))] = gain
        return options


def _one_side(a: Fraction, t: Fraction, reach: Fraction | None) -> Any:
    """max over 0 <= x <= reach of 2 a x - t x^2, or something below zero (theory: gain)."""
    if t > 0 and (reach is None or a <= t * reach):
        return a * a / t if a > 0 else 0
    if reach is None:
        return math.inf if a > 0 or t < 0 else 0
    return reach * (2 * a - t * reach)


def _combined(best: list[Any], options: dict[int, Any], k: int) -> list[Any]:
    new: list[Any] = [None] * (k + 1)
    for m, total in enumerate(best):
        for taken, gain in options.items():
            if total is not None and m + taken <= k:
                value = total + gain
                if new[m + taken] is None or value > new[m + taken]:
                    new[m + taken] = value
    return new
