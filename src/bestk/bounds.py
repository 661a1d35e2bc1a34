"""Lower bounds: four ways to find a dual vector g, one way to say what it proves.

Any g gives the bound h(g) of theory eq. 3. The methods below only search for a good one; the
rigorous value, rounding included, and the fixings come from `_kernels.certify`.
"""

from functools import cached_property
from typing import Protocol

import numpy as np

from bestk import wide
from bestk._kernels import FREE, IN, OUT, certify_rows, descend_rows, prox_rows
from bestk.batches import CAUTION, Batch, as_recorded
from bestk.relaxation import Split
from bestk.scaling import StandardForm
from bestk.threads import Workers


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

    @cached_property
    def inverse(self) -> np.ndarray:
        return np.linalg.inv(self.form.A)

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        if not self.split.is_positive:
            return
        full = self.inverse @ self.form.c
        for state, dual in zip(batch.states, batch.duals, strict=True):
            # Ridge without some features, from the inverse with all of them (Schur complement).
            out = np.flatnonzero(state == OUT)
            block = self.inverse[np.ix_(out, out)]
            dual[:] = full - self.inverse[:, out] @ np.linalg.solve(block, full[out])
            dual[out] = 0.0


class Admm:
    """The paper's ADMM on max h, in units where t = 1; rows of the batch share each product."""

    iterations = 100
    check_every = 10

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.fast = form, split, Fast(form, split, workers)

    @cached_property
    def scaled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """(1/sqrt(t), c in units of t = 1, inverse of Q + 2/rho, 2/rho)."""
        form, t = self.form, self.split.t
        unit = 1.0 / np.sqrt(t)
        Q = form.A * np.outer(unit, unit)
        Q[np.diag_indices(form.p)] -= 1.0
        eigenvalues = np.linalg.eigvalsh(Q)
        positive = eigenvalues[eigenvalues > 1e-6 * eigenvalues[-1]]
        twice = float(np.sqrt(positive[0] * positive[-1])) if len(positive) else 1.0
        Q[np.diag_indices(form.p)] += twice
        return unit, form.c * unit, np.linalg.inv(Q), twice

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        self.fast.search(batch, k, cutoff)
        if not self.split.is_positive:
            return
        form, t = self.form, self.split.t
        unit, c, inverse, twice = self.scaled
        remaining = batch.remaining(k)
        lo, hi = form.lo / unit, form.hi / unit
        u = (form.c - batch.duals @ form.A + batch.duals * t) * unit
        q = np.zeros_like(u)
        new = np.empty_like(u)
        best = np.full(len(u), -np.inf)
        for iteration in range(1, self.iterations + 1):
            rhs = c - u - q
            g = rhs @ inverse
            Qg = rhs - twice * g
            if iteration % self.check_every == 0 or iteration == self.iterations:
                value = saddle_values(g, Qg, c, lo, hi, batch.states, remaining)
                batch.keep_better(g * unit, value, best)
                if (best >= cutoff).all():
                    break
            theta = 2.0 * Qg + u - c
            v = c - theta - q
            prox_rows(v, lo, hi, batch.states, remaining, 2.0 / twice, new)
            q += theta + new - c
            u, new = new, u
        batch.work += iteration * form.p**2


class Subgradient:
    """The paper's optional bound: subgradient ascent on h with CMF directions."""

    iterations = 200
    smoothing = 1.5

    def __init__(self, form: StandardForm, split: Split, workers: Workers) -> None:
        self.form, self.split, self.fast = form, split, Fast(form, split, workers)

    def search(self, batch: Batch, k: int, cutoff: float) -> None:
        self.fast.search(batch, k, cutoff)
        if not self.split.is_positive:
            return
        form, t, remaining = self.form, self.split.t, batch.remaining(k)
        unit = 1.0 / np.sqrt(t)
        c, lo, hi = form.c * unit, form.lo / unit, form.hi / unit
        Q = form.A * np.outer(unit, unit)
        Q[np.diag_indices(form.p)] -= 1.0
        g = batch.duals / unit
        direction = np.zeros_like(g)
        best = np.full(len(g), -np.inf)
        # The paper estimates max h by the incumbent's loss; the cutoff is that loss less gap_tol.
        goal = cutoff
        for _ in range(self.iterations):
            Qg = g @ Q
            value = saddle_values(g, Qg, c, lo, hi, batch.states, remaining)
            batch.keep_better(g * unit, value, best)
            if (best >= cutoff).all():
                break
            slope = 2.0 * (inner_minimiser(c - Qg, lo, hi, batch.states, remaining) - g) @ Q
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


def unit_phi(u: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """max over lo <= v <= hi of 2 u v - v^2, elementwise."""
    v = np.clip(u, lo, hi)
    return v * (2.0 * u - v)


def chosen_mask(phi: np.ndarray, states: np.ndarray, remaining: np.ndarray) -> np.ndarray:
    """IN features and the `remaining` largest phi among the FREE ones, row by row."""
    ranked = np.where(states == FREE, phi, -np.inf)
    order = np.argsort(-ranked, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(phi.shape[1])[None], axis=1)
    return (states == IN) | ((states == FREE) & (rank < remaining[:, None]))


def saddle_values(g, Qg, c, lo, hi, states, remaining) -> np.ndarray:
    """h(g) of eq. 3 in units of t = 1, without rounding allowance: to steer, not to prove."""
    phi = unit_phi(c - Qg, lo, hi)
    chosen = chosen_mask(phi, states, remaining)
    return 1.0 - np.einsum("ij,ij->i", g, Qg) - np.where(chosen, phi, 0.0).sum(axis=1)


def inner_minimiser(u, lo, hi, states, remaining) -> np.ndarray:
    """The b that attains the bound at u: clipped u on the chosen features, zero elsewhere."""
    chosen = chosen_mask(unit_phi(u, lo, hi), states, remaining)
    return np.where(chosen, np.clip(u, lo, hi), 0.0)
