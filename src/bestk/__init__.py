"""bestk finds, and proves, the best k-feature linear model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bestk import datasets
from bestk.api import beam_search, solve
from bestk.path import Path, solve_path
from bestk.problem import Problem
from bestk.result import Result, Snapshot, Status
from bestk.settings import Advanced

if TYPE_CHECKING:
    from bestk import plots
    from bestk.cross_validation import CrossValidation
    from bestk.estimators import SparseRidge, SparseRidgeCV

__version__ = "0.1.0"

__all__ = [
    "Advanced",
    "CrossValidation",
    "Path",
    "Problem",
    "Result",
    "Snapshot",
    "SparseRidge",
    "SparseRidgeCV",
    "Status",
    "beam_search",
    "datasets",
    "plots",
    "solve",
    "solve_path",
]

# scikit-learn takes longer to import than all the rest: it waits until it is needed.
_LAZY = {
    "CrossValidation": "bestk.cross_validation",
    "SparseRidge": "bestk.estimators",
    "SparseRidgeCV": "bestk.estimators",
}


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module("bestk.plots")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'bestk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
