"""Lower bounds: four ways to find a dual vector g, one way to say what it proves.

Any g gives the bound h(g) of theory eq. 3. The methods below only search for a good one; the
rigorous value, rounding included, and the fixings come from `_kernels.certify`.
"""

from functools import cached_property
from typing import Protocol

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.threads import Workers
from bestk.bounds import wide
from bestk.bounds.kernels import certify_rows, descend_rows, prox_rows
from bestk.bounds.node_batch import CAUTION, Batch, as_recorded
from bestk.bounds.split import Split
from bestk.form.standard_form import StandardForm
from bestk.form.systems import systems_of


class Method(Protocol):
    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        """Improve batch.duals in place; stop early on nodes whose bound reaches cutoff."""


def make_method(name: str, form: StandardForm, split: Split, workers: Workers) -> Method:
    if form.is_wide and name == "descent":
        return wide.WideDescent(form, split, workers)
    methods: dict[str, type[Descent | Admm | Fast | Subgradient]] = {
        "descent": Descent,
        "admm": Admm,
        "fast": Fast,
        "subgradient": Subgradient,
    }
    return methods[name](form, split, workers)


def bound_and_fix(
    method: Method,
    form: StandardForm,
    split: Split,
    batch: Batch,
    k: int,
    cutoff: float,
    fixing: bool,
    workers: Workers,
) -> None:
    """Bound every node of the batch: fills batch.bounds; batch.states gain the fixings."""
    remaining = batch.remaining(k)

    def piece(rows: slice) -> None:
        certify_rows(
            form.A, form.c, split.t, form.lo, form.hi, batch.states[rows], remaining[rows],
            batch.duals[rows], CAUTION * form.eps, k, cutoff, fixing, batch.bounds[rows],
        )  # fmt: skip

    method.search(batch, k, cutoff)
    batch.duals = as_recorded(batch.duals, split.t)
    if form.is_wide:
        wide.conclude(form, split, batch, k, cutoff, fixing, workers)
        return
    workers.map(piece, workers.slices(len(batch.states)))


class Descent:
    """Coordinate descent on the relaxed problem, whose solution is sparse (theory eq. 7)."""

    # Stop when the relaxation is solved to this share of what separates the bound from the cutoff.
    closeness = 0.2
    sweeps = 400

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.workers = form, split, workers

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        form, remaining = self.form, batch.remaining(k)
        t = np.maximum(self.split.t, 0.0)

        def piece(rows: slice) -> None:
            descend_rows(
                form.A, form.c, t, form.lo, form.hi, batch.states[rows],
                remaining[rows], batch.duals[rows], batch.levels[rows], cutoff,
                self.closeness, self.sweeps, batch.work[rows],
            )  # fmt: skip

        if self.split.bounds(form):
            self.workers.map(piece, self.workers.slices(len(batch.states)))


class Fast:
    """The paper's fast bound: g is the ridge solution on the features that are not out."""

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split = form, split
        self.systems = systems_of(form, np.maximum(split.t, 0.0))

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        if self.split.is_positive:
            for state, dual in zip(batch.states, batch.duals, strict=True):
                dual[:] = self.systems.ridge(state)


class Admm:
    """The paper's ADMM on max h; rows of the batch share each product."""

    iterations = 100
    check_every = 10

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.fast = form, split, Fast(form, split, workers)
        self.systems, self.t = self.fast.systems, np.maximum(split.t, 0.0)

    @cached_property
    def twice(self) -> float:
        """2 / rho: the paper's mean of the largest and the smallest positive eigenvalue of Q.

        Where Q has a large null space a tenth of it: 30 steps are then worth 60 to 100.
        """
        eigenvalues = self.systems.eigenvalues()
        positive = eigenvalues[eigenvalues > 1e-6 * eigenvalues[-1]]
        if len(positive) == 0:
            return 1.0
        is_singular = len(positive) < 0.9 * self.form.p
        return float(np.sqrt(positive[0] * positive[-1])) * (0.1 if is_singular else 1.0)

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        self.fast.search(batch, k, cutoff)
        if not self.split.bounds(self.form):
            return
        form, t, twice = self.form, self.t, self.twice
        self.systems.shift(twice)
        remaining = batch.remaining(k)
        u = form.c - self.systems.product(batch.duals)
        q = np.zeros_like(u)
        new = np.empty_like(u)
        best = np.full(len(u), -np.inf)
        for iteration in range(1, self.iterations + 1):
            rhs = form.c - u - q
            g = self.systems.solve(rhs)
            Qg = rhs - twice * g
            if iteration % self.check_every == 0 or iteration == self.iterations:
                value = saddle_values(form, t, g, Qg, batch.states, remaining)
                batch.keep_better(g, value, best)
                if (best >= cutoff).all():
                    break
            theta = 2.0 * Qg + u - form.c
            v = form.c - theta - q
            prox_rows(v, t, form.lo, form.hi, batch.states, remaining, 2.0 / twice, new)
            q += theta + new - form.c
            u, new = new, u
        batch.work += iteration * form.p**2


class Subgradient:
    """The paper's optional bound: subgradient ascent on h with CMF directions."""

    iterations = 200
    smoothing = 1.5

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.fast = form, split, Fast(form, split, workers)
        self.systems, self.t = self.fast.systems, np.maximum(split.t, 0.0)

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        self.fast.search(batch, k, cutoff)
        if not self.split.bounds(self.form):
            return
        form, t, remaining = self.form, self.t, batch.remaining(k)
        g = batch.duals.copy()
        direction = np.zeros_like(g)
        best = np.full(len(g), -np.inf)
        # The paper estimates max h by the incumbent's loss; the cutoff is that loss less gap_tol.
        goal = cutoff
        for _ in range(self.iterations):
            Qg = self.systems.product(g)
            value = saddle_values(form, t, g, Qg, batch.states, remaining)
            batch.keep_better(g, value, best)
            if (best >= cutoff).all():
                break
            away = inner_minimiser(form, t, form.c - Qg, batch.states, remaining) - g
            slope = 2.0 * self.systems.product(away)
            slope[batch.states == OUT] = 0.0
            length = np.einsum("ij,ij->i", direction, direction)
            product = np.einsum("ij,ij->i", direction, slope)
            s = np.where(
                length > 0,
                np.maximum(0.0, -self.smoothing * product / np.maximum(length, 1e-300)),
                0.0,
            )
            direction = slope + s[:, None] * direction
            length = np.einsum("ij,ij->i", direction, direction)
            g = (
                g
                + np.where(length > 0, (goal - value) / np.maximum(length, 1e-300), 0.0)[:, None]
                * direction
            )
        batch.work += self.iterations * form.p**2


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
    """h(g) of eq. 3, without rounding allowance: to steer, not to prove."""
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
