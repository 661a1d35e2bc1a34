"""f(b) = ||y - X b||^2 + alpha ||b||^2, and what a claimed lower bound is worth beside it.

No solver is believed: value, support size and both gaps are recomputed here from X and y. Only the
lower bound itself is taken from the solver, and it is refuted by any model that lies below it: one
that another solver found, or the true features refitted. Without a bound (NaN) there is no gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

ROUNDING = 1e-9
"""Relative slack, in units of y'y, before a claim is called wrong."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a solver's answer comes to."""

    seconds: float
    nodes: int
    objective: float
    lower_bound: float
    yy: float
    size: int
    """Number of nonzero coefficients."""
    complaint: str
    """Why the answer cannot be accepted; empty when it can."""

    @property
    def gap(self) -> float:
        """(objective - bound) / objective: relative to the whole objective."""
        return self._excess / max(self.objective, np.finfo(float).tiny)

    @property
    def explained_gap(self) -> float:
        """(objective - bound) / (y'y - objective): the paper's."""
        return self._excess / max(self.yy - self.objective, np.finfo(float).tiny)

    @property
    def _excess(self) -> float:
        # In this order a missing bound stays missing: max(0, nan) would be 0.
        return float(np.maximum(self.objective - self.lower_bound, 0.0))

    def closed(self, gap: float) -> bool:
        """Whether the answer is sound and reaches the paper's gap."""
        return not self.complaint and self.explained_gap <= gap + ROUNDING


def judge(
    X: np.ndarray,
    y: np.ndarray,
    *,
    k: int,
    alpha: float,
    claim: dict[str, Any],
    best_known: float = np.inf,
) -> Verdict:
    """Recompute a claim ``{seconds, nodes, support, coef, objective, lower_bound}``.

    ``best_known`` is the least objective known for k features on this instance.
    """
    yy = float(y @ y)
    if "error" in claim:
        return Verdict(
            seconds=claim.get("seconds", np.nan),
            nodes=0,
            objective=np.nan,
            lower_bound=np.nan,
            yy=yy,
            size=0,
            complaint=claim["error"],
        )
    support, coef = np.array(claim["support"], dtype=int), np.array(claim["coef"])
    objective = value(X, y, support, coef, alpha)
    lower_bound = np.nan if claim["lower_bound"] is None else claim["lower_bound"]
    complaints = []
    if np.count_nonzero(coef) > k:
        complaints.append(f"{np.count_nonzero(coef)} nonzeros")
    # Big-M and SOS1 models leave dust outside the support, so that their value may be off by more
    # than rounding; what counts is that a claimed value is not better than the true one.
    if claim["objective"] < objective - 1e-6 * yy:
        complaints.append(f"claims objective {claim['objective']:.9g}, has {objective:.9g}")
    if lower_bound > min(objective, best_known) + ROUNDING * yy:
        complaints.append(f"bound {lower_bound:.9g} is above a model's objective")
    return Verdict(
        seconds=claim["seconds"],
        nodes=claim["nodes"],
        objective=objective,
        lower_bound=lower_bound,
        yy=yy,
        size=int(np.count_nonzero(coef)),
        complaint="; ".join(complaints),
    )


def value(
    X: np.ndarray, y: np.ndarray, support: np.ndarray, coef: np.ndarray, alpha: float
) -> float:
    """f of the coefficients ``coef`` on ``support``, zero elsewhere."""
    residual = y - X[:, support] @ coef
    return float(residual @ residual + alpha * (coef @ coef))


def refitted(X: np.ndarray, y: np.ndarray, support: np.ndarray, alpha: float) -> float:
    """min f over coefficients on ``support``."""
    A = X[:, support]
    stacked = np.vstack([A, np.sqrt(alpha) * np.eye(len(support))])
    target = np.concatenate([y, np.zeros(len(support))])
    coef = np.linalg.lstsq(stacked, target, rcond=None)[0]
    return value(X, y, support, coef, alpha)
