"""The data of the two studies of the paper: synthetic regression and dynamical systems."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import inf, prod
from typing import Literal, NamedTuple, get_args

import numpy as np

from bestk.base.validation import require_choice, require_count, require_number

__all__ = ["Dynamics", "Synthetic", "make_dynamics", "make_synthetic", "simulate"]

ROWS_PER_BLOCK = 1024

# A monomial is the sorted tuple of its variables, (0, 1, 1) for x0 x1^2; an equation maps
# monomials to coefficients. Simulation and true coefficients both come from these tables.
Monomial = tuple[int, ...]
Equation = dict[Monomial, float]
System = Literal["lorenz", "hopf", "mhd"]

LORENZ: tuple[Equation, ...] = (
    {(0,): -10.0, (1,): 10.0},
    {(0,): 28.0, (1,): -1.0, (0, 2): -1.0},
    {(2,): -8.0 / 3.0, (0, 1): 1.0},
)
HOPF: tuple[Equation, ...] = (
    {(0,): -0.05, (1,): -1.0, (0, 0, 0): -1.0, (0, 1, 1): -1.0},
    {(0,): 1.0, (1,): -0.05, (0, 0, 1): -1.0, (1, 1, 1): -1.0},
)
MHD: tuple[Equation, ...] = (
    {(1, 2): 4.0, (4, 5): -4.0},
    {(0, 2): -7.0, (3, 5): 7.0},
    {(0, 1): 3.0, (3, 4): -3.0},
    {(1, 5): 2.0, (2, 4): -2.0},
    {(2, 3): 5.0, (0, 5): -5.0},
    {(0, 4): 9.0, (1, 3): -9.0},
)
EQUATIONS: dict[str, tuple[Equation, ...]] = {"lorenz": LORENZ, "hopf": HOPF, "mhd": MHD}


class Synthetic(NamedTuple):
    """A regression problem and the coefficients that made it."""

    X: np.ndarray
    """(n, p), rows in C order."""
    y: np.ndarray
    """(n,)"""
    coef: np.ndarray
    """(p,), k of them 1 and the others 0."""


class Dynamics(NamedTuple):
    """A library of candidate terms, the derivatives to explain, and the true equations."""

    X: np.ndarray
    """(n, p), each candidate term evaluated on the noisy states."""
    derivatives: np.ndarray
    """(n, dims), estimated from the noisy states; one regression target per column."""
    names: list[str]
    """p names such as ``"1"``, ``"x0"``, ``"x0 x1^2"``."""
    coef: np.ndarray
    """(dims, p), the equations that made the data."""


def make_synthetic(
    n: int, p: int, k: int = 10, *, rho: float = 0.5, snr: float = 5.0, seed: int = 0
) -> Synthetic:
    r"""``y = X b + e``, rows of X from ``N(0, S)``, ``S_ij = rho^|i-j|``, ``b`` with k ones.

    The synthetic benchmark of the paper. The ones of ``b`` stand ``p // k`` apart, and the noise
    has variance ``||X b||^2 / (n snr)``.

    Parameters
    ----------
    n, p : int
        Rows and columns of X.
    k : int
        Number of true features, ``1 <= k <= p``.
    rho : float
        Correlation of neighbouring columns, ``|rho| <= 1``.
    snr : float
        Signal to noise ratio, positive.
    seed : int
        Same seed, same data.

    Returns
    -------
    Synthetic
        ``X`` (n, p), ``y`` (n,), ``coef`` (p,). Memory never exceeds that of X by more than a
        block of rows.
    """
    for name, size in (("n", n), ("p", p), ("k", k)):
        require_count(name, size, least=1)
    if k > p:
        raise ValueError(f"k must be between 1 and p = {p}, got {k}")
    if require_number("rho", rho, least=-1.0) > 1.0:
        raise ValueError(f"rho must be between -1 and 1, got {rho}")
    _require_positive("snr", snr, finite=False)
    require_count("seed", seed, least=0, most=inf)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    _correlate_columns(X, rho)
    coef = np.zeros(p)
    coef[np.arange(k) * (p // k)] = 1.0
    signal = X @ coef
    y = signal + rng.standard_normal(n) * np.sqrt(signal.dot(signal) / n / snr)
    return Synthetic(X, y, coef)


def _require_positive(name: str, value: float, *, finite: bool = True) -> None:
    if require_number(name, value, least=0.0, finite=finite) == 0.0:
        raise ValueError(f"{name} must be above 0, got {value}")


def _correlate_columns(X: np.ndarray, rho: float) -> None:
    """``x_j <- rho x_{j-1} + sqrt(1 - rho^2) x_j`` in place, j = 1, ..., p-1.

    Works on transposed copies of a few rows at a time, where a column is contiguous.
    """
    n, p = X.shape
    innovation = np.sqrt(1.0 - rho**2)
    for start in range(0, n, ROWS_PER_BLOCK):
        block = X[start : start + ROWS_PER_BLOCK].T.copy()
        for j in range(1, p):
            block[j] *= innovation
            block[j] += rho * block[j - 1]
        X[start : start + ROWS_PER_BLOCK] = block.T


def make_dynamics(
    system: System,
    duration: float,
    *,
    degree: int = 5,
    noise: float = 0.002,
    dt: float = 0.002,
    seed: int = 1,
) -> Dynamics:
    r"""``dx/dt = X(x) C'``, X all monomials in the states up to a degree, C to be found.

    A trajectory of a known polynomial system, observed with noise. The library is evaluated on
    the noisy states; derivatives are second-order finite differences of the states
    after a Savitzky-Golay filter (window 9, order 3).

    Parameters
    ----------
    system : {"lorenz", "hopf", "mhd"}
        3, 2 and 6 states; 56, 21 and 462 terms of degree 5.
    duration : float
        Length of the trajectory in time units; ``n = int(duration / dt)`` rows.
    degree : int
        Highest degree of a monomial.
    noise : float
        Standard deviation of the noise, as a fraction of the mean RMS of the states.
    dt : float
        Time between rows.
    seed : int
        Number of the trial: fixes the initial state and the noise.

    Returns
    -------
    Dynamics
        ``X`` (n, p), ``derivatives`` (n, dims), ``names`` (p), ``coef`` (dims, p).
    """
    require_count("degree", degree, least=1)
    _require_positive("duration", duration)
    states = simulate(system, 1.5 * duration, noise=noise, dt=dt, seed=seed)
    states = states[: int(duration / dt)]
    if len(states) < 9:
        raise ValueError(
            f"duration must give at least 9 rows, got {duration} with dt = {dt}; lengthen it"
        )
    equations = EQUATIONS[system]
    if degree < max(len(monomial) for equation in equations for monomial in equation):
        raise ValueError(f"degree = {degree} is too low for the terms of {system!r}; raise it")
    from scipy.signal import savgol_filter  # slow to import, seldom needed

    smooth = savgol_filter(states, window_length=9, polyorder=3, axis=0)
    derivatives = np.gradient(smooth, dt, axis=0, edge_order=2)
    monomials = _monomials(states.shape[1], degree)
    coef = np.array([[equation.get(m, 0.0) for m in monomials] for equation in equations])
    names = [_name(monomial) for monomial in monomials]
    return Dynamics(_library(states, monomials), derivatives, names, coef)


def simulate(
    system: System, duration: float, *, noise: float = 0.0, dt: float = 0.002, seed: int = 1
) -> np.ndarray:
    """``x(t) + noise s e(t)``, t = 0, dt, ..., with e standard normal and s the mean RMS of x.

    A noisy trajectory from a random initial state (LSODA, tolerances 1e-12). Parameters as in
    :func:`make_dynamics`.

    Returns
    -------
    ndarray of shape (ceil(duration / dt), dims)
    """
    require_choice("system", system, get_args(System))
    for name, value in (("duration", duration), ("dt", dt)):
        _require_positive(name, value)
    require_number("noise", noise, least=0.0)
    require_count("seed", seed, least=0, most=inf)
    t = np.arange(0.0, duration, dt)
    if len(t) < 2:
        raise ValueError(f"duration must cover at least two steps of dt = {dt}, got {duration}")
    from scipy.integrate import solve_ivp  # slow to import, seldom needed

    solution = solve_ivp(
        _right_hand_side,
        (t[0], t[-1]),
        _initial_state(system, seed),
        args=(EQUATIONS[system],),
        method="LSODA",
        t_eval=t,
        rtol=1e-12,
        atol=1e-12,
    )
    states: np.ndarray = solution.y.T
    scale = np.sqrt(np.mean(states**2, axis=0)).mean()
    # The published study seeds NumPy's legacy generator, once for the state, again for the noise.
    rng = np.random.RandomState(seed)
    return states + rng.normal(0.0, noise * scale, states.shape)


def _initial_state(system: System, seed: int) -> np.ndarray:
    rng = np.random.RandomState(seed)
    if system == "lorenz":
        return rng.uniform([-5.0, -5.0, 10.0], [5.0, 5.0, 40.0])
    if system == "hopf":
        angle = 2.0 * np.pi * rng.uniform()
        return np.array([np.cos(angle), np.sin(angle)]) * rng.uniform(0.75, 1.25)
    return rng.uniform(-1.5, 1.5, size=6)


def _right_hand_side(t: float, x: np.ndarray, equations: tuple[Equation, ...]) -> list[float]:
    state = x.tolist()
    return [
        sum(value * prod(state[i] for i in monomial) for monomial, value in equation.items())
        for equation in equations
    ]


def _monomials(dims: int, degree: int) -> list[Monomial]:
    """All monomials by degree, then by variables: 1, x0, x1, x0^2, x0 x1, ..."""
    return [
        monomial
        for d in range(degree + 1)
        for monomial in combinations_with_replacement(range(dims), d)
    ]


def _library(states: np.ndarray, monomials: list[Monomial]) -> np.ndarray:
    """Each column is an earlier one (its monomial without the last variable) times a state."""
    X = np.empty((len(states), len(monomials)))
    column = {monomial: j for j, monomial in enumerate(monomials)}
    X[:, 0] = 1.0
    for j, monomial in enumerate(monomials[1:], start=1):
        np.multiply(X[:, column[monomial[:-1]]], states[:, monomial[-1]], out=X[:, j])
    return X


def _name(monomial: Monomial) -> str:
    powers = {i: monomial.count(i) for i in monomial}
    return " ".join(f"x{i}^{d}" if d > 1 else f"x{i}" for i, d in powers.items()) or "1"
