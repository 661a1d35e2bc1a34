"""The data of the dynamical systems study, and what a model found in them is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.signal import savgol_filter
from sklearn.preprocessing import PolynomialFeatures

from bestk.datasets import EQUATIONS, make_dynamics, simulate

DEGREE = 5
DT = 0.002
LICENSED_TERMS = 100
"""The built-in licence of Gurobi ends at 200 variables, and each term takes two."""
TEST_RUNS, TEST_SECONDS, TEST_DT = 10, 10.0, 0.01


Slopes = Callable[[np.ndarray, float], np.ndarray]
"""From states and the time between them to derivatives."""


class System(NamedTuple):
    """Lengths of the training part (seconds), and thresholds that suit its coefficients."""

    title: str
    durations: np.ndarray
    thresholds: np.ndarray


SYSTEMS = {
    "lorenz": System("Lorenz", 2 ** np.linspace(-2, 3.4, 12), 10 ** np.linspace(-2, 1, 50)),
    "hopf": System("Hopf", 2 ** np.linspace(0, 4, 12), 10 ** np.linspace(-3, 0, 50)),
    "mhd": System("MHD", 2 ** np.linspace(-1, 4, 12), 10 ** np.linspace(-1.5, 1.5, 50)),
}


@dataclass(frozen=True, kw_only=True)
class Split:
    """Libraries of terms (rows, p) and derivatives (rows, dims), training and validation."""

    X: np.ndarray
    Y: np.ndarray
    X_valid: np.ndarray
    Y_valid: np.ndarray

    @classmethod
    def of(cls, states: np.ndarray, n_rows: int, dt: float, slopes: Slopes) -> Split:
        """The first rows to fit, the others to choose by; each part has slopes of its own."""
        train, valid = states[:n_rows], states[n_rows:]
        return cls(
            X=terms(train),
            Y=slopes(train, dt),
            X_valid=terms(valid),
            Y_valid=slopes(valid, dt),
        )


def split(system: str, duration: float, trial: int) -> Split:
    """A noisy trajectory of 1.5 durations: two thirds to fit, the last third to choose by.

    Terms come from the raw noisy states; each part is smoothed on its own.
    """
    states = simulate(system, 1.5 * duration, noise=0.002, dt=DT, seed=trial)
    return Split.of(states, int(duration / DT), DT, derivatives)


def terms(states: np.ndarray) -> np.ndarray:
    """All monomials up to the degree, in the order of :func:`bestk.datasets.make_dynamics`."""
    return PolynomialFeatures(DEGREE).fit_transform(states)


def derivatives(states: np.ndarray, dt: float) -> np.ndarray:
    smooth = savgol_filter(states, window_length=9, polyorder=3, axis=0)
    return np.gradient(smooth, dt, axis=0, edge_order=2)


@lru_cache
def true_coef(system: str) -> np.ndarray:
    return make_dynamics(system, 10 * DT, degree=DEGREE).coef


@lru_cache(maxsize=2)
def clean_runs(system: str, trial: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """(terms, derivatives) of simulations without noise, from states no model has seen."""
    runs = []
    for state in _initial_states(system, TEST_RUNS, seed=trial + 1):
        t = np.arange(0.0, TEST_SECONDS, TEST_DT)
        options = {"method": "LSODA", "t_eval": t, "rtol": 1e-12, "atol": 1e-12}
        equations = (EQUATIONS[system],)
        states = solve_ivp(_flow, (t[0], t[-1]), state, args=equations, **options).y.T
        runs.append((terms(states), derivatives(states, TEST_DT)))
    return runs


def _initial_states(system: str, n: int, seed: int) -> np.ndarray:
    # Drawn variable by variable from the legacy generator, as in the published study.
    rng = np.random.RandomState(seed)
    if system == "lorenz":
        x, y, z = rng.uniform(-5, 5, n), rng.uniform(-5, 5, n), rng.uniform(10, 40, n)
        return np.column_stack([x, y, z])
    if system == "hopf":
        angle = 2 * np.pi * rng.uniform(size=n)
        return rng.uniform(0.75, 1.25, n)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return rng.uniform(-1.5, 1.5, (n, 6))


def _flow(t, x, equations):
    return [
        sum(value * prod(x[i] for i in monomial) for monomial, value in equation.items())
        for equation in equations
    ]


def true_positivity(coef: np.ndarray, truth: np.ndarray) -> float:
    """TP / (TP + FP + FN) over all equations: 1 for the right terms and no others."""
    found, wanted = coef != 0, truth != 0
    return float((found & wanted).sum() / (found | wanted).sum())


def coefficient_error(coef: np.ndarray, truth: np.ndarray) -> float:
    """||C - C*|| / ||C*||, Frobenius norms."""
    return float(np.linalg.norm(coef - truth) / np.linalg.norm(truth))


def prediction_error(coef: np.ndarray, system: str, trial: int) -> float:
    """Root mean squared error of predicted derivatives, mean over the clean runs."""
    errors = [np.sqrt(np.mean((Y - X @ coef.T) ** 2)) for X, Y in clean_runs(system, trial)]
    return float(np.mean(errors))
