"""The same checks in whole numbers, without any rounding; for small problems.

Columns are multiplied by numbers near 1 / s_j and y by one near 1 / |y| (any will do, as long as
the same ones are used throughout). Doubles are dyadic, so A, c and y'y are integers over one
common denominator, and determinants are computed by fraction-free elimination (Bareiss).
"""

import math
import operator
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np

from bestk.results.certificate import Certificate, SplitRecord
from bestk.verification.enumeration import Cell, Unjudged
from bestk.verification.evidence import Unfit
from bestk.verification.limits import limits
from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.splits import Outcome, Task, lowered


def whole(values: Any) -> tuple[np.ndarray, int]:
    """(integers, e): values = integers * 2^-e, exactly."""
    values = np.asarray(values, dtype=np.float64)
    ratios = [float(v).as_integer_ratio() for v in values.ravel()]
    shift = max((d.bit_length() - 1 for _, d in ratios), default=0)
    whole = np.empty(len(ratios), dtype=object)
    whole[:] = [n << (shift - d.bit_length() + 1) for n, d in ratios]
    return whole.reshape(values.shape), shift


def exact_products(X, y, weight, centre: bool, features) -> tuple[np.ndarray, int]:
    """(integers G, denominator): weighted products of [X_features y], about the mean if asked."""
    columns = [whole(X[:, j]) for j in features] + [whole(y)]
    Z = np.array([column for column, _ in columns], dtype=object)
    shifts = [shift for _, shift in columns]
    w, w_shift = whole(np.ones(len(y)) if weight is None else weight)
    G = (Z * w) @ Z.T
    denominator = 1 << w_shift
    if centre and w.sum() > 0:
        sums = Z @ w
        G = G * w.sum() - np.outer(sums, sums)
        denominator *= int(w.sum())
    # One power of two for all columns.
    top = max(shifts)
    factor = np.array([1 << (top - shift) for shift in shifts], dtype=object)
    return G * np.outer(factor, factor), denominator << (2 * top)


class ExactForm:
    """The standard form over integers: A = A_whole / D and so on; a back end of the cover."""

    def __init__(self, certificate: Certificate, G: np.ndarray, denominator: int) -> None:
        p = len(certificate.coef)
        alpha = Fraction(certificate.alpha)
        G = G * alpha.denominator
        denominator *= alpha.denominator
        useful = np.array([G[j, j] > 0 for j in range(p)], dtype=bool)
        useful &= certificate.lower < certificate.upper
        useful[certificate.exclude] = False
        self._drop_copies(certificate, G, useful)
        G[range(p), range(p)] += int(alpha * denominator)
        self.live = np.flatnonzero(useful)
        self.position = np.full(p, -1)
        self.position[self.live] = np.arange(len(self.live))
        include = self.position[certificate.include]
        self.inside = include[include >= 0]
        self.k = min(certificate.k - int((include < 0).sum()), len(self.live))
        # Multipliers near 1 / s_j and 1 / |y|.
        order = [*self.live.tolist(), p]
        G = G[np.ix_(order, order)]
        roots = [1.0 / _root(Fraction(int(G[i, i]), denominator)) for i in range(len(order))]
        factors, shift = whole(roots)
        self.B = G * np.outer(factors, factors)
        self.D = denominator << (2 * shift)
        self.unit = 1 / Fraction(roots[-1]) ** 2
        self.scale = scale = [Fraction(roots[-1]) / Fraction(root) for root in roots[:-1]]
        self.lo = [_scaled(certificate.lower[j], s) for j, s in zip(self.live, scale, strict=True)]
        self.hi = [_scaled(certificate.upper[j], s) for j, s in zip(self.live, scale, strict=True)]
        self.n_supports = 0
        self.target: Fraction = Fraction(0)

    @staticmethod
    def _drop_copies(certificate: Certificate, G, useful) -> None:
        """Leave out features that repeat others; Unfit unless each does so exactly."""
        original = {int(j): int(other) for j, other in certificate.copies}
        for j, other in original.items():
            if not useful[j]:
                continue
            allowed = certificate.alpha == 0.0 and j not in certificate.include
            for feature in (j, other):
                allowed &= bool(np.isinf(certificate.lower[feature]))
                allowed &= bool(np.isinf(certificate.upper[feature]))
            if not allowed or other in original or not useful[other]:
                raise Unfit(f"feature {j} may not be left out as a copy of {other}")
            if G[j, other] ** 2 != G[j, j] * G[other, other]:
                raise Unfit(f"feature {j} is not exactly a multiple of {other}")
        useful[list(original)] = False

    @property
    def is_boxed(self) -> bool:
        return any(bound is not None for bound in (*self.lo, *self.hi))

    def split(self, record: SplitRecord) -> "ExactSplit":
        return ExactSplit(self, record)

    def enumerate(self, cells: list[Cell]) -> list[Any]:
        return [self._least(cell) for cell in cells]

    def _least(self, cell: Cell) -> Any:
        inside, free, r = cell.inside, cell.free, min(cell.r, len(cell.free))
        self.n_supports += comb(len(free), r)
        if self.n_supports > limits().exact_supports:
            raise ValueError(
                f"exact verification tries at most {limits().exact_supports} supports, "
                "here are more"
            )
        if self.target <= 0:
            return Fraction(0)
        order = [*inside.tolist(), *free.tolist(), len(self.B) - 1]
        search = _Enumeration(self, self.B[np.ix_(order, order)], order)
        try:
            return min(self.target, search.least(len(inside), r))
        except Unjudged as reason:
            return reason

    def value(self, support: list[int]) -> Fraction:
        """min of f over coefficients of a support (live positions) within the bounds."""
        order = [*support, len(self.B) - 1]
        lo, hi = [self.lo[j] for j in support], [self.hi[j] for j in support]
        return least_squares(self.B[np.ix_(order, order)], lo, hi) / self.D


