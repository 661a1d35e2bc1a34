"""Derivatives of noisy trajectories: what is used by default, and what may be used at all."""

from math import comb
from typing import Any

import numpy as np
from pysindy import (
    FiniteDifference,
    SINDyDerivative,
    SmoothedFiniteDifference,
    SpectralDerivative,
)
from pysindy.differentiation import BaseDifferentiation
from scipy.signal import savgol_filter

from bestk.sindy.trajectories import Trajectories

WINDOW, ORDER = 9, 3
# States with less noise than this share of their standard deviation are not smoothed.
_CLEAN = 1e-6
_LEAST_ROWS = 3


class SavitzkyGolayDifference(FiniteDifference):
    """Derivatives of states by polynomials through nine rows around each.

    Noisy states, even steps: second-order differences of fitted cubics, as in PySINDy's
    SmoothedFiniteDifference. Uneven steps: derivatives of the cubics themselves, since differences
    over the shortest steps would be mostly noise. States without noise, even steps: derivatives of
    the polynomials of degree eight, since errors of low-order differences would get an equation.
    """

    def _differentiate(self, x, t):
        if np.isscalar(t) and is_clean(np.asarray(x)):
            options = {"window_length": WINDOW, "polyorder": WINDOW - 1, "deriv": 1}
            derivatives = savgol_filter(x, **options, delta=t, axis=0)
        elif np.isscalar(t):
            smooth = savgol_filter(x, window_length=WINDOW, polyorder=ORDER, axis=0)
            derivatives = super()._differentiate(smooth, t)
        else:
            derivatives = slopes(np.asarray(x), np.asarray(t))
        derivatives[:, np.ptp(x, axis=0) == 0.0] = 0.0  # rounding errors would get an equation
        self.smoothed_x_ = x  # the library is evaluated on the raw states
        return derivatives


def is_clean(x: np.ndarray) -> bool:
    """Are these rows, evenly spaced, smooth to six digits? Differences of order 8 leave noise."""
    rough = np.diff(x, n=WINDOW - 1, axis=0)
    noise = np.sqrt(np.mean(rough**2, axis=0) / comb(2 * (WINDOW - 1), WINDOW - 1))
    return bool((noise <= _CLEAN * x.std(axis=0)).all())


def slopes(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Derivatives (n, d) of local polynomial fits to x (n, d) at times t (n,)."""
    n = len(t)
    first = np.clip(np.arange(n) - WINDOW // 2, 0, n - WINDOW)
    rows = first[:, None] + np.arange(WINDOW)
    # Times about each row in units of its window: powers of raw times would lose all digits.
    times = t[rows] - t[:, None]
    unit = np.abs(times).max(axis=1, keepdims=True)
    powers = (times / unit)[:, :, None] ** np.arange(ORDER + 1)
    weights = np.linalg.pinv(powers)[:, 1, :] / unit
    return np.einsum("nw,nwd->nd", weights, x[rows])


def method_for(differentiation: Any, trajectories: Trajectories) -> Any:
    """The method of the user, if it suits the times, or the default."""
    if differentiation is None:
        return SavitzkyGolayDifference()
    if not isinstance(differentiation, BaseDifferentiation):
        raise TypeError(
            "differentiation must be a PySINDy method such as pysindy.FiniteDifference(), "
            f"got {differentiation!r}"
        )
    if trajectories.steps is None and _assumes_even_times(differentiation):
        raise ValueError(
            f"t has uneven steps, but differentiation={type(differentiation).__name__} assumes "
            "even ones; leave differentiation out, pass pysindy.FiniteDifference(), or resample"
        )
    return differentiation


def least_rows(differentiation: Any) -> int:
    """Rows that derivatives need at least."""
    return WINDOW if differentiation is None else _LEAST_ROWS


def _assumes_even_times(method: Any) -> bool:
    if isinstance(method, SINDyDerivative):
        # The other kinds fit curves to the times they are given.
        return method.kwargs.get("kind") in ("finite_difference", "spectral", "trend_filtered")
    if isinstance(method, FiniteDifference) and method.is_uniform:
        return True
    return isinstance(method, SmoothedFiniteDifference | SpectralDerivative)
