"""The problem of a certificate as the verifier sees it: in standard form (theory: form)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.allowance import ANY_TIME, Allowance
from bestk.verification.limits import limits
from bestk.verification.numerics import matrices
from bestk.verification.numerics.matrices import Matrix, Stored
from bestk.verification.numerics.rounding import LONG, LONG_UNIT, UNIT, gamma
from bestk.verification.numerics.rows import Rows
from bestk.verification.numerics.sums import Sums, scaled_sums
from bestk.verification.numerics.wide import WideColumns, wide_columns

_ROWS = 512
# A feature repeats another one if their directions differ by less than this.
_COPY = 1e-13
# A column that varies by less than so many roundings of its mean may be taken for a constant.
_CONSTANT = 128


class NoVariation(Exception):
    """y is zero, or a constant beside an intercept: zero is as good a bound as any.

    Arguments: the objective of the model, and the sum of squares of y it is to be compared with.
    """


class Unfit(Exception):
    """The certificate does not fit the data, for the reason given."""


class Model(NamedTuple):
    """The certificate's model: its features, a lower bound on f there, half the descent of f.

    ``gradient`` is X'(y - X b) - alpha b, known up to ``error``; in units of the data.
    """

    features: np.ndarray
    value: float
    gradient: np.ndarray
    error: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """min 1 - 2 c'b + b'A b over the live features, all entries known up to ``eps``.

    A is stored, or known by the columns of data where these are much smaller.

    ``live`` are the features (numbers in the problem) that may enter a model, ``position`` finds
    them again (-1: not live), ``inside`` are the positions of those that must be used, or may be
    without being counted. ``k`` counts live features only, these among them. f = unit * f_form and
    b_form = to_form * b. ``rows`` is None where only products are known. ``allowance`` says how
    long the work on it may take.
    """

    A: Matrix = field(repr=False)
    c: np.ndarray = field(repr=False)
    eps: float
    lo: np.ndarray = field(repr=False)
    hi: np.ndarray = field(repr=False)
    live: np.ndarray
    position: np.ndarray = field(repr=False)
    inside: np.ndarray
    k: int
    unit: float
    objective: float
    form_coef: np.ndarray = field(repr=False)
    rows: Rows | None
    model: Model | None
    to_form: np.ndarray = field(repr=False)
    assumptions: list[str]
    allowance: Allowance = ANY_TIME

    @property
    def is_boxed(self) -> bool:
        return bool(np.isfinite(self.lo).any() or np.isfinite(self.hi).any())


# A of some features (ascending), given units and penalties of all.
MakeMatrix = Callable[[np.ndarray, np.ndarray, np.ndarray], Matrix]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Products:
    """What is known of the products of [X y], in units 2^exponent, and where it comes from.

    ``squares`` of all columns, y the last, and ``moments`` with y; ``matrix`` makes A of some
    features. Entries have the relative error ``error``.
    """

    squares: np.ndarray
    moments: np.ndarray
    matrix: MakeMatrix
    error: np.ndarray
    tau: np.ndarray
    exponent: np.ndarray
    dead: np.ndarray
    doubtful: np.ndarray  # columns that can hardly be told from constants
    objective: float
    size: float  # y'y before any mean was subtracted
    model: Model | None = None
    data: tuple | None = None
    sums: Sums | WideColumns | None = None


def from_rows(certificate: Certificate, X, y, weight) -> Evidence:
    """Of rows in memory: by products of all features, or by columns where there are too many."""
    rows = (X, y, weight)
    known: Sums | WideColumns
    if matrices.is_wide(*X.shape):
        known = wide_columns(*rows, certificate.fit_intercept)
    else:
        known = scaled_sums(*rows, certificate.fit_intercept)
    if known.extreme.any():
        raise Unfit("some columns are too large or too small to be squared")
    value = _Objective(certificate)
    value.add(*rows)
    return _evidence(certificate, _products(known, value, rows))


def from_batches(certificate: Certificate, batches: Iterable[tuple], digest) -> Evidence:
    """One pass, with the digest of the rows. They are summed up once there are too many to keep."""
    p = len(certificate.coef)
    kept, stream = _Kept(p), _Stream(certificate)
    for X, y, weight in batches:
        digest.add(X, y, weight)
        if X.shape[1] != p or len(y) == 0:
            continue
        if not kept.add(X, y, weight):
            if kept.n_rows > 0:
                stream.add(*kept.release())
            stream.add(X, y, weight)
    return from_rows(certificate, *kept.release()) if kept.n_rows > 0 else stream.evidence()


class _Kept:
    """Rows in double precision while these take little, or are wide; none after that."""

    def __init__(self, p: int) -> None:
        # [X y weight], most of it not touched: the system gives memory only to what is.
        self.room = limits().kept_bytes // (8 * (p + 2))
        self.table = np.empty((self.room, p + 2))
        self.n_rows, self.is_weighted, self.is_released = 0, False, False

    def add(self, X, y, weight) -> bool:
        """Keep these rows, too; False where they are too many."""
        rows = slice(self.n_rows, self.n_rows + len(y))
        is_wide = matrices.is_wide(rows.stop, self.table.shape[1] - 2)
        if self.is_released or (rows.stop > self.room and not is_wide):
            return False
        if rows.stop > len(self.table):
            larger = np.empty((2 * rows.stop, self.table.shape[1]))
            larger[: self.n_rows] = self.table[: self.n_rows]
            self.table = larger
        self.table[rows, :-2], self.table[rows, -2] = X, y
        self.table[rows, -1] = 1.0 if weight is None else weight
        self.n_rows, self.is_weighted = rows.stop, self.is_weighted or weight is not None
        return True

    def release(self) -> tuple:
        """(X, y, weight); nothing is kept from now on."""
        table = self.table[: self.n_rows]
        self.table, self.n_rows = np.empty((0, table.shape[1])), 0
        self.is_released = True
        return table[:, :-2], table[:, -2], table[:, -1] if self.is_weighted else None


class _Stream:
    """Sums of rows that are seen once."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate, self.value = certificate, _Objective(certificate)
        self.sums: Sums | None = None

    def add(self, X, y, weight) -> None:
        if self.sums is None:
            centre, size = self.certificate.fit_intercept, X.shape[1] + 1
            origin = np.zeros(size)
            if centre:  # any origin will do, a typical row is close
                origin = np.append(X.mean(axis=0, dtype=np.float64), y.mean(dtype=np.float64))
            self.sums = Sums(origin=origin, exponent=np.zeros(size, np.int64), centre=centre)
        self.sums.add(X, y, weight)
        self.value.add(X, y, weight)

    def evidence(self) -> Evidence:
        if self.sums is None:
            raise Unfit("there are no rows")
        if self.sums.extreme.any():
            raise Unfit("some columns are too large or too small for sums; verify all rows at once")
        return _evidence(self.certificate, _products(self.sums, self.value, None))


