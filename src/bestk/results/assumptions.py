"""What a proof rests on besides the data: said in words, and mostly nothing."""

import numpy as np
from scipy.linalg import lapack, qr

from bestk.base.tuning import tuning
from bestk.base.validation import few
from bestk.form.by_rows import MatrixByRows
from bestk.form.definiteness import is_positive_semidefinite
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression

# Columns with less than this beyond others, times the root of the rows, depend on them.
_DEPENDENT = 1e-13
# Pivots of products above this show that none does.
_CLEAR = 1e-3


def assumptions_of(presolved: Presolved, k: int) -> tuple[str, ...]:
    """A box that was chosen; and where numbers cannot tell two cases apart, which was taken."""
    found = (
        _box(presolved.problem),
        _copies(presolved),
        _dependence(presolved, k),
        _products(presolved, k),
    )
    return tuple(text for text in found if text)


def _box(problem: Regression) -> str | None:
    if problem.box is None:
        return None
    factor = tuning().box_factor
    return (
        f"Coefficients, times the lengths of their columns, are at most {factor:g} times the "
        f"largest of a first model, {problem.box / factor:.4g} of the length of y."
    )


def _copies(presolved: Presolved) -> str | None:
    problem = presolved.problem
    names = [
        f"{_name(problem, copy)} repeats {_name(problem, other)}"
        for copy, other in presolved.copies
        if not _is_exact_multiple(problem, copy, other)
    ]
    if not names:
        return None
    return f"{few(names)} up to rounding (1e-14), so models need not use both."


def _dependence(presolved: Presolved, k: int) -> str | None:
    if presolved.form is None:
        return None
    # Searches note what they meet. Where all features may be in a model there is none.
    if not presolved.form.dependent and not (
        presolved.size(k) == presolved.form.p and _are_dependent(presolved)
    ):
        return None
    return (
        "Some features depend on others up to rounding (1e-13 of their length); what they add to "
        "those is taken to be nothing."
    )


def _are_dependent(presolved: Presolved) -> bool:
    """Whether a column of all that may be in a model is a sum of others; rows are not too few."""
    form, problem = presolved.form, presolved.problem
    assert form is not None
    if problem.rows is None:
        return False  # see _products
    weight = problem.rows.weight
    n_rows = len(problem.rows.y) if weight is None else np.count_nonzero(weight)
    if form.p > n_rows - problem.fit_intercept or form.is_boxed:
        return False  # any sum of so few rows is exact; a box is proven without leaving any out
    if not isinstance(form.matrix, MatrixByRows):
        factor, failed = lapack.dpotrf(form.A, lower=1)
        if not failed and factor.diagonal().min() > _CLEAR:
            return False
    M = problem.columns(form.features)[0]
    R = qr(M / np.sqrt((M * M).sum(axis=0)), mode="r", pivoting=True, check_finite=False)[0]
    return bool(np.abs(R.diagonal()).min() <= _DEPENDENT * np.sqrt(len(M)))


def _products(presolved: Presolved, k: int) -> str | None:
    """Without rows, nearly dependent features are known to within the error of their products."""
    form, problem = presolved.form, presolved.problem
    if form is None or problem.rows is not None:
        return None
    if is_positive_semidefinite(form.A, np.full(form.p, 4.0 * k * form.eps)):
        return None
    return (
        "Only sums of products are known, and some features are nearly dependent. For models whose "
        "terms are B times as long as y in total the bound may be too high by "
        f"{form.eps:.0e} (1 + B)^2 y'y."
    )


def _is_exact_multiple(problem: Regression, copy: int, other: int) -> bool:
    """Is a column another one times a power of two?"""
    if problem.rows is None:
        return False
    x, z = problem.rows.X[:, copy], problem.rows.X[:, other]
    largest = int(np.argmax(np.abs(z)))
    factor = float(x[largest]) / float(z[largest])
    return abs(np.frexp(factor)[0]) == 0.5 and np.array_equal(x, factor * z)


def _name(problem: Regression, feature: int) -> str:
    return problem.feature_names[feature] if problem.feature_names else f"x{feature}"
