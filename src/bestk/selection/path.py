"""The best model of every size, each with its own proof."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from bestk.base.cluster.client import client_for
from bestk.base.settings import Settings, settings_of
from bestk.base.validation import require_count
from bestk.choices.run import Prepared, solve_prepared
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression
from bestk.results.interactive import as_printed
from bestk.results.progress import one_display
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.search.automatic_box import boxed, in_box
from bestk.search.lessons import Lessons
from bestk.search.run import small_blas, solve_presolved
from bestk.selection.shared_enumeration import shortlists
from bestk.structure.asked import Asked
from bestk.structure.compose import NoModel


@dataclass(frozen=True, eq=False)
class Path(Mapping[int, Result]):
    """A mapping from k to the :class:`Result` for at most k features, k ascending.

    >>> import bestk
    >>> X, y, _ = bestk.datasets.make_synthetic(200, 30, k=3, rho=0.5)
    >>> path = bestk.solve_path(X, y, ks=range(1, 6))
    >>> path.best("ebic").support.tolist(), len(path[2].support)
    ([0, 10, 20], 2)
    """

    results: tuple[Result, ...]

    def __getitem__(self, k: int) -> Result:
        for result in self.results:
            if result.k == k:
                return result
        sizes = ", ".join(str(size) for size in self)
        raise KeyError(f"there is no model of size k = {k!r}; sizes of this path are {sizes}")

    def __iter__(self) -> Iterator[int]:
        return (result.k for result in self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def ks(self) -> np.ndarray:
        return np.array([result.k for result in self.results])

    @property
    def objectives(self) -> np.ndarray:
        return np.array([result.objective for result in self.results])

    @property
    def lower_bounds(self) -> np.ndarray:
        return np.array([result.lower_bound for result in self.results])

    @property
    def gaps(self) -> np.ndarray:
        return np.array([result.gap for result in self.results])

    @property
    def coefs(self) -> np.ndarray:
        """(len(path), p) coefficients, one row per k."""
        return np.array([result.coef for result in self.results])

    @property
    def is_proven(self) -> bool:
        return all(result.is_proven for result in self.results)

    @property
    def is_closed(self) -> bool:
        """Whether every search came to its end; see :attr:`Result.is_closed`."""
        return all(result.is_closed for result in self.results)

    @property
    def is_conditional(self) -> bool:
        """Whether bounds hold only inside a box that was chosen; see ``Result.is_conditional``."""
        return any(result.is_conditional for result in self.results)

    def scores(self, criterion: str = "aicc") -> np.ndarray:
        """AICc, BIC or EBIC of each model; see :meth:`Result.criterion`."""
        return np.array([result.criterion(criterion) for result in self.results])

    def best(self, criterion: str = "aicc") -> Result:
        """The model with the smallest criterion, the smaller k where two tie."""
        return self.results[int(np.argmin(self.scores(criterion)))]

    def plot(self, ax: Any = None, criterion: str | None = None) -> Any:
        """Objective and bound against k (:func:`bestk.plots.path`); returns the Axes."""
        from bestk.show import plots

        return plots.path(self, ax=ax, criterion=criterion)

    def to_html(self, path: Any = None, **options: Any) -> str:
        """One self-contained page (:func:`bestk.report.path_page`), written to `path` if given."""
        from bestk.show import report

        return report.write(report.path_page(self, **options), path)

    _repr_pretty_ = as_printed

    def _repr_html_(self) -> str:
        from bestk.show import report

        return report.path_summary(self)

    def __str__(self) -> str:
        known = all(result.n_samples is not None for result in self.results)
        heads = f"{'k':>4} {'objective':>13} {'gap':>9} {'R²':>8}"
        lines = [heads + (f" {'AICc':>10} {'BIC':>10}" if known else "") + "  status, features"]
        for result in self.results:
            names = ", ".join(result.names[:6]) + (", ..." if len(result.names) > 6 else "")
            line = f"{result.k:>4} {result.objective:>13.7g} {result.gap:>9.2g} {result.r2:>8.4f}"
            if known:
                line += f" {result.criterion('aicc'):>10.2f} {result.criterion('bic'):>10.2f}"
            lines.append(f"{line}  {result.status}: {names or 'no feature'}")
        return "\n".join(lines)


def solve_path(
    X: Any,
    y: Any,
    ks: Iterable[int] = range(1, 11),
    *,
    alpha: float = 0.0,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    free: Any = None,
    groups: Any = None,
    rules: Any = None,
    constraints: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    n_threads: int | None = None,
    device: str = "cpu",
    client: Any = None,
    **options: Any,
) -> Path:
    """Best models ``min ||y - X b||^2 + alpha ||b||^2`` with at most k nonzeros, for every k of ks.

    One Gram matrix and one factorisation serve all sizes, and each size starts from the model of
    the size before.

    Parameters
    ----------
    X, y, alpha, bounds, include, exclude, free, groups, rules, constraints, sample_weight, \
    fit_intercept, n_threads, device, client
        As in :func:`bestk.solve`. ``bounds="auto"`` chooses one box for all sizes, from a model of
        the largest.
    ks : iterable of int
        Sizes; solved in ascending order.
    **options
        Any other option of :func:`bestk.solve`. Limits hold for each k, not for the sum.

    Returns
    -------
    Path
        A mapping from k to Result, with information criteria, plots and a report.
    """
    client = client_for(X, client)
    settings = settings_of(
        {"n_threads": n_threads, "device": device, "client": client, **options}
    ).for_many()
    sizes = as_sizes("ks", ks)
    problem = Regression.from_data(
        X,
        y,
        alpha=alpha,
        bounds=bounds,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        n_threads=n_threads,
        device=device,
        client=client,
    )
    asked = Asked(
        include=include,
        exclude=exclude,
        free=free,
        groups=groups,
        rules=rules,
        constraints=constraints,
    )
    return path_of(problem, sizes, asked, settings)


def path_of(
    problem: Regression,
    ks: list[int],
    asked: Asked,
    settings: Settings,
    guess: np.ndarray | None = None,
) -> Path:
    """The path of a problem that is already there; a guess of the features gives a good start."""
    results: list[Result] = []
    with small_blas(problem, settings), one_display(settings, len(ks)) as settings:
        if asked.has_structure:
            return _structured(problem, ks, asked, settings)
        presolved = Presolved.of(problem, asked.include, asked.exclude, asked.free)
        guesses = [] if guess is None else [guess]
        known = [each for each in guesses if presolved.counted(each) <= ks[-1]]
        presolved, found = boxed(presolved, ks[-1], known, settings)
        lessons = Lessons(presolved.form)
        for k in ks:
            starts = [results[-1].support] if results else []
            starts += [each for each in guesses + found if presolved.counted(each) <= k]
            result = solve_presolved(
                presolved, k, starts, settings, perf_counter(), lessons=lessons
            )
            results.append(result)
            if results[-1].status is Status.INTERRUPTED:
                break
    return Path(tuple(results))


def _structured(problem: Regression, ks: list[int], asked: Asked, settings: Settings) -> Path:
    """Sizes count groups; each starts from the model of the size before.

    Sizes with which nothing can be satisfied are left out, unless all are.
    """
    prepared, results = Prepared.of(problem, asked), list[Result]()
    for k in ks:
        starts = [results[-1].chosen] if results else []
        try:
            results.append(solve_prepared(prepared, k, starts, settings, perf_counter()))
        except NoModel:
            if k == ks[-1] and not results:
                raise
            continue  # so few groups satisfy nothing
        if results[-1].status is Status.INTERRUPTED:
            break
    return Path(tuple(results))


def grid_of(
    problem: Regression,
    ks: list[int],
    alphas: list[float],
    asked: Asked,
    settings: Settings,
) -> dict[float, Path]:
    """Paths of one problem for ascending ridge penalties.

    Sizes are the outer loop: one enumeration may serve a size for all penalties.
    """
    results: list[list[Result]] = [[] for _ in alphas]
    choices = asked.include, asked.exclude, asked.free
    with (
        small_blas(problem, settings),
        one_display(settings, len(ks) * len(alphas)) as settings,
    ):
        if asked.has_structure:
            return {a: path_of(problem.with_alpha(a), ks, asked, settings) for a in alphas}
        first = Presolved.of(problem.with_alpha(alphas[0]), *choices)
        first, found = boxed(first, ks[-1], [], settings)
        # One box, in standard units, for all penalties: a larger penalty never allows more.
        others = [in_box(problem.with_alpha(alpha), first.problem.box) for alpha in alphas[1:]]
        problems = [first, *(Presolved.of(other, *choices) for other in others)]
        lessons = [Lessons(presolved.form) for presolved in problems]
        for k in ks:
            started = perf_counter()
            starts = [[row[-1].support] if row else [] for row in results]
            starts[0] += [each for each in found if first.counted(each) <= k]
            try:
                listed = shortlists(problems, k, starts, settings, lessons)
            except KeyboardInterrupt:
                results[0].append(_first_model(problems[0], k, starts[0], settings, started))
                return _paths(alphas, results)
            for i, presolved in enumerate(problems):
                similar = [results[i - 1][-1].support] if i else []
                result = solve_presolved(
                    presolved, k, starts[i] + similar, settings, started,
                    lessons=lessons[i], shortlist=listed[i],
                )  # fmt: skip
                results[i].append(result)
                started = perf_counter()
                if result.status is Status.INTERRUPTED:
                    return _paths(alphas, results)
    return _paths(alphas, results)


def _first_model(presolved, k, starts, settings, started) -> Result:
    """What an interrupted search can give at once."""
    result = solve_presolved(presolved, k, starts, replace(settings, time_limit=0.0), started)
    return replace(result, status=Status.INTERRUPTED)


def _paths(alphas: list[float], results: list[list[Result]]) -> dict[float, Path]:
    return {alpha: Path(tuple(row)) for alpha, row in zip(alphas, results, strict=True) if row}


def as_sizes(name: str, ks: Any) -> list[int]:
    """Ascending unique sizes."""
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        end = ks + 1 if isinstance(ks, int) else 11
        raise TypeError(f"{name} must be several sizes, such as range(1, {end}); got {ks!r}")
    sizes = sorted({require_count(f"each of {name}", k, least=0) for k in ks})
    if not sizes:
        raise ValueError(f"{name} must hold at least one size, such as range(1, 6); it is empty")
    return sizes
