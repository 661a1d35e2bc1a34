"""The best model so far, always judged on the data themselves."""

from collections.abc import Sequence

import numpy as np

from bestk.form.standard_form import StandardForm
from bestk.problem.regression import Regression

Fits = dict[bytes, tuple[np.ndarray, float]]
"""Support (as bytes of its indices) to coefficients and objective."""


class Incumbent:
    """Best support seen; ``value`` is its objective in units of y'y.

    Supports are offered in problem indices. Each is fitted once: fits are kept in a cache that the
    whole tree, and all sizes k of a path, share. A search asks it what it is after: better models
    that it ``improves`` on its way, and nothing that contains one of ``covers`` (rows of indices).
    An enumeration may list ``most_hits`` supports, or as many as are worth fitting; supports with
    features that repeat others may be left out unless ``copies_matter``.
    """

    improves = True
    covers = np.empty((0, 0), dtype=np.int64)
    most_hits: int | None = None
    copies_matter = False

    def __init__(self, problem: Regression, fits: Fits | None = None) -> None:
        self.problem = problem
        self._scale = problem.yy if problem.yy > 0.0 else 1.0
        self._fits: Fits = {} if fits is None else fits
        self.support, self.coef, self.objective = np.zeros(0, dtype=np.intp), np.zeros(0), np.inf
        self.offer(self.support)

    @property
    def value(self) -> float:
        return self.objective / self._scale

    def offer_all(self, form: StandardForm, supports: Sequence[np.ndarray]) -> None:
        """Supports in the numbers of a form."""
        for support in supports:
            self.offer(form.features[support])

    def offer(self, support: np.ndarray) -> float:
        """Fit a support exactly, keep it if it is better; returns its objective over y'y."""
        return self._fit(support)[2] / self._scale

    def _fit(self, support: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """(support in order, coefficients, objective); the best one is kept."""
        support = np.sort(np.asarray(support, dtype=np.intp))
        key = support.tobytes()
        if key not in self._fits:
            self._fits[key] = self.problem.fit(support)
        coef, objective = self._fits[key]
        if objective < self.objective:
            self.support, self.coef, self.objective = support, coef, objective
        return support, coef, objective
