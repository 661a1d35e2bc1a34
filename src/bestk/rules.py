"""Rules on which features are chosen together, for the list ``rules=`` of solvers and estimators.

A rule names features by column names, column indices or names of groups, and a feature stands for
its whole group.
"""

from bestk.structure.compose import NoModel
from bestk.structure.rules import (
    Rule,
    at_least,
    at_most,
    exclusive,
    hierarchy,
    implies,
    max_correlation,
)

__all__ = [
    "NoModel",
    "Rule",
    "at_least",
    "at_most",
    "exclusive",
    "hierarchy",
    "implies",
    "max_correlation",
]
