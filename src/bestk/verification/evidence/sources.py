"""Evidence from rows in memory, from batches of rows, or from a Gram matrix."""

from collections.abc import Iterable

import numpy as np

from bestk.base.validation import few
from bestk.results.certificate import Certificate
from bestk.verification.evidence.objective import EmptyModel, Objective, finite
from bestk.verification.evidence.problem import Evidence, Unfit
from bestk.verification.evidence.products import Products, evidence_of, products_of, unit_gram
from bestk.verification.limits import limits
from bestk.verification.numerics import matrices
from bestk.verification.numerics.rounding import LONG, UNIT
from bestk.verification.numerics.sums import Sums, scaled_sums
from bestk.verification.numerics.wide import WideColumns, wide_columns
from bestk.verification.threads import summing


def from_rows(certificate: Certificate, X, y, weight) -> Evidence:
    """Of rows in memory: by products of all features, or by columns where there are too many."""
    rows = (X, y, weight)
    known: Sums | WideColumns
    if matrices.is_wide(*X.shape):
        known = wide_columns(*rows, certificate.fit_intercept)
    else:
        known = scaled_sums(*rows, certificate.fit_intercept)
    if known.extreme.any():
        raise Unfit(
            f"{_extreme_columns(known)} too large or too small to be squared; rescale X or y and "
            "solve again"
        )
    value = Objective(certificate)
    value.add(*rows)
    return evidence_of(certificate, products_of(known, value, rows))


def from_batches(certificate: Certificate, batches: Iterable[tuple], digest) -> Evidence:
    """One pass, with the digest of the rows."""
    collected = Collected(certificate)
    with summing(collected.p):
        for X, y, weight in batches:
            digest.add(X, y, weight)
            collected.add(X, y, weight)
    return collected.evidence(certificate)


class Collected:
    """Rows of batches: kept while they are few, and summed up once there are too many to keep."""

    def __init__(self, certificate: Certificate | EmptyModel) -> None:
        self.p = len(certificate.coef)
        self.kept, self.stream = _Kept(self.p), _Stream(certificate)

    def add(self, X, y, weight) -> None:
        """Rows with another number of features are passed over: the digest tells of them."""
        if X.shape[1] != self.p or len(y) == 0:
            return
        if not self.kept.add(X, y, weight):
            if self.kept.n_rows > 0:
                self.stream.add(*self.kept.release())
            self.stream.add(X, y, weight)

    @property
    def n_wide(self) -> int | None:
        """Rows of wide data, whose products are not formed."""
        n = self.kept.n_rows
        return n if n > 0 and matrices.is_wide(n, self.p) else None

    def evidence(self, certificate: Certificate) -> Evidence:
        """Of the certificate at the beginning, or of another one with the same model."""
        if self.kept.n_rows > 0:
            return from_rows(certificate, *self.kept.rows)
        return self.stream.evidence(certificate)


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
        """The rows; nothing is kept from now on."""
        rows = self.rows
        self.table, self.n_rows = np.empty((0, self.table.shape[1])), 0
        self.is_released = True
        return rows

    @property
    def rows(self) -> tuple:
        """(X, y, weight)"""
        table = self.table[: self.n_rows]
        return table[:, :-2], table[:, -2], table[:, -1] if self.is_weighted else None


class _Stream:
    """Sums of rows that are seen once."""

    def __init__(self, certificate: Certificate | EmptyModel) -> None:
        self.certificate, self.value = certificate, Objective(certificate)
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

    def evidence(self, certificate: Certificate) -> Evidence:
        if self.sums is None:
            raise Unfit("there are no rows; pass those of the run")
        if self.sums.extreme.any():
            raise Unfit(
                f"{_extreme_columns(self.sums)} too large or too small for sums over batches; "
                "verify all rows at once"
            )
        return evidence_of(certificate, products_of(self.sums, self.value, None))


def _extreme_columns(known: "Sums | WideColumns") -> str:
    """Which columns cannot be squared, in words; the last one is y."""
    wrong = np.flatnonzero(known.extreme)
    names = (f"column {j}" if j < len(known.extreme) - 1 else "y" for j in wrong.tolist())
    return f"{few(names)} {'is' if len(wrong) == 1 else 'are'}"


def full_gram(G, c, yy: float) -> np.ndarray:
    """[[G, c], [c', yy]]"""
    return np.block([[0.5 * (G + G.T), c[:, None]], [c[None, :], np.array([[yy]])]])


def from_gram(certificate: Certificate, full: np.ndarray) -> Evidence:
    if not (np.isfinite(full).all() and (full.diagonal() >= 0.0).all()):
        raise Unfit(
            "G, c or yy is not finite, or yy or the diagonal of G is negative; pass G = X.T @ X, c "
            "= X.T @ y and yy = y @ y"
        )
    b = np.append(certificate.coef, -1.0).astype(LONG)
    value = b @ (full.astype(LONG) @ b) + LONG(certificate.alpha) * (b[:-1] @ b[:-1])
    # Exponents keep the squares of extreme columns in range.
    exponent = np.zeros(len(full), dtype=np.int64)
    diagonal = full.diagonal()
    extreme = (diagonal > 0.0) & ~((diagonal > 1e-200) & (diagonal < 1e200))
    exponent[extreme] = np.frexp(diagonal[extreme])[1] // 2
    full = np.ldexp(np.ldexp(full, -exponent[:, None]), -exponent)
    nothing = np.zeros(len(full))
    products = Products(
        squares=full.diagonal(), moments=full[:-1, -1], matrix=unit_gram(full),
        error=nothing + 2 * UNIT, tau=nothing, exponent=exponent, dead=diagonal == 0.0,
        doubtful=np.zeros(len(full), dtype=bool), objective=finite(max(value, 0.0)),
        size=float(full[-1, -1]),
    )  # fmt: skip
    return evidence_of(certificate, products)