def full_gram(G, c, yy: float) -> np.ndarray:
    """[[G, c], [c', yy]]"""
    return np.block([[0.5 * (G + G.T), c[:, None]], [c[None, :], np.array([[yy]])]])


def from_gram(certificate: Certificate, full: np.ndarray) -> Evidence:
    if not (np.isfinite(full).all() and (full.diagonal() >= 0.0).all()):
        raise Unfit("G, c or yy are not finite, or G or yy has negative squares")
    b = np.append(certificate.coef, -1.0).astype(LONG)
    value = b @ (full.astype(LONG) @ b) + LONG(certificate.alpha) * (b[:-1] @ b[:-1])
    # Exponents keep the squares of extreme columns in range.
    exponent = np.zeros(len(full), dtype=np.int64)
    diagonal = full.diagonal()
    extreme = (diagonal > 0.0) & ~((diagonal > 1e-200) & (diagonal < 1e200))
    exponent[extreme] = np.frexp(diagonal[extreme])[1] // 2
    full = np.ldexp(np.ldexp(full, -exponent[:, None]), -exponent)
    nothing = np.zeros(len(full))
    products = _Products(
        squares=full.diagonal(), moments=full[:-1, -1], matrix=_unit_gram(full),
        error=nothing + 2 * UNIT, tau=nothing, exponent=exponent, dead=diagonal == 0.0,
        doubtful=np.zeros(len(full), dtype=bool), objective=float(max(value, 0.0)),
        size=float(full[-1, -1]),
    )  # fmt: skip
    return _evidence(certificate, products)


