"""The triangular factor of rows that come in batches: all they say, at full accuracy.

Sums of products forget angles below sqrt(u) between features; the R of a QR factorisation keeps
them down to u. It has one row for each column, however many rows of data there were, and batches
are added to it one by one.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from bestk.base.tuning import tuning


@dataclass(frozen=True, eq=False)
class Triangle:
    """R with R'R = sum of w (1, x, y)'(1, x, y) over the rows seen so far; upper triangular."""

    R: np.ndarray = field(repr=False)

    @classmethod
    def empty(cls, p: int) -> "Triangle":
        return cls(np.zeros((p + 2, p + 2), order="F"))

    @property
    def n_features(self) -> int:
        return len(self.R) - 2

    def with_rows(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None
    ) -> "Triangle":
        """The triangle of these rows, too."""
        R = self.R.copy(order="F")
        step = max(tuning().triangle_fewest_rows, tuning().triangle_rows * len(R))
        for start in range(0, len(y), step):
            rows = slice(start, start + step)
            chunk = np.empty((len(y[rows]), len(R)), order="F")
            chunk[:, 0], chunk[:, 1:-1], chunk[:, -1] = 1.0, X[rows], y[rows]
            if weight is not None:
                chunk *= np.sqrt(weight[rows])[:, None]
            _eliminate(R, chunk)
        return Triangle(R)

    def __add__(self, other: "Triangle") -> "Triangle":
        R = self.R.copy(order="F")
        _eliminate(R, other.R.copy(order="F"))
        return Triangle(R)

    def moved(self, x_step: np.ndarray, y_step: float) -> "Triangle":
        """The triangle of (1, x + x_step, y + y_step): only multiples of its first row change."""
        R = self.R.copy(order="F")
        R[0, 1:] += R[0, 0] * np.append(x_step, y_step)
        return Triangle(R)

    @property
    def offset(self) -> np.ndarray:
        """(p + 1) lengths of what an intercept takes out of the columns of X and y."""
        return np.abs(self.R[0, 1:])

    def rows(self, fit_intercept: bool) -> tuple[np.ndarray, np.ndarray]:
        """(X, y) of a few rows with the same objective for every model as all rows together.

        With an intercept, the one that is best for each model has been taken out: what is left of
        the other columns beside the first one is all rows below the first.
        """
        first = 1 if fit_intercept else 0
        return np.ascontiguousarray(self.R[first:, 1:-1]), self.R[first:, -1].copy()


def _eliminate(R: np.ndarray, chunk: np.ndarray) -> None:
    """Make R that of [R; chunk], in place; chunk is used up."""
    lapack.dtpqrt(0, min(tuning().triangle_panel, len(R)), R, chunk, overwrite_a=1, overwrite_b=1)