def _root(value: Fraction) -> float:
    """sqrt(value), also where value itself is no double."""
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(value / Fraction(4) ** shift), shift)


def _scaled(bound: float, scale: Fraction) -> Fraction | None:
    return None if math.isinf(bound) else Fraction(float(bound)) * scale


def exact_fit(certificate: Certificate, G, denominator: int, features: np.ndarray) -> Fraction:
    """min of f over the coefficients of some features within their bounds.

    G / denominator are the products of these features and y.
    """
    alpha = Fraction(certificate.alpha)
    G, denominator = G * alpha.denominator, denominator * alpha.denominator
    G[range(len(features)), range(len(features))] += int(alpha * denominator)
    lo = [_scaled(bound, Fraction(1)) for bound in certificate.lower[features]]
    hi = [_scaled(bound, Fraction(1)) for bound in certificate.upper[features]]
    return least_squares(G, lo, hi) / denominator


def least_squares(B: np.ndarray, lo: list[Any], hi: list[Any]) -> Fraction:
    """min of q - 2 c'b + b'A b over lo <= b <= hi (None: no bound), B = [[A, c], [c', q]]."""
    if all(bound is None for bound in (*lo, *hi)):
        return Fraction(*_eliminated(B))
    for pattern in _patterns(B, lo, hi):
        b = _boxed_solution(B, pattern, lo, hi)
        if b is not None:
            k = len(lo)
            return int(B[k, k]) - sum(
                (b[i] * (int(B[i, k]) + _gradient(B, b, i)) for i in range(k)), Fraction(0)
            )
    raise Unjudged("a fit within bounds has no solution")


def _patterns(B, lo, hi) -> Iterator[tuple]:
    """Where coefficients can be in a solution: anywhere, at a bound, or at zero; a guess first.

    Zero, because dependent columns can be reduced to independent ones by moving along the null
    space until a coefficient meets a bound or vanishes.
    """
    yield _guess(B, lo, hi)
    sides = [["anywhere", *dict.fromkeys([Fraction(0), *(b for b in pair if b is not None)])]
             for pair in zip(lo, hi, strict=True)]  # fmt: skip
    if math.prod(map(len, sides)) > limits().exact_patterns:
        raise Unjudged(f"a fit of {len(lo)} features within bounds is too large for fractions")
    yield from product(*sides)


