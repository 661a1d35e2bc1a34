"""``bounds="auto"``: a box chosen from a first model, and what is only known inside it.

A box is one number: ``|b_j| <= box`` for every feature, in units of the standard form, where
columns and y have length one. So it does not depend on the units of features. What is proven in a
box that nobody can vouch for is conditional: models with larger coefficients were not looked at.
"""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from bestk.base.settings import Settings
from bestk.base.tuning import tuning
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression
from bestk.search.improvement import Improver
from bestk.supports.incumbent import Fits, Incumbent

# Smaller coefficients, in units of the standard form, explain nothing but rounding.
_NOTHING = 1e-12


def boxed(
    presolved: Presolved, k: int, starts: Sequence[np.ndarray], settings: Settings
) -> tuple[Presolved, list[np.ndarray]]:
    """The problem in the box that it asks for, and supports to start from.

    Nothing changes unless the bounds are to be chosen. They stay infinite where the first model is
    zero: there is nothing to choose them from.
    """
    problem = presolved.problem
    if not problem.chooses_box or len(presolved.include) > k:  # which is an error of the search
        return presolved, []
    first = first_model(presolved, k, starts, settings)
    used = first.coef != 0.0
    sizes = np.abs(first.coef[used]) / _scales(problem)[first.support[used]]
    largest = float(sizes.max(initial=0.0))
    inside = in_box(problem, tuning().box_factor * largest if largest > _NOTHING else None)
    return presolved.within(inside), [first.support]


def in_box(problem: Regression, box: float | None) -> Regression:
    """The problem in a box that was chosen; None leaves its bounds as they are."""
    if box is None:
        return replace(problem, chooses_box=False)
    scale = _scales(problem)
    # Features that cannot enter a model need no bounds.
    reach = np.where((scale > 0.0) & np.isfinite(scale), box * scale, np.inf)
    return replace(problem, lower=-reach, upper=reach, chooses_box=False, box=box)


def first_model(
    presolved: Presolved,
    k: int,
    starts: Sequence[np.ndarray],
    settings: Settings,
    fits: Fits | None = None,
) -> Incumbent:
    """A good model without any proof: beam search and swaps, as at the root of a tree."""
    incumbent = Incumbent(presolved.problem, fits)
    for support in (presolved.required, *starts):
        incumbent.offer(np.union1d(support, presolved.required))
    form, size = presolved.form, presolved.size(k)
    if form is not None and size > 0:
        limit = np.inf if settings.time_limit is None else settings.time_limit
        improver = Improver(incumbent, deadline=perf_counter() + limit)
        improver.search(form, presolved.inside, size, settings.advanced.beam_width)
    return incumbent


def _scales(problem: Regression) -> np.ndarray:
    """What ``StandardForm.scale`` is, for all features; inf for columns of zeros."""
    squares, units = problem.moments.squares, problem.moments.units
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = units * np.sqrt(problem.yy) / np.sqrt(squares + problem.ridge)
    return np.where(squares > 0.0, scale, np.inf)
