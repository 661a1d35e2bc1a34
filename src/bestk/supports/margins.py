"""What rounding and the error of the data may do to gains that are computed from products."""

from bestk.base.constants import UNIT_ROUNDOFF


def margins(eps: float, k: int) -> tuple[float, float]:
    """What to take off the diagonal, and off the value, for products of k features known to eps."""
    shift = 2.0 * k * (eps + 4 * (k + 4) * UNIT_ROUNDOFF)
    return shift, 2.0 * eps + rounding_of_gains(k)


def rounding_of_gains(k: int) -> float:
    """Of k features, in units of y'y; the square is that of a bordered matrix (theory: minor)."""
    return (16 * (k + 4) + 2 * (k + 4) ** 2) * UNIT_ROUNDOFF
