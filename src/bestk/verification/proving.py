"""How what a tree leaves open is tried support by support, and what bounds single supports."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.choices.constrained import Exactly
from bestk.verification.choices.cover import cover_choices
from bestk.verification.choices.exact import constrained_value
from bestk.verification.cover import Cover
from bestk.verification.evidence import Evidence
from bestk.verification.exact.elimination import whole
from bestk.verification.exact.form import exact_fit, exact_products, floor_float
from bestk.verification.limits import limits
from bestk.verification.nodes import FloatNodes, Lined, Proven
from bestk.verification.numerics.rounding import UNIT
from bestk.verification.supports.enumeration import Enumeration, Unjudged
from bestk.verification.supports.single import Judge

# How far a claim may exceed what is verified: both were rounded.
TOLERANCE = 1e-9
# Objectives below this share of y'y are perfect fits.
PERFECT = 1e-12


class FloatBackEnd:
    """Floating point with rigorous error bounds; see cover.BackEnd."""

    number: Any = float

    def __init__(self, evidence: Evidence, nodes: FloatNodes, enumeration: Enumeration) -> None:
        self.k, self.inside = evidence.k, evidence.inside
        self.position, self.live = evidence.position, evidence.live
        self.nodes, self.enumeration, self.allowance = nodes, enumeration, evidence.allowance

    def fill(self, lined: Lined, proven: Proven) -> None:
        self.allowance.check()
        self.nodes.fill(lined, proven)

    def enumerate(self, cells: np.ndarray) -> list[Any]:
        self.allowance.check()
        return self.enumeration.values(cells)


def enumeration_for(
    certificate: Certificate, evidence: Evidence, pool, device=None, products=None, known=None
) -> Enumeration:
    """What tries the supports of cells, against the bound that the certificate claims."""
    judge = judge_for(certificate, evidence, products)
    target = target_of(certificate, evidence.unit)
    return Enumeration(evidence, target, judge, pool, device, known)


def proven_of_choices(
    certificate: Certificate, evidence: Evidence, pool, products=None
) -> tuple[Cover, int]:
    """What a tree over choices proves, and the number of supports tried; Unfit for other data."""
    judge = judge_for(certificate, evidence, products)
    exactly = _constrained_exactly(certificate, evidence, judge.enough)
    target = target_of(certificate, evidence.unit)
    return cover_choices(certificate, evidence, judge, exactly, target, pool)


def target_of(certificate: Certificate, unit: float) -> float:
    """What enumerated supports must reach, a share of y'y: the claim, less a little."""
    claim = certificate.lower_bound / unit
    return claim - 1e-11 * max(claim, PERFECT)


def judge_for(certificate: Certificate, evidence: Evidence, products=None) -> Judge:
    """What bounds single supports, as far as the claim asks for it."""
    claim = certificate.lower_bound / evidence.unit
    enough = claim - 0.5 * TOLERANCE * max(claim, PERFECT)
    can_afford = _budget(evidence)

    def exactly(support: np.ndarray) -> float | None:
        if not can_afford(len(support)):
            return None
        return _exact_value(certificate, evidence, support, products)

    return Judge(evidence, enough, exactly)


def _budget(evidence: Evidence) -> Callable[[int], bool]:
    """Whether one more fit of so many features in rational numbers is within limits."""
    left = [limits().exact_fits]

    def can_afford(size: int) -> bool:
        rows = evidence.rows
        cost = ((0 if rows is None else rows.n_rows) + 1000) * (size + 1) ** 2
        if cost > min(limits().exact_fit, left[0]):
            return False
        left[0] -= cost
        return True

    return can_afford


def _constrained_exactly(certificate: Certificate, evidence: Evidence, enough: float) -> Exactly:
    """Fits within constraints in rational numbers, over y'y and rounded down; from rows alone."""
    can_afford, unit = _budget(evidence), Fraction(evidence.unit)

    def exactly(features: np.ndarray, guess: np.ndarray) -> float | None:
        rows = evidence.rows
        if rows is None or not can_afford(len(features)):
            return None
        centre = certificate.fit_intercept
        G, denominator = exact_products(rows.X, rows.y, rows.weight, centre, features)
        wanted = Fraction(enough) * unit * Fraction(1.0 + 8 * UNIT)
        value = constrained_value(certificate, G, denominator, features, guess, wanted)
        return None if value is None else floor_float(value / unit) * (1.0 - 4 * UNIT)

    return exactly


def _exact_value(certificate: Certificate, evidence: Evidence, support, full) -> float | None:
    """f of one support over y'y in rational numbers, rounded down; None where that is impossible.

    From rows, or from `full`, the given products of all features and y.
    """
    rows, features = evidence.rows, evidence.live[support]
    if rows is not None:
        centre = certificate.fit_intercept
        G, denominator = exact_products(rows.X, rows.y, rows.weight, centre, features)
    elif full is not None:
        order = [*features.tolist(), len(full) - 1]
        G, shift = whole(full[np.ix_(order, order)])
        denominator = 1 << shift
    else:
        return None
    try:
        fit = exact_fit(certificate, G, denominator, features)
    except Unjudged:
        return None
    return floor_float(fit / Fraction(evidence.unit)) * (1.0 - 4 * UNIT)  # the unit is rounded