def _guess(B, lo, hi) -> tuple:
    """The pattern of a solution in floating point."""
    k = len(lo)
    size = [math.sqrt(int(B[i, i]) / int(B[0, 0])) for i in range(k)]
    A = np.array([[int(B[i, j]) / int(B[0, 0]) / size[i] / size[j] for j in range(k)]
                  for i in range(k)])  # fmt: skip
    c = np.array([int(B[i, k]) / int(B[0, 0]) / size[i] for i in range(k)])
    low = np.array([-np.inf if b is None else float(b) * s for b, s in zip(lo, size, strict=True)])
    high = np.array([np.inf if b is None else float(b) * s for b, s in zip(hi, size, strict=True)])
    b = np.clip(np.zeros(k), low, high)
    for _ in range(200):  # coordinate descent settles which bounds are met
        for i in range(k):
            b[i] = min(max(b[i] + c[i] - A[i] @ b, low[i]), high[i])
    return tuple(
        lo[i] if b[i] == low[i] else hi[i] if b[i] == high[i] else "anywhere" for i in range(k)
    )


def _gradient(B, b, i: int) -> Fraction:
    """c_i - (A b)_i: positive where a larger b_i would lower f."""
    k = len(b)
    return int(B[i, k]) - sum((int(B[i, j]) * b[j] for j in range(k)), Fraction(0))


def _boxed_solution(B, pattern, lo, hi) -> list[Fraction] | None:
    """The fit with some coefficients fixed, if it is the best one within the bounds."""
    k = len(pattern)
    free = [i for i in range(k) if pattern[i] == "anywhere"]
    b = [Fraction(0) if i in free else pattern[i] for i in range(k)]
    right = [_gradient(B, b, i) for i in free]
    solved = _solved([[Fraction(int(B[i, j])) for j in free] for i in free], [right])
    if solved is None:
        return None
    for i, x in zip(free, solved[0], strict=True):
        b[i] = x
        if (lo[i] is not None and x < lo[i]) or (hi[i] is not None and x > hi[i]):
            return None
    for i in range(k):  # f is convex: no coefficient may gain by moving within its bounds
        slope = _gradient(B, b, i)
        if (slope > 0 and b[i] != hi[i]) or (slope < 0 and b[i] != lo[i]):
            return None
    return b


def _solved(A: list[list[Fraction]], columns: list[list[Fraction]]) -> list[list[Fraction]] | None:
    """A^-1 times each column, for a semidefinite A; None if it is singular."""
    n = len(A)
    A = [[*row, *(column[i] for column in columns)] for i, row in enumerate(A)]
    for i in range(n):
        if A[i][i] == 0:
            return None
        for a in range(n):
            if a != i and A[a][i] != 0:
                factor = A[a][i] / A[i][i]
                A[a] = [x - factor * y for x, y in zip(A[a], A[i], strict=True)]
    return [[A[i][n + m] / A[i][i] for i in range(n)] for m in range(len(columns))]


def _unit_columns(size: int) -> list[list[Fraction]]:
    return [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]


def _step(B: np.ndarray, before: int) -> np.ndarray:
    """Eliminate the first row and column without fractions (Bareiss)."""
    return (B[0, 0] * B[1:, 1:] - np.outer(B[1:, 0], B[0, 1:])) // before


def _eliminated(B: np.ndarray) -> tuple[int, int]:
    """(determinant with y, without y) of [[A, c], [c', q]]: their ratio is the minimum of f."""
    before = 1
    while len(B) > 1:
        if B[0, 0] < 0 or (B[0, 0] == 0 and any(x != 0 for x in B[0])):
            raise Unjudged("its products are those of no data")
        if B[0, 0] == 0:
            B = B[1:, 1:]  # a column that depends on those before it adds nothing
            continue
        B, before = _step(B, before), int(B[0, 0])
    return int(B[0, 0]), before


