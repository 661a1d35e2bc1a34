"""Why some tests of PySINDy cannot pass with OKRidge: what is known, matched with what happened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .rows import Row


class Failure(NamedTuple):
    """Tests whose names hold ``test``, and that end with an error that holds ``words``."""

    test: str
    words: str

    def matches(self, row: Row) -> bool:
        return self.test in row.test and self.words in row.reason


class Explanation(NamedTuple):
    title: str
    why: str
    failures: tuple[Failure, ...]


EXPLANATIONS = (
    Explanation(
        "A threshold",
        "The test is about `threshold`: a negative one is an error, one that leaves no term ends "
        "with a warning, or a search over parameters names it. OKRidge has the number of terms, "
        "`k`, instead: who gets no terms has asked for k = 0. A search over `optimizer__k` works.",
        (
            Failure("::test_fit_warn[params0-UserWarning]", "DID NOT WARN"),
            Failure("::test_STLSQ_bad_parameters[params0]", "DID NOT RAISE"),
            Failure("::test_cross_validation", "Invalid parameter 'threshold'"),
        ),
    ),
    Explanation(
        "Iterations",
        "The test is about `max_iter`: no iterations are an error, and too few end with a warning. "
        "OKRidge does not iterate: it ends with a proof, or at `time_limit` with a warning of the "
        "same class.",
        (
            Failure("::test_fit_warn[params1-ConvergenceWarning]", "DID NOT WARN"),
            Failure("::test_fit_warn[optimizer0]", "DID NOT WARN"),
            Failure("::test_STLSQ_bad_parameters[params1]", "DID NOT RAISE"),
        ),
    ),
    Explanation(
        "Two arrays of coefficients",
        "With `sparse_ind`, STLSQ cuts `coef_` to the terms that are thresholded, and puts the "
        "others into `optvar_non_sparse_`, which the test reads. In OKRidge the others are `free` "
        "terms, and `coef_` has all.",
        (Failure("::test_sparse_subset_", "'optvar_non_sparse_'"),),
    ),
)


class Explained(NamedTuple):
    """Rows by their explanations, rows without any, and explanations of what happens no more."""

    rows: dict[str, list[Row]]
    unexplained: list[Row]
    outdated: list[Failure]


def explain(rows: Iterable[Row], explanations: Iterable[Explanation] = EXPLANATIONS) -> Explained:
    """Match tests that were lost with what is known about them."""
    lost = [row for row in rows if row.is_lost]
    known = [(one.title, failure) for one in explanations for failure in one.failures]
    found: dict[str, list[Row]] = {title: [] for title, _ in known}
    unexplained, used = [], set()
    for row in lost:
        matching = [(title, failure) for title, failure in known if failure.matches(row)]
        if matching:
            found[matching[0][0]].append(row)
        else:
            unexplained.append(row)
        used.update(failure for _, failure in matching)
    outdated = [failure for _, failure in known if failure not in used]
    return Explained(found, unexplained, outdated)
