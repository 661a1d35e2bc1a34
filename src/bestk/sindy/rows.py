"""Rows that an optimizer is given: terms, derivatives and weights."""

from typing import Any, NamedTuple

import numpy as np

from bestk.base.validation import as_matrix, as_real, as_weights, require_finite, require_rows


class Rows(NamedTuple):
    """Terms x (n, n_terms), derivatives y (n, n_equations) and a weight per row, or None."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None

    @classmethod
    def of(cls, x_: Any, y: Any, sample_weight: Any) -> "Rows":
        """The rows without missing values, as float64; errors name the argument."""
        x = np.asarray(as_matrix("x_", x_), dtype=np.float64)
        y = np.asarray(as_real("y", y), dtype=np.float64)
        if y.ndim == 1:
            y = y[:, None]
        if y.ndim != 2:
            raise ValueError(
                f"y has shape {y.shape}; pass one column per equation, or a vector for one equation"
            )
        if len(x) != len(y):
            raise ValueError(
                f"x_ has {len(x)} rows, but y has {len(y)}; pass the derivatives at the rows of x_"
            )
        if sample_weight is not None and np.ndim(sample_weight) == 0:
            sample_weight = np.full(len(x), sample_weight)
        weight = as_weights(sample_weight, len(x))
        require_rows("x_", x)
        known = ~(np.isnan(x).any(axis=1) | np.isnan(y).any(axis=1))
        if not known.any():
            raise ValueError(
                "every row of x_ or y has a missing value, and such rows are left out; look for a "
                "column that has none but missing values"
            )
        x, y = x[known], y[known]
        require_finite("x_", x)
        require_finite("y", y)
        return cls(x, y, None if weight is None else weight[known])

    def weighted(self) -> tuple[np.ndarray, np.ndarray]:
        """x and y whose plain least squares are the weighted ones of the rows."""
        if self.weight is None:
            return self.x, self.y
        root = np.sqrt(self.weight)[:, None]
        return root * self.x, root * self.y
