"""What a run found and what it proved."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

# Below this share of y'y an objective is a perfect fit up to rounding, and gaps are measured
# against the share instead of against the objective.
PERFECT_FIT = 1e-12


class Status(Enum):
    """Why the run ended. ``status.advice`` says what to do next."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit"
    NODE_LIMIT = "node limit"
    MEMORY_LIMIT = "memory limit"
    STOPPED = "stopped by the callback"
    INTERRUPTED = "interrupted"

    @property
    def advice(self) -> str:
        return _ADVICE[self]

    def __str__(self) -> str:
        return self.value


_RESUME = "The solution and the bound hold; the gap is what is left to prove."
_ADVICE = {
    Status.OPTIMAL: "Proven: no model with at most k features is better by more than gap_tol.",
    Status.TIME_LIMIT: f"{_RESUME} Raise time_limit, loosen gap_tol, or give bounds or alpha > 0.",
    Status.NODE_LIMIT: f"{_RESUME} Raise node_limit or loosen gap_tol.",
    Status.MEMORY_LIMIT: f'{_RESUME} Raise memory_limit or use search="depth-first".',
    Status.STOPPED: f"{_RESUME} The callback asked for the stop.",
    Status.INTERRUPTED: f"{_RESUME} Solve again with initial_support=result.support to go on.",
}


def relative_gap(objective: float, lower_bound: float, yy: float) -> float:
    """(objective - lower_bound) / objective, the honest gap; a perfect fit is judged by y'y."""
    difference = max(objective - lower_bound, 0.0)
    if difference == 0.0:
        return 0.0
    return difference / max(objective, PERFECT_FIT * yy)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The state of a run at one moment; passed to ``callback`` and ``progress``."""

    seconds: float
    n_nodes: int
    n_open: int
    objective: float
    lower_bound: float
    yy: float = field(repr=False)

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.lower_bound, self.yy)

    @property
    def explained_gap(self) -> float:
        """(objective - lower_bound) / (y'y - objective), the gap of the OKRidge paper."""
        difference = max(self.objective - self.lower_bound, 0.0)
        if difference == 0.0:
            return 0.0
        explained = self.yy - self.objective
        return difference / explained if explained > 0 else float("inf")


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """The best model found, with the bound that is proven for it.

    Attributes
    ----------
    coef : (p,) array
        Coefficients, at most k of them nonzero.
    support : (m,) int array
        Sorted indices of the chosen features, m <= k.
    objective : float
        ``||y - X coef||^2 + alpha ||coef||^2``, y'y included.
    lower_bound : float
        Proven: no admissible coefficient vector has an objective below it.
    gap, explained_gap : float
        ``(objective - lower_bound)`` over the objective, and over ``y'y - objective``.
    status, message : Status, str
        Why the run ended, and what that means for the user.
    n_nodes, seconds : int, float
        Nodes bounded or enumerated, and wall-clock time.
    history : structured array (seconds, nodes, incumbent, bound)
        How incumbent and bound moved.
    certificate : Certificate or None
        The tree with the reason that closes each leaf; None once it grew too large to keep.
    """

    coef: np.ndarray
    support: np.ndarray
    objective: float
    lower_bound: float
    gap: float
    explained_gap: float
    status: Status
    n_nodes: int
    seconds: float
    history: np.ndarray = field(repr=False)
    certificate: object | None = field(default=None, repr=False)

    @property
    def message(self) -> str:
        return f"{str(self.status).capitalize()}. {self.status.advice}"

    def __str__(self) -> str:
        rows = [
            ("status", str(self.status)),
            ("objective", f"{self.objective:.10g}"),
            ("lower bound", f"{self.lower_bound:.10g}"),
            ("gap", f"{self.gap:.3g}  (explained gap {self.explained_gap:.3g})"),
            ("nodes", f"{self.n_nodes}"),
            ("seconds", f"{self.seconds:.3g}"),
        ]
        lines = [f"bestk: {len(self.support)} of {len(self.coef)} features"]
        lines += [f"  {name:<12} {value}" for name, value in rows]
        lines += ["  feature      coefficient"]
        shown = self.support[:20]
        lines += [f"  {j:<12} {self.coef[j]:.8g}" for j in shown]
        if len(self.support) > len(shown):
            lines += [f"  ... and {len(self.support) - len(shown)} more"]
        return "\n".join([*lines, self.status.advice])
