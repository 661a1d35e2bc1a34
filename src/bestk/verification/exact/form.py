"""The same checks in whole numbers, without any rounding; for small problems.

Columns are multiplied by numbers near 1 / s_j and y by one near 1 / |y| (any will do, as long as
the same ones are used throughout). Then A, c and y'y are integers over one common denominator.
"""

import math
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from bestk.results.certificate import Certificate, SplitRecord
from bestk.verification.allowance import ANY_TIME
from bestk.verification.evidence import Unfit
from bestk.verification.exact.elimination import scaled, step, whole
from bestk.verification.exact.fits import least_squares
from bestk.verification.exact.splits import ExactSplit
from bestk.verification.limits import limits
from bestk.verification.nodes import Lined, Proven, SplitBySplit
from bestk.verification.numerics.choice import FREE, IN
from bestk.verification.supports.enumeration import Unjudged


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


def exact_fit(certificate: Certificate, G, denominator: int, features: np.ndarray) -> Fraction:
    """min of f over the coefficients of some features within their bounds.

    G / denominator are the products of these features and y.
    """
    alpha = Fraction(certificate.alpha)
    G, denominator = G * alpha.denominator, denominator * alpha.denominator
    G[range(len(features)), range(len(features))] += int(alpha * denominator)
    lo = [scaled(bound, Fraction(1)) for bound in certificate.lower[features]]
    hi = [scaled(bound, Fraction(1)) for bound in certificate.upper[features]]
    return least_squares(G, lo, hi) / denominator


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


class ExactForm:
    """The standard form over integers: A = A_whole / D and so on; a back end of the cover."""

    number: Any = object

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
        include, given = self.position[certificate.include], self.position[certificate.given]
        n_free = int((self.position[certificate.free] >= 0).sum())
        self.inside = given[given >= 0]
        self.k = min(certificate.k - int((include < 0).sum()) + n_free, len(self.live))
        # Multipliers near 1 / s_j and 1 / |y|.
        order = [*self.live.tolist(), p]
        G = G[np.ix_(order, order)]
        roots = [1.0 / _root(Fraction(int(G[i, i]), denominator)) for i in range(len(order))]
        factors, shift = whole(roots)
        self.B = G * np.outer(factors, factors)
        self.D = denominator << (2 * shift)
        self.unit = 1 / Fraction(roots[-1]) ** 2
        self.scale = scale = [Fraction(roots[-1]) / Fraction(root) for root in roots[:-1]]
        self.lo = [scaled(certificate.lower[j], s) for j, s in zip(self.live, scale, strict=True)]
        self.hi = [scaled(certificate.upper[j], s) for j, s in zip(self.live, scale, strict=True)]
        self._by_split = SplitBySplit(certificate, self.position, self.split)
        self.n_supports = 0
        self.target: Fraction = Fraction(0)
        self.allowance = ANY_TIME

    @staticmethod
    def _drop_copies(certificate: Certificate, G, useful) -> None:
        """Leave out features that repeat others; Unfit unless each does so exactly."""
        original = {int(j): int(other) for j, other in certificate.copies}
        for j, other in original.items():
            if not useful[j]:
                continue
            allowed = certificate.alpha == 0.0 and j not in certificate.given
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

    def split(self, record: SplitRecord) -> ExactSplit:
        return ExactSplit(self, record)

    def fill(self, lined: Lined, proven: Proven) -> None:
        self.allowance.check()
        self._by_split.fill(lined, proven)

    def enumerate(self, cells: np.ndarray) -> list[Any]:
        return [self._least(state) for state in cells]

    def _least(self, state: np.ndarray) -> Any:
        inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        r = min(self.k - len(inside), len(free))
        self.n_supports += comb(len(free), r)
        if self.n_supports > limits().exact_supports:
            raise ValueError(
                f"this proof asks for more than {limits().exact_supports} supports, too many to "
                "try in rational numbers; leave out exact=True (--exact)"
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
                B, before = step(B, before), int(B[0, 0])
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
        self.form.allowance.check()
        for i in range(len(features) - r + 1):
            part = B[i:, i:]
            if part[0, 0] == 0:
                args = (part[1:, 1:], before)
            else:
                args = (step(part, before), int(part[0, 0]))
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