class _Enumeration:
    """All supports of a cell by fraction-free elimination along their common beginnings."""

    def __init__(self, form: ExactForm, B: np.ndarray, order: list[int]) -> None:
        self.form, self.order, self.B = form, order, B
        self.found = form.target + 1

    def least(self, n_inside: int, r: int) -> Fraction:
        B, before = self.B, 1
        for _ in range(n_inside):
            if B[0, 0] == 0:
                B = B[1:, 1:]
            else:
                B, before = _step(B, before), int(B[0, 0])
        chosen = self.order[:n_inside]
        self._descend(B, before, self.order[n_inside:-1], r, chosen)
        return self.found

    def _descend(self, B, before: int, features: list[int], r: int, chosen: list[int]) -> None:
        if r == 0 or not features:
            self._meet(chosen, int(B[-1, -1]), before)
            return
        if r == 1:
            for i, j in enumerate(features):
                v = int(B[i, i])
                if v == 0:
                    self._meet([*chosen, j], int(B[-1, -1]), before)
                else:
                    rest = int(B[-1, -1]) * v - int(B[i, -1]) ** 2
                    self._meet([*chosen, j], rest, before * v)
            return
        for i in range(len(features) - r + 1):
            part = B[i:, i:]
            if part[0, 0] == 0:
                args = (part[1:, 1:], before)
            else:
                args = (_step(part, before), int(part[0, 0]))
            self._descend(*args, features[i + 1 :], r - 1, [*chosen, features[i]])

    def _meet(self, support: list[int], numerator: int, denominator: int) -> None:
        """Keep the value of a support if it is the least one."""
        form = self.form
        # Compared without fractions first: most are far away.
        if numerator * form.target.denominator >= form.target.numerator * denominator * form.D:
            return
        value = Fraction(numerator, denominator * form.D)
        if form.is_boxed:
            value = form.value(support)
        self.found = min(self.found, value)


class ExactSplit:
    """A split over integers; see splits.ProvenSplit."""

    def __init__(self, form: ExactForm, record: SplitRecord) -> None:
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
            if _is_semidefinite(self.Q):
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
        if not _is_semidefinite(self.T[np.ix_(cluster, cluster)]):
            raise ValueError("a block of its charges is not positive definite")
        columns = _solved(T, _unit_columns(len(T)))
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
            solved = _solved(A, [*_unit_columns(len(both)), c])
            if solved is None:
                raise ValueError("its box is not proven: the matrix A is singular")
            ridge = solved[-1]
            least = Fraction(int(form.B[-1, -1]), form.D) - sum(map(operator.mul, c, ridge))
            for i, (j, where) in enumerate(zip(both, kept, strict=True)):
                for sign, own, bound in ((-1, self.lo, record.lower), (1, self.hi, record.upper)):
                    edge = _scaled(float(bound[where]), form.scale[j])
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


def _is_semidefinite(B: np.ndarray) -> bool:
    """Fraction-free elimination: no negative pivot, and zeros beside a zero pivot."""
    before = 1
    while len(B):
        pivot = B[0, 0]
        if pivot < 0 or (pivot == 0 and any(x != 0 for x in B[0])):
            return False
        if pivot == 0:
            B = B[1:, 1:]
        else:
            B, before = _step(B, before), int(pivot)
    return True


def exact_objective(certificate: Certificate, X, y, weight) -> Fraction:
    """f(coef, intercept), exactly."""
    support = np.flatnonzero(certificate.coef)
    columns, x_shift = whole(X[:, support])
    b, b_shift = whole(np.append(certificate.coef[support], certificate.intercept))
    y_whole, y_shift = whole(y)
    w, w_shift = whole(np.ones(len(y)) if weight is None else weight)
    fitted = (columns @ b[:-1] if len(support) else 0) + (b[-1] << x_shift)
    residual = (y_whole << (x_shift + b_shift)) - (fitted << y_shift)
    total = Fraction(
        int(w @ (residual * residual)), 1 << (w_shift + 2 * (x_shift + b_shift + y_shift))
    )
    squares = sum((Fraction(float(x)) ** 2 for x in certificate.coef[support]), Fraction(0))
    return total + Fraction(certificate.alpha) * squares


def floor_float(value: Fraction) -> float:
    """The largest double that is not above a fraction."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
