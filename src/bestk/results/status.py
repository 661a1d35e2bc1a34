"""Why a run ended, and what to do next."""

from enum import Enum

from bestk.results.gaps import PERFECT_FIT


class Status(Enum):
    """Why the run ended. ``status.advice`` says what to do next."""

    OPTIMAL = "optimal"
    CONDITIONAL = "conditional"
    PERFECT_FIT = "perfect fit"
    NUMERICAL_LIMIT = "numerical limit"
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
_OR = "loosen gap_tol, or give bounds or a larger alpha."
_ADVICE = {
    Status.OPTIMAL: "Proven: no model with at most k features is better by more than gap_tol.",
    Status.CONDITIONAL: (
        "No model inside the box that was chosen is better by more than gap_tol; models with "
        "larger coefficients were not looked at. Give bounds= that you trust, or a larger "
        "box, to learn more."
    ),
    Status.PERFECT_FIT: (
        f"No model is better by more than {PERFECT_FIT:g} of y'y. Which of several perfect models "
        "is the best cannot be told; a smaller k may be enough."
    ),
    Status.NUMERICAL_LIMIT: (
        "The solution and the bound hold; what is left of the gap is rounding, and no search can "
        "close it. Solve from rows instead of sums or batches, or give bounds or a larger alpha."
    ),
    Status.TIME_LIMIT: f"{_RESUME} Raise time_limit, {_OR}",
    Status.NODE_LIMIT: f"{_RESUME} Raise node_limit, {_OR}",
    Status.MEMORY_LIMIT: f'{_RESUME} Raise memory_limit or use search="depth-first".',
    Status.STOPPED: (
        f"{_RESUME} The callback ended the run by returning a true value. Solve again with "
        "initial_support=result.support to go on."
    ),
    Status.INTERRUPTED: f"{_RESUME} Solve again with initial_support=result.support to go on.",
}
