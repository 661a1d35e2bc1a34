"""bestk finds, and proves, the best k-feature linear model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bestk import datasets, plots, rules
    from bestk.base.settings import Advanced
    from bestk.results.certificate import Certificate
    from bestk.results.result import Result, Snapshot
    from bestk.results.status import Status
    from bestk.rivals.models import NearOptimal
    from bestk.rivals.near_optimal import near_optimal
    from bestk.search.solve import beam_search, resume, solve
    from bestk.selection.cross_validation import CrossValidation
    from bestk.selection.estimators import SparseRidge, SparseRidgeCV
    from bestk.selection.path import Path, solve_path
    from bestk.selection.problem import Problem
    from bestk.selection.sparse_selector import SparseSelector
    from bestk.selection.stability import Stability, stability
    from bestk.selection.stability.selector import StabilitySelector
    from bestk.selection.warming import warmup
    from bestk.structure.groups import groups_of
    from bestk.structure.sources import groups_by_source

__version__ = "0.1.0.dev0"

__all__ = [
    "Advanced",
    "Certificate",
    "CrossValidation",
    "NearOptimal",
    "Path",
    "Problem",
    "Result",
    "Snapshot",
    "SparseRidge",
    "SparseRidgeCV",
    "SparseSelector",
    "Stability",
    "StabilitySelector",
    "Status",
    "beam_search",
    "datasets",
    "groups_by_source",
    "groups_of",
    "near_optimal",
    "plots",
    "resume",
    "rules",
    "solve",
    "solve_path",
    "stability",
    "warmup",
]

# Numba, SciPy and scikit-learn take a second or two to import: they wait until they are needed.
_HOME = {
    "Advanced": "bestk.base.settings",
    "Certificate": "bestk.results.certificate",
    "CrossValidation": "bestk.selection.cross_validation",
    "NearOptimal": "bestk.rivals.models",
    "Path": "bestk.selection.path",
    "Problem": "bestk.selection.problem",
    "Result": "bestk.results.result",
    "Snapshot": "bestk.results.result",
    "SparseRidge": "bestk.selection.estimators",
    "SparseRidgeCV": "bestk.selection.estimators",
    "SparseSelector": "bestk.selection.sparse_selector",
    "Stability": "bestk.selection.stability",
    "StabilitySelector": "bestk.selection.stability.selector",
    "Status": "bestk.results.status",
    "beam_search": "bestk.search.solve",
    "groups_by_source": "bestk.structure.sources",
    "groups_of": "bestk.structure.groups",
    "near_optimal": "bestk.rivals.near_optimal",
    "resume": "bestk.search.solve",
    "solve": "bestk.search.solve",
    "solve_path": "bestk.selection.path",
    "stability": "bestk.selection.stability",
    "warmup": "bestk.selection.warming",
}

_MODULES = (
    "certificate", "cross_validation", "datasets", "plots", "progress", "readers", "report",
    "rules", "sindy", "storage", "verification",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"bestk.{name}")
    else:
        raise AttributeError(f"module 'bestk' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
