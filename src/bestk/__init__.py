"""bestk finds, and proves, the best k-feature linear model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bestk import datasets, plots
    from bestk.api import beam_search, resume, solve
    from bestk.certificate import Certificate
    from bestk.cross_validation import CrossValidation
    from bestk.estimators import SparseRidge, SparseRidgeCV
    from bestk.path import Path, solve_path
    from bestk.problem import Problem
    from bestk.result import Result, Snapshot, Status
    from bestk.settings import Advanced

__version__ = "0.1.0"

__all__ = [
    "Advanced",
    "Certificate",
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
    "resume",
    "solve",
    "solve_path",
]

# Numba, SciPy and scikit-learn take a second or two to import: they wait until they are needed.
_HOME = {
    "Advanced": "bestk.settings",
    "Certificate": "bestk.certificate",
    "CrossValidation": "bestk.cross_validation",
    "Path": "bestk.path",
    "Problem": "bestk.problem",
    "Result": "bestk.result",
    "Snapshot": "bestk.result",
    "SparseRidge": "bestk.estimators",
    "SparseRidgeCV": "bestk.estimators",
    "Status": "bestk.result",
    "beam_search": "bestk.api",
    "resume": "bestk.api",
    "solve": "bestk.api",
    "solve_path": "bestk.path",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in ("datasets", "plots", "sindy"):
        value = import_module(f"bestk.{name}")
    else:
        raise AttributeError(f"module 'bestk' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
