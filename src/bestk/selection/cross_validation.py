"""Cross-validation over k and alpha, every fit with its own proof.

The rows outside a fold have the moments of all rows minus those of the fold, so the data are read
once, whatever the number of folds, sizes and penalties.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from bestk.base.fingerprint import DataDigest
from bestk.base.settings import Settings, settings_of
from bestk.base.tuning import tuning
from bestk.base.validation import (
    as_penalties,
    counted,
    require_choice,
    require_count,
    require_flag,
    require_some_weight,
)
from bestk.choices.run import possible_sizes, structure_asked
from bestk.problem.moments import Moments, is_wide
from bestk.problem.rows import (
    Batch,
    Rows,
    centred_batches,
    checked_batches,
    dealt,
    joined_if_wide,
    moments_of,
    moments_of_batches,
    origin_of,
)
from bestk.problem.table import Table
from bestk.results.interactive import as_printed
from bestk.results.progress import one_display
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.selection.jobs import run_jobs
from bestk.selection.path import Path, as_sizes, path_of
from bestk.selection.problem import Problem
from bestk.structure.asked import Asked
from bestk.structure.compose import NoModel

RULES = ("min", "one-se")
_TOO_FEW = "there are too few rows for n_folds = {}; lower n_folds, so that every fold has rows"


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossValidation:
    """Errors on held-out rows for every alpha, k and fold.

    Attributes
    ----------
    ks, alphas : (m,) and (a,) arrays
        The grid, ascending.
    errors : (a, m, n_folds) array
        Error of each fit on the rows it has not seen; smaller is better.
    measure : str
        What the errors are.
    paths : tuple over alphas of tuples over folds of Path
        The fits themselves, each with its bound and certificate.
    """

    ks: np.ndarray
    alphas: np.ndarray
    errors: np.ndarray = field(repr=False)
    measure: str = "mean squared error"
    paths: tuple[tuple[Path, ...], ...] = field(repr=False)

    @property
    def mean(self) -> np.ndarray:
        """(a, m) mean error over folds."""
        return self.errors.mean(axis=2)

    @property
    def standard_error(self) -> np.ndarray:
        """(a, m) standard error of :attr:`mean`; NaN if there is one fold."""
        n_folds = self.errors.shape[2]
        if n_folds == 1:
            return np.full(self.mean.shape, np.nan)
        return self.errors.std(axis=2, ddof=1) / np.sqrt(n_folds)

    @property
    def gaps(self) -> np.ndarray:
        """(a, m, n_folds) proven gap of each fit."""
        gaps = [[path.gaps for path in folds] for folds in self.paths]
        return np.moveaxis(np.array(gaps), 1, 2)

    @property
    def share_proven(self) -> float:
        """Share of the fits that are proven optimal."""
        return sum(r.is_proven for r in self._results) / len(self._results)

    @property
    def is_proven(self) -> bool:
        return self.share_proven == 1.0

    @property
    def is_closed(self) -> bool:
        """Whether every search came to its end; see :attr:`Result.is_closed`."""
        return all(r.is_closed for r in self._results)

    @property
    def is_conditional(self) -> bool:
        """Whether bounds hold only inside boxes that were chosen; see ``Result.is_conditional``."""
        return any(r.is_conditional for r in self._results)

    @property
    def share_conditional(self) -> float:
        """Share of the fits that are proven the best inside a box that was chosen, only."""
        return sum(r.status is Status.CONDITIONAL for r in self._results) / len(self._results)

    @property
    def claim(self) -> str:
        """What is proven about the fits, such as ``100% of the fits are proven optimal``."""
        text = f"{self.share_proven:.0%} of the fits are proven optimal"
        if self.share_conditional == 0.0:
            return text
        return f"{text}, {self.share_conditional:.0%} the best inside a box that was chosen"

    @property
    def _results(self) -> list[Result]:
        return [r for folds in self.paths for path in folds for r in path.results]

    def best(self, rule: str = "min") -> tuple[float, int]:
        """(alpha, k) of the smallest mean error, or of the simplest model near it.

        "min" takes the smallest mean error. "one-se" takes the smallest k, and for it the alpha of
        least error, whose mean error is within one standard error of that smallest one. One fold
        has no standard error: both rules are the same then.
        """
        require_choice("rule", rule, RULES)
        i, j = np.unravel_index(int(np.argmin(self.mean)), self.mean.shape)
        if rule == "one-se":
            near = self.mean <= self.mean[i, j] + np.nan_to_num(self.standard_error[i, j])
            j = np.flatnonzero(near.any(axis=0))[0]
            i = np.argmin(np.where(near[:, j], self.mean[:, j], np.inf))
        return float(self.alphas[i]), int(self.ks[j])

    def plot(self, ax: Any = None) -> Any:
        """Error against k and alpha (:func:`bestk.plots.cross_validation`); returns the Axes."""
        from bestk.show import plots

        return plots.cross_validation(self, ax=ax)

    def to_html(self, path: Any = None, **options: Any) -> str:
        """One self-contained page, written to `path` if given."""
        from bestk.show import report

        return report.write(report.cv_page(self, **options), path)

    _repr_pretty_ = as_printed

    def _repr_html_(self) -> str:
        from bestk.show import report

        return report.cv_summary(self)

    def __str__(self) -> str:
        lines = [f"{self.measure} over {counted(self.errors.shape[2], 'fold')} (± standard error)"]
        lines += [f"{'k':>4}" + "".join(f"{f'alpha {alpha:g}':>24}" for alpha in self.alphas)]
        for j, k in enumerate(self.ks):
            cells = zip(self.mean[:, j], self.standard_error[:, j], strict=True)
            row = (f"{f'{mean:.6g} ± {error:.2g}':>24}" for mean, error in cells)
            lines.append(f"{k:>4}" + "".join(row))
        for rule in RULES:
            alpha, k = self.best(rule)
            lines.append(f"{rule}: k = {k}, alpha = {alpha:g}")
        return "\n".join([*lines, self.claim])


@dataclass(frozen=True, kw_only=True, eq=False)
class Fold:
    """The moments that a fold trains on, and the error of a model on the rows it holds out.

    Moments of wide data say too little without their ``rows``.
    """

    train: Callable[[], Moments]
    error: Callable[[Result], float]
    rows: Callable[[], Rows | None] = lambda: None

    def problem(self, common: Problem) -> Problem:
        """The rows it trains on, with all that folds have in common."""
        return common.with_moments(self.train(), self.rows())


class _Problems:
    """What each fold trains on, made when it is needed; only the last one is kept."""

    def __init__(self, make: list[Callable[[Problem], Problem]], common: Problem) -> None:
        self._make, self._common = make, common
        self._last: tuple[int, Problem | None] = -1, None

    def __getitem__(self, fold: int) -> Problem:
        number, problem = self._last
        if number != fold or problem is None:
            problem = self._make[fold](self._common)
            self._last = fold, problem
        return problem


def cross_validate(
    folds: Sequence[Fold],
    template: Problem,
    ks: Iterable[int],
    alphas: Iterable[float],
    *,
    asked: Asked,
    settings: Settings,
    n_jobs: int | None,
    measure: str = "mean squared error",
) -> CrossValidation:
    """Path over ks for each alpha and fold; these run in parallel on n_jobs threads.

    The template says all that folds have in common: bounds and feature names.
    """
    sizes, penalties = as_sizes("ks", ks), as_penalties(alphas)
    if asked.has_structure:  # the same for all folds, whatever they are correlated like
        asked = asked.with_structure(structure_asked(template, asked))
        sizes = possible_sizes(template, asked, sizes)
    common = replace(template, rows=None)
    problems = _Problems([fold.problem for fold in folds], common)

    def run(job: tuple[int, float], settings: Settings) -> Path:
        fold, alpha = job
        problem = problems[fold].with_alpha(alpha)
        path = path_of(problem, sizes, asked, settings)
        if path.results[-1].status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if len(path) < len(sizes):
            left_out = sorted(set(sizes) - set(path))
            raise NoModel(
                f"with k = {left_out[0]} no model of fold {fold} (counted from 0) satisfies the "
                "constraints; leave that size out of ks"
            )
        return path

    jobs = [(fold, alpha) for fold in range(len(folds)) for alpha in penalties]
    with one_display(settings, len(jobs) * len(sizes)) as watched:
        found = iter(run_jobs(run, jobs, watched, n_jobs, n_searches=len(sizes)))
    by_fold = [[next(found) for _ in penalties] for _ in folds]
    paths = tuple(zip(*by_fold, strict=True))
    errors = [
        [
            [fold.error(result) for result in path.results]
            for fold, path in zip(folds, row, strict=True)
        ]
        for row in paths
    ]
    unknown = np.argwhere(np.isnan(errors))
    if len(unknown):
        raise ValueError(
            f"the measure ({measure}) is NaN on the held-out rows of fold {unknown[0, 1]} (counted "
            "from 0); choose another scoring, or folds with more rows"
        )
    return CrossValidation(
        ks=np.array(sizes),
        alphas=np.array(penalties),
        errors=np.moveaxis(np.array(errors), 1, 2),
        measure=measure,
        paths=paths,
    )


def cross_validate_batches(
    batches: Iterable[tuple[Any, ...]],
    ks: Iterable[int],
    alphas: Iterable[float],
    *,
    n_folds: int = 5,
    seed: int = 0,
    fit_intercept: bool = True,
    bounds: Any = None,
    n_jobs: int | None = None,
    **options: Any,
) -> tuple[CrossValidation, Problem]:
    """Cross-validation of data that come as batches of rows (X, y) or (X, y, weight), in one pass.

    Rows are dealt out to folds at random. Also returns the problem of all rows, for a final fit.
    """
    asked = Asked.taken_from(options)
    settings = settings_of(options).for_many()
    n_folds = require_count("n_folds", n_folds, least=2)
    seed = require_count("seed", seed, least=0, most=inf)
    require_flag("fit_intercept", fit_intercept)
    wide, checked = joined_if_wide(checked_batches(batches))
    if wide is not None:
        problem, folds = _of_wide(wide, n_folds, seed, fit_intercept, bounds)
    else:
        digest = DataDigest()
        parts, names = moments_of_batches(checked, fit_intercept, n_folds, seed, digest=digest)
        total = sum(parts[1:], start=parts[0])
        problem, folds = _of_sums(total, parts, names, fit_intercept, bounds, str(digest))
    validation = cross_validate(
        folds,
        problem,
        ks,
        alphas,
        asked=asked,
        settings=settings,
        n_jobs=n_jobs,
    )
    return validation, problem


def _of_wide(
    rows: Batch, n_folds: int, seed: int, fit_intercept: bool, bounds: Any
) -> tuple[Problem, list[Fold]]:
    X, y, weight = rows.X, rows.y, rows.weight
    problem = Problem.from_data(
        X, y, bounds=bounds, sample_weight=weight, fit_intercept=fit_intercept,
        feature_names=rows.names,
    )  # fmt: skip
    part = dealt(np.random.default_rng(seed), 0, len(y), n_folds)
    share = np.ones(len(y)) if weight is None else weight
    if min(share[part == j].sum() for j in range(n_folds)) <= 0.0:
        raise ValueError(_TOO_FEW.format(n_folds))

    def error(test: np.ndarray, result: Result) -> float:
        residual = y[test] - result.predict(X[test])
        return float(np.average(residual**2, weights=share[test]))

    splits = [(np.flatnonzero(part != j), np.flatnonzero(part == j)) for j in range(n_folds)]
    return problem, folds_of_data(X, y, weight, splits, fit_intercept, error)[0]


def cross_validate_table(
    table: Table,
    ks: Iterable[int],
    alphas: Iterable[float],
    *,
    n_folds: int = 5,
    seed: int = 0,
    fit_intercept: bool = True,
    bounds: Any = None,
    n_jobs: int | None = None,
    **options: Any,
) -> tuple[CrossValidation, Problem]:
    """:func:`cross_validate_batches` of rows in partitions, which are summed up where they lie."""
    asked = Asked.taken_from(options)
    settings = settings_of(options).for_many()
    n_folds = require_count("n_folds", n_folds, least=2)
    seed = require_count("seed", seed, least=0, most=inf)
    require_flag("fit_intercept", fit_intercept)
    if table.is_wide:
        rows = Batch(0, *table.gathered(), table.names)
        problem, folds = _of_wide(rows, n_folds, seed, fit_intercept, bounds)
    else:
        parts, digest = table.sums_of_folds(fit_intercept, n_folds, seed)
        total = sum(parts[1:], start=parts[0])
        origin = total.moments.shift, total.moments.y_shift
        common = [part.about(*origin) if fit_intercept else part for part in parts]
        sums = [part.sums() for part in common]
        problem, folds = _of_sums(total.sums(), sums, table.names, fit_intercept, bounds, digest)
    validation = cross_validate(
        folds, problem, ks, alphas, asked=asked, settings=settings, n_jobs=n_jobs
    )
    return validation, problem


def _of_sums(
    total: Moments,
    parts: list[Moments],
    names: tuple[str, ...] | None,
    fit_intercept: bool,
    bounds: Any,
    digest: str | None = None,
) -> tuple[Problem, list[Fold]]:
    """The problem of all rows, and folds that are what is left of it without a part."""
    if min(part.weight for part in parts) <= 0:
        raise ValueError(_TOO_FEW.format(len(parts)))

    def centred(moments: Moments) -> Moments:
        return centred_batches(moments) if fit_intercept else moments

    def fold(part: Moments) -> Fold:
        return Fold(
            train=lambda: centred(total - part),
            error=lambda result: part.mean_squared_error(result.coef, result.intercept),
        )

    problem = Problem.from_moments(
        centred(total), bounds=bounds, feature_names=names, digest=digest
    )
    return problem, [fold(part) for part in parts]


def _require_weights(weight: np.ndarray, splits: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
    """Rows to fit, and rows to judge by, need some weight."""
    require_some_weight(weight.sum())
    if any(not weight[rows].sum() > 0.0 for split in splits for rows in split):
        raise ValueError(
            "sample_weight is zero for all rows of a fold, or for all other rows; use fewer folds, "
            "or folds of shuffled rows, such as cv=KFold(5, shuffle=True)"
        )


def _require_rows(splits: Sequence[tuple[np.ndarray, np.ndarray]], n: int) -> None:
    """Rows to fit, and rows to judge by, all of them rows that are there."""
    for i, split in enumerate(splits):
        for rows, use in zip(split, ("fit", "judge the fit by"), strict=True):
            numbers = np.arange(n)[rows] if np.asarray(rows).dtype == bool else np.asarray(rows)
            where = f"cv: fold {i} (counted from 0)"
            if numbers.size == 0:
                raise ValueError(f"{where} has no rows to {use}; leave it out, or give it some")
            if numbers.min() < -n or numbers.max() >= n:
                raise ValueError(
                    f"{where} has row {numbers.max()}, but rows are numbered 0 to {n - 1}; make "
                    "the folds from the rows of X"
                )


def folds_of_data(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    fit_intercept: bool,
    error: Callable[[np.ndarray, Result], float],
) -> tuple[list[Fold], Moments]:
    """(folds, moments of all rows); ``error(rows, result)`` judges a model on held-out rows.

    Where the held-out parts partition the rows, as in k-fold cross-validation, each part is summed
    up once. Other schemes, and columns too large or small to square, sum up their training rows.
    """

    _require_rows(splits, len(y))
    if weight is not None:
        _require_weights(weight, splits)

    def chosen(rows: Any) -> Rows:
        return Rows(X[rows], y[rows], None if weight is None else weight[rows])

    whole = partial(moments_of, X, y, weight, fit_intercept)
    wide = is_wide(*X.shape)

    def fresh(rows: Any) -> Moments:
        data = chosen(rows)
        return moments_of(data.X, data.y, data.weight, fit_intercept, partial=wide)

    if wide:
        folds = [
            Fold(
                train=partial(fresh, train),
                error=partial(error, test),
                rows=partial(chosen, train),
            )
            for train, test in splits
        ]
        return folds, whole()

    tests = np.concatenate([test for _, test in splits])
    partition = len(tests) == len(y) and len(np.unique(tests)) == len(y)
    partition &= all(len(train) + len(test) == len(y) for train, test in splits)
    if partition:
        origin = origin_of(X, y, weight, fit_intercept)
        parts = [
            origin.of_rows(X[test], y[test], None if weight is None else weight[test])
            for _, test in splits
        ]
        total = sum(parts[1:], start=parts[0])
        odd = X[:, total.extreme]
        partition = np.isfinite(total.yy) and bool((odd == odd[:1]).all())  # constants are fine
    if not partition:
        folds = [
            Fold(train=partial(fresh, train), error=partial(error, test)) for train, test in splits
        ]
        return folds, whole()

    def centred(moments: Moments) -> Moments:
        return moments.centred() if fit_intercept else moments

    def complement(i: int) -> Moments:
        rest = centred(total - parts[i])
        return (
            rest if rest.error <= tuning().fold_cancellation * total.error else fresh(splits[i][0])
        )

    folds = [
        Fold(train=partial(complement, i), error=partial(error, test))
        for i, (_, test) in enumerate(splits)
    ]
    return folds, centred(total)
