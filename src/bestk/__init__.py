"""bestk finds, and proves, the best k-feature linear model."""

from bestk import datasets
from bestk.api import beam_search, solve
from bestk.cross_validation import CrossValidation
from bestk.estimators import SparseRidge, SparseRidgeCV
from bestk.path import Path, solve_path
from bestk.problem import Problem
from bestk.result import Result, Snapshot, Status
from bestk.settings import Advanced

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
    "solve",
    "solve_path",
]
