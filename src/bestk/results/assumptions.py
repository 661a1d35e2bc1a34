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

DEPENDENCE = (
    "Some features depend on others up to rounding (1e-13 of their length); what they add to those "
    "is taken to be nothing."
)


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
    form = presolved.form
    if form is None:
        return None
    if form.dependent:  # searches note what they meet
        return DEPENDENCE
    # There is no search where all may be in a model. A box is proven without leaving any out.
    if presolved.size(k) < form.p or form.is_boxed:
        return None
    products = None if isinstance(form.matrix, MatrixByRows) else form.A
    return DEPENDENCE if are_dependent(presolved.problem, form.features, products) else None


def are_dependent(problem: Regression, features: np.ndarray, products: np.ndarray | None) -> bool:
    """Whether the column of a feature is a sum of others up to rounding; rows are not too few.

    `products` of the same columns, in any scales that are about one, may show at once that none is.
    """
    if problem.rows is None:
        return False  # see _products
    weight = problem.rows.weight
    n_rows = len(problem.rows.y) if weight is None else np.count_nonzero(weight)
    if not 0 < len(features) <= n_rows - problem.fit_intercept:
        return False  # any sum of so few rows is exact
    if products is not None:
        factor, failed = lapack.dpotrf(products, lower=1)
        if not failed and factor.diagonal().min() > _CLEAR:
            return False
    M = problem.columns(features)[0]
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