class _Objective:
    """f at the certificate's model and its gradient, row by row in extended precision."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        self.support = np.flatnonzero(certificate.coef)
        self.b = certificate.coef[self.support].astype(LONG)
        k = len(self.support)
        self.squares = self.weight = self.residual = LONG(0)
        self.products, self.totals = np.zeros(k, dtype=LONG), np.zeros(k, dtype=LONG)
        self.largest = np.zeros(k + 1)  # of |x| and |y|
        self.n_blocks = 0

    def add(self, X, y, weight) -> None:
        for start in range(0, len(y), _ROWS):
            rows = slice(start, start + _ROWS)
            w = np.ones(len(y[rows])) if weight is None else weight[rows]
            self._add_block(X[rows][:, self.support].astype(np.float64), y[rows], w)

    def _add_block(self, X, y, w) -> None:
        y = y.astype(np.float64)
        residual = y.astype(LONG) - LONG(self.certificate.intercept) - X.astype(LONG) @ self.b
        weighted = w * residual
        self.squares += weighted @ residual
        self.residual += weighted.sum()
        self.weight += w.astype(LONG).sum()
        self.products += weighted @ X.astype(LONG)
        self.totals += w @ X.astype(LONG)
        top = np.append(np.abs(X).max(axis=0, initial=0.0), np.abs(y).max(initial=0.0))
        self.largest = np.maximum(self.largest, top)
        self.n_blocks += 1

    def total(self) -> float:
        return float(self.squares + LONG(self.certificate.alpha) * (self.b @ self.b))

    @property
    def sizes(self) -> np.ndarray:
        """Upper bounds on the lengths of the columns and of y, without squares."""
        return self.largest * float(np.sqrt(self.weight)) * (1.0 + 1e-12)

    def model(self) -> Model:
        """The same with rigorous errors, at the best intercept."""
        c, root = self.certificate, self.sizes
        value, gradient = self.squares, self.products.copy()
        if c.fit_intercept and self.weight > 0:
            value = value - self.residual**2 / self.weight
            gradient -= self.totals * (self.residual / self.weight)
        gradient -= LONG(c.alpha) * self.b
        # Each residual is off by a few roundings of its parts, each sum by those of a block.
        off = float(np.abs(self.b) @ root[:-1]) + root[-1]
        off += abs(c.intercept) * float(np.sqrt(self.weight))
        off *= gamma(len(self.b) + 6, LONG_UNIT)
        sums = gamma(_ROWS + self.n_blocks + 12, LONG_UNIT)
        norm = float(np.sqrt(np.maximum(value, 0)))
        penalty = c.alpha * float(self.b @ self.b)
        low = max(norm * (1.0 - 4 * sums) - off, 0.0) ** 2 - 4 * sums * float(self.squares)
        return Model(
            features=self.support, value=(max(low, 0.0) + penalty) * (1.0 - 16 * UNIT),
            gradient=gradient.astype(np.float64),
            error=4 * sums * root[:-1] * float(np.sqrt(self.squares)) + root[:-1] * off * 1.01
            + np.abs(c.alpha * c.coef[self.support]) * 16 * UNIT,
        )  # fmt: skip


def _products(known: Sums | WideColumns, objective: _Objective, data) -> _Products:
    if isinstance(known, Sums):
        G, error, tau = known.finished()
        squares, moments, matrix = G.diagonal().copy(), G[:-1, -1], _unit_gram(G)
    else:
        squares, moments, matrix = known.squares, known.moments, known.matrix
        error, tau = known.error, known.tau
    dead = known.is_constant
    return _Products(
        squares=squares, moments=moments, matrix=matrix, error=error, tau=tau,
        exponent=known.exponent, dead=dead, doubtful=_doubtful(known, squares) & ~dead,
        objective=objective.total(), size=objective.sizes[-1] ** 2,
        model=objective.model(), data=data, sums=known,
    )  # fmt: skip


def _doubtful(known: Sums | WideColumns, squares: np.ndarray) -> np.ndarray:
    """Columns that vary by no more than roundings of their mean."""
    if not known.centre:
        return np.zeros(len(squares), dtype=bool)
    noise = _CONSTANT * UNIT * np.abs(np.ldexp(known.origin, -known.exponent))
    return squares <= known.weight * noise**2


def _evidence(certificate: Certificate, given: _Products) -> Evidence:
    p = len(certificate.coef)
    yy = float(given.squares[p])
    assumptions: list[str] = []
    if given.dead[p] or given.doubtful[p] or yy <= 0.0:
        raise NoVariation(given.objective, given.size)
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = np.ldexp(certificate.alpha, -2 * given.exponent[:p])
        squares = given.squares[:p] + alpha
    useful = _useful(certificate, given, squares, assumptions)
    scale, y_scale = np.sqrt(np.where(useful, squares, 1.0)), float(np.sqrt(yy))
    # Unit, penalty and quotient: six roundings of numbers up to one.
    eps = float(given.error[:p][useful].max(initial=given.error[p])) + gamma(6)
    if not eps < 1e-3:
        raise Unfit("the products of the data have lost their digits: means beside the variation")
    features = np.flatnonzero(useful)
    A = given.matrix(features, scale, alpha)
    rows = None
    if given.data is not None and given.sums is not None:
        tau = float(given.tau[:p][useful].max(initial=given.tau[p]))
        X, y, weight = given.data
        rows = Rows(X, y, weight, given.sums, scale, alpha, y_scale, tau)
    kept = ~_copies(certificate, features, A, rows, eps, assumptions)[features]
    if not kept.all():
        features, A = features[kept], A.restricted(np.flatnonzero(kept))
    return _over(certificate, given, features, A, eps, scale, rows, assumptions)


def _useful(certificate, given: _Products, squares, assumptions) -> np.ndarray:
    """Not columns of zeros, coefficients bounded to zero, or penalties beyond all numbers."""
    p = len(certificate.coef)
    useful = ~given.dead[:p] & (certificate.lower < certificate.upper) & np.isfinite(squares)
    useful[certificate.exclude] = False
    useful &= ~_taken_for_constants(certificate, given.doubtful[:p], useful, assumptions)
    if (squares[useful] <= 0.0).any():
        raise Unfit("a feature varies too little beside its mean for its products to be known")
    return useful


def _over(certificate, given: _Products, features, A, eps, scale, rows, assumptions) -> Evidence:
    """The evidence over the features that are left."""
    p, y_scale = len(certificate.coef), float(np.sqrt(given.squares[-1]))
    position = np.full(p, -1)
    position[features] = np.arange(len(features))
    include, inside = position[certificate.include], position[certificate.given]
    n_free = int((position[certificate.free] >= 0).sum())
    to_form = np.ldexp(scale / y_scale, given.exponent[:p] - given.exponent[p])
    outward = 1.0 + 8 * UNIT
    with np.errstate(invalid="ignore", over="ignore"):
        lo = certificate.lower[features] * to_form[features] * outward
        hi = certificate.upper[features] * to_form[features] * outward
    return Evidence(
        A=A,
        c=given.moments[features] / scale[features] / y_scale,
        eps=eps, lo=lo, hi=hi, live=features, position=position,
        inside=inside[inside >= 0],
        k=min(certificate.k - int((include < 0).sum()) + n_free, len(features)),
        unit=float(np.ldexp(y_scale**2, 2 * given.exponent[p])),
        objective=given.objective,
        form_coef=certificate.coef[features] * to_form[features],
        rows=rows, model=given.model, to_form=to_form[features], assumptions=assumptions,
    )  # fmt: skip


def _unit_gram(G: np.ndarray) -> MakeMatrix:
    def matrix(features, scale, alpha) -> Matrix:
        inverse = 1.0 / scale[features]
        A = np.ascontiguousarray(G[np.ix_(features, features)])
        for start in range(0, len(A), 256):  # blocks: no second p x p matrix
            rows = slice(start, start + 256)
            A[rows] *= inverse[rows, None] * inverse
        A[np.diag_indices(len(A))] = 1.0
        return Stored(A)

    return matrix


def _taken_for_constants(certificate, doubtful, useful, assumptions) -> np.ndarray:
    """Columns that may be constants up to rounding and that the certificate leaves out."""
    used = certificate.coef != 0.0
    for split in certificate.splits:
        used[split.features] = True
    taken = doubtful & useful & ~used
    for j in np.flatnonzero(taken):
        assumptions.append(f"feature {j} is a constant up to roundings of its mean")
    return taken


def _copies(certificate, features, A, rows, eps, assumptions) -> np.ndarray:
    """Mask over the problem's features that repeat another one; Unfit where one does not."""
    dropped = np.zeros(len(certificate.coef), dtype=bool)
    if len(certificate.copies) == 0:
        return dropped
    if certificate.alpha > 0.0:
        raise Unfit("copies of features may not be left out where there is a penalty")
    position = {int(j): i for i, j in enumerate(features)}
    original = {int(j): int(other) for j, other in certificate.copies}
    unbounded = np.isinf(certificate.lower) & np.isinf(certificate.upper)
    for j, other in original.items():
        where = f"feature {j} as a copy of {other}"
        if j in certificate.given or not (unbounded[j] and unbounded[other]):
            raise Unfit(f"{where}: it is included, or one of them has bounds")
        if j not in position:
            continue  # useless anyway
        if other not in position:
            raise Unfit(f"{where}: the other one may not be used")
        _require_kept(original, j)
        if rows is None:
            both = np.array([position[j], position[other]])
            if 1.0 - abs(A.block(both)[0, 1]) > 8.0 * (eps + UNIT):
                raise Unfit(f"{where}: their products say otherwise")
            assumptions.append(f"{where}: as far as products can tell")
        elif not _is_exact_copy(rows, j, other):
            if _distance(rows, j, other) > _COPY:
                raise Unfit(f"{where}: their columns say otherwise")
            assumptions.append(f"{where}: they agree to {_COPY:g}, not exactly")
        dropped[j] = True
    return dropped


