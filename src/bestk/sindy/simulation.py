"""Found equations in motion."""

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from pysindy import PolynomialLibrary

# Beyond this multiple of the largest state of the data a simulation has left the picture.
_ESCAPE = 1e6
_TOLERANCE = 1e-8

RightHandSide = Callable[[float, np.ndarray], np.ndarray]


def right_hand_side(
    model: Any, control: Callable[[float], np.ndarray] | None = None
) -> RightHandSide:
    """``x' = f(t, x)`` of a fitted PySINDy model, with control inputs at any time if it has any."""
    if control is not None:
        return _controlled(model, control)
    library, coef = model.feature_library, model.coefficients()
    if type(library) is not PolynomialLibrary:
        return lambda t, x: np.asarray(model.predict(x[None])[0])
    # A thousand times faster than to evaluate the whole library for every step.
    used = coef.any(axis=0)
    powers, factors = library.powers_[used], coef[:, used]
    return lambda t, x: factors @ np.prod(x**powers, axis=1)


def _controlled(model: Any, control: Callable[[float], np.ndarray]) -> RightHandSide:
    library, coef = model.feature_library, model.coefficients()
    if type(library) is not PolynomialLibrary:
        return lambda t, x: np.asarray(model.predict(x[None], u=control(t)[None])[0])
    used = coef.any(axis=0)
    powers, factors = library.powers_[used], coef[:, used]
    return lambda t, x: factors @ np.prod(np.append(x, control(t)) ** powers, axis=1)


def integrate(
    rhs: RightHandSide, start: np.ndarray, t: np.ndarray, scale: float, time_limit: float
) -> np.ndarray:
    """States (n, d) at times t, from `start` at the first of them; NaN after a blow-up.

    An integration also ends where no step succeeds, or after so many seconds.
    """
    from scipy.integrate import LSODA  # slow to import, seldom needed

    states = np.full((len(t), len(start)), np.nan)
    states[0] = start
    escape, deadline = _ESCAPE * max(scale, 1e-300), perf_counter() + time_limit
    done = 1
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # it says in many words that steps fail
        solver = LSODA(
            rhs, t[0], start, t[-1], rtol=_TOLERANCE, atol=_TOLERANCE * max(scale, 1e-300)
        )
        while done < len(t) and solver.status == "running" and perf_counter() < deadline:
            solver.step()
            if not np.abs(solver.y).max() < escape:
                break
            reached = int(np.searchsorted(t, solver.t, side="right"))
            if solver.status != "failed" and reached > done:
                states[done:reached] = solver.dense_output()(t[done:reached]).T
                done = reached
    return states
