"""The bound as a saddle value, for whole batches: to steer methods, not to prove anything."""

import numpy as np

from bestk.base.constants import FREE, IN
from bestk.form.standard_form import StandardForm


def best_coefficients(form: StandardForm, t: np.ndarray, u: np.ndarray) -> np.ndarray:
    """argmax over lo <= v <= hi of 2 u v - t v^2, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(t > 0.0, u / t, np.where(u == 0.0, 0.0, np.copysign(np.inf, u)))
    return np.clip(free, form.lo, form.hi)


def chosen_mask(phi: np.ndarray, states: np.ndarray, remaining: np.ndarray) -> np.ndarray:
    """IN features and the `remaining` largest phi among the FREE ones, row by row."""
    ranked = np.where(states == FREE, phi, -np.inf)
    order = np.argsort(-ranked, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(phi.shape[1])[None], axis=1)
    return (states == IN) | ((states == FREE) & (rank < remaining[:, None]))


def saddle_values(form, t, g, Qg, states, remaining) -> np.ndarray:
    """h(g) (theory: bound), without rounding allowance: to steer, not to prove."""
    u = form.c - Qg
    v = best_coefficients(form, t, u)
    phi = v * (2.0 * u - t * v)
    chosen = chosen_mask(phi, states, remaining)
    return 1.0 - np.einsum("ij,ij->i", g, Qg) - np.where(chosen, phi, 0.0).sum(axis=1)


def inner_minimiser(form, t, u, states, remaining) -> np.ndarray:
    """The b that attains the bound at u, nonzero on the chosen features only."""
    v = best_coefficients(form, t, u)
    chosen = chosen_mask(v * (2.0 * u - t * v), states, remaining)
    return np.where(chosen, v, 0.0)
