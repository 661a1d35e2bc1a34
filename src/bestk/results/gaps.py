"""Gaps: how far a bound may be from the objective, as a number and as a text."""

import math
from decimal import ROUND_CEILING, Context, Decimal

# Below this share of y'y an objective is a perfect fit up to rounding, and gaps are measured
# against the share instead of against the objective.
PERFECT_FIT = 1e-12


def relative_gap(objective: float, lower_bound: float, yy: float) -> float:
    """(objective - lower_bound) / objective, the honest gap; a perfect fit is judged by y'y."""
    difference = max(objective - lower_bound, 0.0)
    if difference == 0.0:
        return 0.0
    return difference / max(objective, PERFECT_FIT * yy)


def percent(gap: float) -> str:
    """A gap for people, such as 4.21% or 3.1e-06; rounded up, as less would not be proven."""
    if gap == 0 or not math.isfinite(gap):
        return f"{gap:.0%}"
    exact = Decimal(repr(float(gap)))
    if gap < 5e-5:
        return f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal(exact):.1e}"
    return f"{exact.quantize(Decimal('0.0001'), ROUND_CEILING):.2%}"
