"""The objective of a certificate's model, with its gradient and their errors."""

from typing import Any, NamedTuple

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.evidence.problem import Model, Unfit
from bestk.verification.numerics.rounding import LONG, LONG_UNIT, UNIT, gamma

_ROWS = 512


def finite(objective: Any) -> float:
    """An objective in double precision; Unfit where it is beyond all numbers.

    Nothing could be compared with it: any difference is within a share of infinity.
    """
    try:
        value = float(objective)
    except OverflowError:  # of a fraction
        value = np.inf
    if not np.isfinite(value):
        raise Unfit("the coefficients of the model are so large that its objective is not finite")
    return value


class EmptyModel(NamedTuple):
    """What is evaluated where the claim is about a list of models, not about one."""

    coef: np.ndarray
    alpha: float
    fit_intercept: bool
    intercept: float = 0.0


class Objective:
    """f at the certificate's model and its gradient, row by row in extended precision."""

    def __init__(self, certificate: Certificate | EmptyModel) -> None:
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
        return finite(self.squares + LONG(self.certificate.alpha) * (self.b @ self.b))

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
