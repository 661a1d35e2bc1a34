"""How far coefficients and predictions may go without making a model worse than a threshold.

On a support the coefficients with f(b) <= threshold form an ellipsoid about the best ones,

    (b - b*)' A (b - b*) <= threshold - f*,     A = X'X + alpha I on the support,

so v'b ranges over v'b* +- sqrt((threshold - f*) v'A^-1 v), exactly. Bounds cut the ellipsoid off:
there the extreme point is sought along the multiplier of the threshold. Dependent columns have
directions that cost nothing: the range is infinite there, or ends at the bounds.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import lsq_linear

from bestk.problem.regression import Regression

# Steps of a bisection on a logarithmic scale: all digits that matter.
_STEPS = 80
# Eigenvalues of A below which columns count as dependent, and shares of a direction that matter.
_SINGULAR, _MATTERS = 1e-12, 1e-7


class Ellipsoid(NamedTuple):
    """All coefficients on a support with an objective of at most a threshold.

    ``A`` and ``centre`` are in units in which columns have length one, ``scale`` leads back to the
    coefficients of the problem. ``slack`` is the threshold less the value at the centre. ``used``
    are the places of columns that may have a coefficient, all other arrays are about these; the
    columns of ``null`` span the directions that cost nothing.
    """

    support: np.ndarray
    used: np.ndarray
    A: np.ndarray
    null: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    slack: float
    lo: np.ndarray
    hi: np.ndarray
    x_mean: np.ndarray
    y_mean: float
    of_intercept: float
    """What one unit of the intercept adds to the squared length of a direction: 1 / weight, or 0
    without an intercept."""

    def coordinate_ranges(self) -> np.ndarray:
        ranges = np.zeros((len(self.support), 2))
        for j, scale, unit in zip(self.used, self.scale, np.eye(len(self.used)), strict=True):
            ranges[j] = np.sort(self._range(unit, 0.0) * scale)
        return ranges

    def prediction_ranges(self, X: np.ndarray) -> np.ndarray:
        """(n, 2) for rows of X."""
        ranges = np.empty((len(X), 2))
        for row, x in zip(ranges, X[:, self.support[self.used]] - self.x_mean, strict=True):
            row[:] = self._range(x * self.scale, self.of_intercept) + self.y_mean
        return ranges

    def _range(self, v: np.ndarray, extra: float) -> np.ndarray:
        """Of v'b plus, with `extra`, a free constant whose square costs 1 / extra."""
        return np.array([-self._highest(-v, extra), self._highest(v, extra)])

    def _highest(self, v: np.ndarray, extra: float) -> float:
        slack = max(self.slack, 0.0)
        if len(v) == 0:
            return float(np.sqrt(slack * extra))
        costless = self.null @ (self.null.T @ v)
        moves = np.abs(costless) > _MATTERS * np.abs(v).max(initial=0.0)
        if moves.any():
            ends = np.where(costless > 0.0, self.hi, -self.lo)[moves]
            return self._highest_in_box(v, extra) if np.isfinite(ends).any() else np.inf
        direction = cho_solve(cho_factor(self.A), v)
        length = float(v @ direction) + extra
        step = np.sqrt(slack / length) if length > 0.0 else 0.0
        farthest = self.centre + step * direction
        if (farthest >= self.lo).all() and (farthest <= self.hi).all():
            return float(v @ self.centre + step * length)
        return self._highest_in_box(v, extra)

    def _highest_in_box(self, v: np.ndarray, extra: float) -> float:
        """max v'b + t s.t. (b - centre)'A(b - centre) + t^2 / extra <= slack, lo <= b <= hi.

        For a multiplier mu the best b minimises (b - centre)'A(b - centre) - v'b / mu in the box:
        a bounded least-squares problem. The larger mu, the smaller its value.
        """
        L = cholesky(self.A, lower=True)

        def at(mu: float) -> tuple[float, float]:
            target = L.T @ self.centre + solve_triangular(L, v, lower=True) / (2.0 * mu)
            b = lsq_linear(L.T, target, bounds=(self.lo, self.hi), method="bvls", tol=1e-13).x
            b = np.clip(b, self.lo, self.hi)
            off, t = L.T @ (b - self.centre), extra / (2.0 * mu)
            used = float(off @ off) + (t * t / extra if extra else 0.0)
            return used, float(v @ b) + t

        size = float(np.sqrt(v @ v + extra)) or 1.0
        low, high = size * 1e-12, size * 1e12 / max(np.sqrt(max(self.slack, 0.0)), 1e-300)
        used, most = at(low)
        if used <= self.slack:
            return most  # the box ends before the ellipsoid does
        best = at(high)[1]
        for _ in range(_STEPS):
            mu = np.sqrt(low * high)
            used, value = at(mu)
            if used <= self.slack:
                high, best = mu, max(best, value)
            else:
                low = mu
        return best


def ellipsoids(
    problem: Regression,
    supports: list[np.ndarray],
    coefs: list[np.ndarray],
    objectives: list[float],
    threshold: float,
) -> list[Ellipsoid]:
    """One for each support with its best coefficients and objective."""
    return [
        _ellipsoid(problem, support, coef, threshold - objective)
        for support, coef, objective in zip(supports, coefs, objectives, strict=True)
    ]


def _ellipsoid(
    problem: Regression, support: np.ndarray, coef: np.ndarray, slack: float
) -> Ellipsoid:
    moments = problem.moments
    # Columns of zeros, and those that are bounded to zero, have a coefficient of zero.
    useful = (moments.squares[support] > 0.0) & (problem.lower < problem.upper)[support]
    whole, used = support, np.flatnonzero(useful)
    support, coef = support[used], coef[used]
    units = moments.units[support]
    if moments.is_partial:
        M, _ = problem.columns(support)
        G = M.T @ M
    else:
        G = moments.gram[np.ix_(support, support)] + np.diag(problem.ridge[support])
    length = np.sqrt(np.diag(G))
    A = G / np.outer(length, length)
    eigenvalues, vectors = np.linalg.eigh(A)
    null = vectors[:, eigenvalues <= _SINGULAR]
    if null.shape[1]:
        A = A + 2.0 * _SINGULAR * np.eye(len(A))
    scale = units / length
    best = coef / scale
    lo, hi = problem.lower[support] / scale, problem.upper[support] / scale
    centre = best
    if np.isfinite(lo).any() or np.isfinite(hi).any():
        c = moments.moment[support] / length
        centre = np.linalg.solve(A, c)
        off = best - centre
        slack = slack + float(off @ A @ off)
    fit_intercept = problem.fit_intercept
    return Ellipsoid(
        whole, used, A, null, centre, scale, slack, lo, hi,
        moments.shift[support] if fit_intercept else np.zeros(len(support)),
        moments.y_shift if fit_intercept else 0.0,
        1.0 / moments.weight if fit_intercept else 0.0,
    )  # fmt: skip
