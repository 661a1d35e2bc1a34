"""The best model so far, always judged on the data themselves."""

import numpy as np

from bestk.problem.regression import Regression

Fits = dict[bytes, tuple[np.ndarray, float]]
"""Support (as bytes of its indices) to coefficients and objective."""


class Incumbent:
    """Best support seen; ``value`` is its objective in units of y'y.

    Supports are offered in problem indices. Each is fitted once: fits are kept in a cache that the
    whole tree, and all sizes k of a path, share.
    """

    def __init__(self, problem: Regression, fits: Fits | None = None) -> None:
        self.problem = problem
        self._scale = problem.yy if problem.yy > 0.0 else 1.0
        self._fits: Fits = {} if fits is None else fits
        self.support, self.coef, self.objective = np.zeros(0, dtype=np.intp), np.zeros(0), np.inf
        self.offer(self.support)

    @property
    def value(self) -> float:
        return self.objective / self._scale

    def offer(self, support: np.ndarray) -> float:
        """Fit a support exactly, keep it if it is better; returns its objective over y'y."""
        support = np.sort(np.asarray(support, dtype=np.intp))
        key = support.tobytes()
        if key not in self._fits:
            self._fits[key] = self.problem.fit(support)
        coef, objective = self._fits[key]
        if objective < self.objective:
            self.support, self.coef, self.objective = support, coef, objective
        return objective / self._scale
