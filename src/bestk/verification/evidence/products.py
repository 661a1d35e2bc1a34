"""What is known of the products of [X y], and the standard form over features that count."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.evidence.copies import copies
from bestk.verification.evidence.objective import Objective
from bestk.verification.evidence.problem import Evidence, Model, NoVariation, Unfit
from bestk.verification.numerics.matrices import Matrix, Stored
from bestk.verification.numerics.rounding import UNIT, gamma
from bestk.verification.numerics.rows import Rows
from bestk.verification.numerics.sums import Sums
from bestk.verification.numerics.wide import WideColumns

# A column that varies by less than so many roundings of its mean may be taken for a constant.
_CONSTANT = 128


# A of some features (ascending), given units and penalties of all.
MakeMatrix = Callable[[np.ndarray, np.ndarray, np.ndarray], Matrix]


@dataclass(frozen=True, kw_only=True, eq=False)
class Products:
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


def products_of(known: Sums | WideColumns, objective: Objective, data) -> Products:
    if isinstance(known, Sums):
        G, error, tau = known.finished()
        squares, moments, matrix = G.diagonal().copy(), G[:-1, -1], unit_gram(G)
    else:
        squares, moments, matrix = known.squares, known.moments, known.matrix
        error, tau = known.error, known.tau
    dead = known.is_constant
    return Products(
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


def unit_gram(G: np.ndarray) -> MakeMatrix:
    def matrix(features, scale, alpha) -> Matrix:
        inverse = 1.0 / scale[features]
        A = np.ascontiguousarray(G[np.ix_(features, features)])
        for start in range(0, len(A), 256):  # blocks: no second p x p matrix
            rows = slice(start, start + 256)
            A[rows] *= inverse[rows, None] * inverse
        A[np.diag_indices(len(A))] = 1.0
        return Stored(A)

    return matrix


def evidence_of(certificate: Certificate, given: Products) -> Evidence:
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
        raise Unfit(
            "the columns vary too little beside their means, so that their products have too few "
            "digits; subtract a typical row from all rows and solve again"
        )
    features = np.flatnonzero(useful)
    A = given.matrix(features, scale, alpha)
    rows = None
    if given.data is not None and given.sums is not None:
        tau = float(given.tau[:p][useful].max(initial=given.tau[p]))
        X, y, weight = given.data
        rows = Rows(X, y, weight, given.sums, scale, alpha, y_scale, tau)
    kept = ~copies(certificate, features, A, rows, eps, assumptions)[features]
    if not kept.all():
        features, A = features[kept], A.restricted(np.flatnonzero(kept))
    return _over(certificate, given, features, A, eps, scale, rows, assumptions)


def _useful(certificate, given: Products, squares, assumptions) -> np.ndarray:
    """Not columns of zeros, coefficients bounded to zero, or penalties beyond all numbers."""
    p = len(certificate.coef)
    useful = ~given.dead[:p] & (certificate.lower < certificate.upper) & np.isfinite(squares)
    useful[certificate.exclude] = False
    useful &= ~taken_for_constants(certificate, given.doubtful[:p], useful, assumptions)
    if (squares[useful] <= 0.0).any():
        raise Unfit(
            f"feature {np.flatnonzero(useful & (squares <= 0.0))[0]} varies too little beside its "
            "mean to be told from a constant; subtract its mean and solve again"
        )
    return useful


def taken_for_constants(certificate, doubtful, useful, assumptions) -> np.ndarray:
    """Columns that may be constants up to rounding and that the certificate leaves out."""
    used = certificate.coef != 0.0
    for split in certificate.splits:
        used[split.features] = True
    taken = doubtful & useful & ~used
    for j in np.flatnonzero(taken):
        assumptions.append(f"feature {j} is a constant up to roundings of its mean")
    return taken


def _over(certificate, given: Products, features, A, eps, scale, rows, assumptions) -> Evidence:
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
