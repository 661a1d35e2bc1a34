"""Linear constraints lower <= C b <= upper, priced by multipliers of any sign.

    f(b) >= f(b) + lam'C b - sigma(lam),   sigma(lam) = sum of max(lam_i lower_i, lam_i upper_i),

for every b that satisfies them, whatever lam is. Features without an effect on the data (columns of
zeros) are not part of the form, but they help to satisfy constraints: they are ``idle``. With a
penalty each costs its own square; without one it costs nothing, within its bounds.
"""

from typing import NamedTuple

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.choices.coordinates import Coordinates
from bestk.verification.evidence import Unfit
from bestk.verification.numerics.rounding import UNIT, gamma, largest_gain

# Entries of C beyond these might be lost to underflow or overflow.
_SAFE = (1e-200, 1e200)
# What products of tiny numbers may lose beside their roundings.
_UNDERFLOW = 1e-290


class Priced(NamedTuple):
    """Multipliers of several nodes (rows): sigma, C'lam in coordinates with its error, idle gains.

    ``idle`` has what idle features of each group may gain. All is rounded to the safe side.
    """

    sigma: np.ndarray
    slopes: np.ndarray
    error: np.ndarray
    idle: np.ndarray


class Ranges(NamedTuple):
    """Sides of the constraints for some choices (rows) when ``loose`` features take what they can.

    A choice that is not ``feasible`` cannot satisfy one of them within the bounds of its features.
    """

    lower: np.ndarray
    upper: np.ndarray
    feasible: np.ndarray


