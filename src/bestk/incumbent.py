"""The best model so far, always judged on the data themselves."""

import numpy as np

from bestk.problem import Problem


class Incumbent:
    """Best support seen; ``value`` is its objective in units of y'y.

    Supports are offered in problem indices. Each is fitted once: results are kept in a cache that
    the whole tree shares.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._scale = problem.yy if problem.yy > 0.0 else 1.0
        self._values: dict[bytes, float] = {}
        self.support = np.zeros(0, dtype=np.intp)
        self.coef, self.objective = problem.fit(self.support)

    @property
    def value(self) -> float:
        return self.objective / self._scale

    def offer(self, support: np.ndarray) -> float:
        """Fit a support exactly, keep it if it is better; returns its objective over y'y."""
        support = np.sort(np.asarray(support, dtype=np.intp))
        key = support.tobytes()
        if key not in self._values:
            coef, objective = self.problem.fit(support)
            self._values[key] = objective / self._scale
            if objective < self.objective:
                self.support, self.coef, self.objective = support, coef, objective
        return self._values[key]
