"""The best model so far among choices that the structure allows, judged on the data themselves."""

from typing import NamedTuple

import numpy as np

from bestk.base.structure import Structure
from bestk.choices.fits import Unsolved, constrained_least_squares
from bestk.problem.regression import Regression


class Fitted(NamedTuple):
    """The best coefficients on some features, infinite where none satisfy the constraints."""

    coef: np.ndarray
    objective: float
    multipliers: np.ndarray
    kkt: float


class Fits:
    """Exact fits on the features of a choice, each made once."""

    def __init__(self, problem: Regression, structure: Structure) -> None:
        self.problem, self.structure = problem, structure
        self._known: dict[bytes, Fitted] = {}

    def on(self, support: np.ndarray) -> Fitted:
        """On some features, in ascending order."""
        key = np.asarray(support, dtype=np.int64).tobytes()
        if key not in self._known:
            self._known[key] = self._fit(support)
        return self._known[key]

    def _fit(self, support: np.ndarray) -> Fitted:
        problem, q = self.problem, len(self.structure.matrix)
        if q == 0:
            coef, objective = problem.fit(support)
            return Fitted(coef, objective, np.zeros(0), 0.0)
        C = self.structure.matrix[:, support]
        M, z = problem.columns(support)
        norms = np.sqrt((M * M).sum(axis=0))
        norms[norms == 0.0] = 1.0
        scale = norms / problem.moments.units[support]
        lo, hi = problem.lower[support] * scale, problem.upper[support] * scale
        bounded = np.isfinite(lo) | np.isfinite(hi)
        rows = np.vstack([C / scale, np.eye(len(support))[bounded]])
        lower = np.append(self.structure.lower, lo[bounded])
        upper = np.append(self.structure.upper, hi[bounded])
        try:
            fit = constrained_least_squares(M / norms, z, rows, lower, upper)
        except Unsolved:
            return Fitted(np.zeros(len(support)), np.inf, np.zeros(q), np.inf)
        if fit is None:
            return Fitted(np.zeros(len(support)), np.inf, np.zeros(q), 0.0)
        coef = np.clip(fit.b / scale, problem.lower[support], problem.upper[support])
        full = np.zeros(problem.n_features)
        full[support] = coef
        return Fitted(coef, problem.objective(full), fit.multipliers[:q], fit.kkt)


class ChoiceIncumbent:
    """Best choice seen, ``chosen`` groups; ``value`` is its objective in units of y'y.

    A node may list ``most_hits`` choices; more have to be branched.
    """

    improves = True
    most_hits = 24

    def __init__(self, fits: Fits) -> None:
        self.fits = fits
        self.problem, self.structure = fits.problem, fits.structure
        self._scale = self.problem.yy if self.problem.yy > 0.0 else 1.0
        self.chosen: np.ndarray | None = None
        self.support, self.best = np.zeros(0, dtype=np.intp), _NOTHING
        self.last = _NOTHING  # the fit of what was offered last

    @property
    def objective(self) -> float:
        return self.best.objective

    @property
    def coef(self) -> np.ndarray:
        return self.best.coef

    @property
    def value(self) -> float:
        return self.objective / self._scale

    def offer(self, chosen: np.ndarray) -> float:
        """Fit a choice that the rules allow, keep it if it is better; its objective over y'y."""
        support = self.structure.features_of(chosen)
        fitted = self.last = self.fits.on(support)
        if fitted.objective < self.objective:
            self.chosen, self.support, self.best = np.sort(chosen), support, fitted
        return fitted.objective / self._scale


class TooManyChoices(Exception):
    """There are more models below the level than were asked for."""


class ChoiceCollector(ChoiceIncumbent):
    """All choices with an objective of at most `level`, which no model lowers; `most` of them."""

    improves = False
    most_hits = 256

    def __init__(self, fits: Fits, level: float, most: float) -> None:
        super().__init__(fits)
        self.level, self.most = level, most
        self.found: dict[bytes, tuple[np.ndarray, Fitted]] = {}

    @property
    def value(self) -> float:
        return self.level / self._scale

    def offer(self, chosen: np.ndarray) -> float:
        value = super().offer(chosen)
        if self.last.objective <= self.level:
            key = np.sort(chosen).astype(np.int64)
            self.found[key.tobytes()] = key, self.last
            if len(self.found) > self.most:
                raise TooManyChoices
        return value


_NOTHING = Fitted(np.zeros(0), np.inf, np.zeros(0), 0.0)