class Constraints:
    """The constraints of a certificate in units of the form: C = matrix / to_form.

    Columns of C, ``lo`` and ``hi`` are for live features and, after them, for idle ones. Where
    these ``are_charged`` the form with them has ones on the diagonal there and nothing beside it.
    Where they cost nothing they are ``loose``. ``owner`` is the group of each column.
    """

    def __init__(self, certificate: Certificate, coordinates: Coordinates) -> None:
        structure, e = certificate.structure, coordinates.evidence
        assert structure is not None
        self.coordinates = coordinates
        self.matrix, self.groups = structure.matrix, structure.groups
        self.lower, self.upper = structure.lower, structure.upper
        self.box = (certificate.lower, certificate.upper)
        may = certificate.lower < certificate.upper
        may[certificate.exclude] = False
        self.idle = np.flatnonzero(may & (e.position < 0) & (self.matrix != 0.0).any(axis=0))
        self.alpha = certificate.alpha
        charge = self.alpha / e.unit
        self.are_charged = _SAFE[0] < charge < _SAFE[1]  # else as if they cost nothing
        self.charge = charge * (1.0 - 8 * UNIT) if self.are_charged else 0.0
        self.loose = self.idle[:0] if self.are_charged else self.idle
        scale = np.sqrt(charge) if self.are_charged else 1.0
        unit = np.append(e.to_form, np.full(len(self.idle), scale))
        entries = self.matrix[:, np.append(e.live, self.idle)]
        # A few roundings: the quotient, and those of the unit itself.
        with np.errstate(all="ignore"):
            self.C = entries / unit
        size = np.abs(self.C[entries != 0.0])
        if not ((size > _SAFE[0]) & (size < _SAFE[1])).all():
            raise Unfit(
                "the constraints and the data differ too much in scale to be compared; rescale the "
                "columns of X and solve again"
            )
        outwards = scale * (1.0 + 8 * UNIT)
        self.lo = np.append(e.lo, certificate.lower[self.idle] * outwards)
        self.hi = np.append(e.hi, certificate.upper[self.idle] * outwards)
        self.owner = np.append(coordinates.owner, structure.groups[self.idle]).astype(np.int64)
        shape = (structure.n_groups + 1, len(self.matrix))  # the last group is none
        self.least, self.largest = self._reach(np.flatnonzero(may), shape)
        self.loose_least, self.loose_largest = self._reach(self.loose, shape)

    def __len__(self) -> int:
        return len(self.matrix)

    def _reach(self, features: np.ndarray, shape) -> tuple[np.ndarray, np.ndarray]:
        """(least, largest) that some features of each group add to each row, moved outwards."""
        entries = self.matrix[:, features]
        with np.errstate(invalid="ignore"):
            ends = [np.where(entries == 0.0, 0.0, entries * side[features]) for side in self.box]
        low, high = np.zeros(shape), np.zeros(shape)
        np.add.at(low, self.groups[features], np.minimum(*ends).T)
        np.add.at(high, self.groups[features], np.maximum(*ends).T)
        # All of low is <= 0 <= high: a relative margin is an outward one.
        margin = 1.0 + gamma(len(features) + 4)
        return low * margin, high * margin

    def ranges(self, inside: np.ndarray, chosen: np.ndarray) -> Ranges:
        """For choices of the groups `inside` and a row of `chosen` (-1: none) each."""
        loose_low, loose_high = self._totals(self.loose_least, self.loose_largest, inside, chosen)
        low, high = self._totals(self.least, self.largest, inside, chosen)
        feasible = np.all((low <= self.upper) & (high >= self.lower), axis=1)
        lower, upper = self.lower - loose_high, self.upper - loose_low
        if len(self.loose):  # two roundings, outwards
            lower = lower - gamma(2) * np.abs(np.where(np.isfinite(lower), lower, 0.0))
            upper = upper + gamma(2) * np.abs(np.where(np.isfinite(upper), upper, 0.0))
        return Ranges(lower, upper, feasible)

    @staticmethod
    def _totals(low, high, inside, chosen) -> tuple[np.ndarray, np.ndarray]:
        margin = 1.0 + gamma(len(inside) + chosen.shape[1] + 4)
        return (
            (low[inside].sum(axis=0) + low[chosen].sum(axis=1)) * margin,
            (high[inside].sum(axis=0) + high[chosen].sum(axis=1)) * margin,
        )

    def priced(self, lam: np.ndarray, n_groups: int) -> Priced:
        """What multipliers (rows) of several nodes cost and change."""
        q, e = len(self), self.coordinates.evidence
        with np.errstate(all="ignore"):  # what is not finite proves nothing
            total, size = lam @ self.matrix, np.abs(lam) @ np.abs(self.matrix)
            slopes = self.coordinates.turned(total[:, e.live] / e.to_form)
            error = self.coordinates.spread(size[:, e.live] / e.to_form)
        error = error * gamma(q + self.coordinates.roundings + 12) + _UNDERFLOW * (error > 0.0)
        idle = np.zeros((len(lam), n_groups))
        for j in self.idle:
            wrong = 0.5 * gamma(q + 2) * size[:, j]
            box = (side[j] for side in self.box)
            gain = largest_gain(-0.5 * total[:, j], wrong, self.charge, *box)
            idle[:, self.groups[j]] += np.where(size[:, j] > 0.0, gain, 0.0)
        return Priced(self.sigma(lam), slopes, error, idle * (1.0 + gamma(len(self.idle) + 2)))

    def sigma(self, lam: np.ndarray) -> np.ndarray:
        return support_function(lam, self.lower, self.upper)


def support_function(
    lam: np.ndarray, lower: np.ndarray, upper: np.ndarray, unit: float = UNIT
) -> np.ndarray:
    """sigma(lam) of each row, rounded up; infinite where a multiplier asks for a side that is not.

    Multipliers of zero add nothing, whatever the sides are. `unit`: the roundoff of lam's type.
    """
    with np.errstate(invalid="ignore"):
        parts = np.where(lam == 0.0, 0.0, np.where(lam > 0.0, lam * upper, lam * lower))
        size = np.abs(parts).sum(axis=-1)
        total = parts.sum(axis=-1) + size * gamma(lam.shape[-1] + 4, unit)
    return np.where(np.isfinite(size), total, np.inf)