def _require_kept(original: dict[int, int], feature: int) -> None:
    """Each chain of copies must end at a feature that stays."""
    seen = {feature}
    while feature in original:
        feature = original[feature]
        if feature in seen:
            raise Unfit(f"feature {feature} is a copy of itself in the end: none of them stays")
        seen.add(feature)


def _is_exact_copy(rows: Rows, j: int, other: int) -> bool:
    """Is x_i o_m = x_m o_i for all rows i, exactly? m is the row with the largest o."""
    used = slice(None) if rows.weight is None else rows.weight > 0.0
    x, o = (
        np.ldexp(rows.X[used, feature].astype(np.float64), -int(rows.exponent[feature]))
        for feature in (j, other)
    )
    m = int(np.argmax(np.abs(o)))
    left, right = _exact_product(x, o[m]), _exact_product(o, x[m])
    return bool((left[0] == right[0]).all() and (left[1] == right[1]).all())


def _exact_product(a, b) -> tuple[np.ndarray, np.ndarray]:
    """(product, its rounding error), Veltkamp and Dekker: their sum is exact."""
    splitter = 2.0**27 + 1.0
    a1 = splitter * a - (splitter * a - a)
    b1 = splitter * b - (splitter * b - b)
    a2, b2, product = a - a1, b - b1, a * b
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def _distance(rows: Rows, j: int, other: int) -> float:
    a, b = rows.columns(np.array([j, other])).M.T
    a, b = a / np.sqrt(a @ a), b / np.sqrt(b @ b)
    difference = a - np.sign(a @ b) * b
    return float(np.sqrt(difference @ difference))
