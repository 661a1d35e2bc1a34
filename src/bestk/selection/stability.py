"""How stable is the choice of features? The best model of many resamples, each with its proof."""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from time import perf_counter, time
from typing import Any

import numpy as np

from bestk.base.collections import is_collection
from bestk.base.settings import Settings, settings_of
from bestk.base.threads import blas_threads, default_threads
from bestk.base.validation import (
    as_matrix,
    as_real,
    as_vector,
    as_weights,
    names_of,
    require_count,
    require_number,
)
from bestk.problem.regression import Regression
from bestk.results.gaps import percent
from bestk.results.progress import Progress, make_progress
from bestk.results.result import Result, Snapshot
from bestk.results.status import Status
from bestk.search.solve import solve_problem
from bestk.selection.jobs import run_jobs
from bestk.selection.resampling import Resampling

# What a table of features and supports shows: more is in the arrays.
_ROWS, _SUPPORTS, _NAMES = 20, 5, 8
_QUANTILES = (0.05, 0.5, 0.95)
# How searches end, those that prove most first.
_FROM_BEST = (Status.PERFECT_FIT, *(each for each in Status if each is not Status.PERFECT_FIT))
# The number of the search on all rows, which resamples are compared with.
_ALL = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenSupport:
    """A set of features that some resamples chose.

    Attributes
    ----------
    support : tuple of int
        Indices of the features, ascending.
    names : tuple of str
    count, share : int, float
        How many of the resamples chose it, and which share of them.
    coef : (m,) array
        Mean of the coefficients on the support over these resamples.
    """

    support: tuple[int, ...]
    names: tuple[str, ...]
    count: int
    share: float
    coef: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Stability:
    """The best models of resampled rows: how often is each feature, and each support, chosen?

    Arrays have one entry, or row, for each of the ``n_done`` resamples that were searched. All of
    them are, unless a limit, the callback or Ctrl-C came first.

    Attributes
    ----------
    k, alpha : int, float
        Largest number of features and ridge penalty that were asked for.
    n_resamples : int
        How many resamples were asked for.
    names : tuple of str
        Names of all features; x0, x1, ... where the data had none.
    model : Result
        The best model of all rows, not resampled, with its proof.
    numbers : (n_done,) int array
        Which resamples were searched: 0, 1, ... if none was left out.
    chosen : (n_done, p) bool array
        Whether a model has a feature.
    coefs, intercepts : (n_done, p) and (n_done,) arrays
        The models; coefficients are zero where a feature is not chosen.
    objectives, lower_bounds, gaps : (n_done,) arrays
        What was found, what was proven, and the relative difference.
    statuses : tuple of Status
        Why each search ended.
    seconds : float
        Wall-clock time of all searches together.
    resampling : Resampling
        How rows were drawn; :meth:`weights` are those of one resample.
    sample_weight : (n,) array or None
        Weights of the rows, as given.
    ended : Status or None
        Why resamples were left out; None if none was.
    """

    k: int
    alpha: float
    names: tuple[str, ...] = field(repr=False)
    model: Result = field(repr=False)
    numbers: np.ndarray = field(repr=False)
    chosen: np.ndarray = field(repr=False)
    coefs: np.ndarray = field(repr=False)
    intercepts: np.ndarray = field(repr=False)
    objectives: np.ndarray = field(repr=False)
    lower_bounds: np.ndarray = field(repr=False)
    gaps: np.ndarray = field(repr=False)
    statuses: tuple[Status, ...] = field(repr=False)
    seconds: float
    resampling: Resampling
    sample_weight: np.ndarray | None = field(default=None, repr=False)
    ended: Status | None = None

    @property
    def n_resamples(self) -> int:
        return len(self.resampling)

    @property
    def n_done(self) -> int:
        """How many resamples were searched."""
        return len(self.numbers)

    @property
    def frequencies(self) -> np.ndarray:
        """(p,) share of the searched resamples whose model has the feature."""
        return self.chosen.mean(axis=0)

    @property
    def supports(self) -> tuple[ChosenSupport, ...]:
        """The different supports, the most frequent first."""
        found: dict[tuple[int, ...], list[int]] = {}
        for i, row in enumerate(self.chosen):
            found.setdefault(tuple(np.flatnonzero(row).tolist()), []).append(i)
        listed = [
            ChosenSupport(
                support=support,
                names=tuple(self.names[j] for j in support),
                count=len(rows),
                share=len(rows) / self.n_done,
                coef=self.coefs[np.ix_(rows, support)].mean(axis=0),
            )
            for support, rows in found.items()
        ]
        return tuple(sorted(listed, key=lambda each: (-each.count, each.support)))

    @property
    def proven(self) -> int:
        """How many of the models are proven optimal."""
        return sum(status in (Status.OPTIMAL, Status.PERFECT_FIT) for status in self.statuses)

    @property
    def conditional(self) -> int:
        """How many are proven the best inside a box that was chosen, only."""
        return sum(status is Status.CONDITIONAL for status in self.statuses)

    @property
    def is_proven(self) -> bool:
        """Whether all resamples were searched, and every model is proven optimal."""
        return self.proven == self.n_resamples

    @property
    def is_closed(self) -> bool:
        """Whether all were searched to their end; see :attr:`Result.is_closed`."""
        return self.proven + self.conditional == self.n_resamples

    @property
    def status(self) -> Status:
        """Why resamples were left out, or else how the least proven of the searches ended."""
        if self.ended is not None:
            return self.ended
        return max(self.statuses, key=_FROM_BEST.index)

    @property
    def claim(self) -> str:
        """What is proven, such as ``100 of 100 resamples searched, 100 proven optimal``."""
        text = f"{self.n_done} of {self.n_resamples} resamples searched, {self.proven} "
        text += "proven optimal"
        if self.conditional:
            text += f", {self.conditional} the best inside a box that was chosen"
        still_open = self.n_done - self.proven - self.conditional
        if still_open:
            text += f", {still_open} with a gap of at most {percent(self.gaps.max())}"
        return text if self.ended is None else f"{text}; ended by: {self.ended}"

    @property
    def resampled_alpha(self) -> float:
        """The ridge penalty of the resamples: `alpha` times their share of the rows."""
        return self.alpha * self.resampling.share

    def weights(self, number: int) -> np.ndarray:
        """(n,) weights of the rows in one resample: its counts, times the weights given.

        With these and :attr:`resampled_alpha`, :func:`bestk.solve` repeats a search of
        :attr:`numbers`, say to keep its certificate.
        """
        number = require_count("number", number, least=0)
        if number >= self.n_resamples:
            raise ValueError(f"number must be below n_resamples = {self.n_resamples}, got {number}")
        return _weighted(self.resampling.counts(number), self.sample_weight)

    def selected(self, threshold: float = 0.6) -> np.ndarray:
        """Indices, ascending, of the features that at least this share of the models has."""
        return np.flatnonzero(self.frequencies >= as_threshold(threshold))

    def coefficient_quantiles(self, q: Any = _QUANTILES) -> np.ndarray:
        """Quantiles of each coefficient over resamples; it is zero where a feature is not chosen.

        `q` is a number between 0 and 1, which gives (p,), or m of them, which give (m, p).
        """
        levels = as_real("q", q).astype(np.float64)
        if levels.ndim > 1 or not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError(f"q must be a number between 0 and 1, or a list of them; got {q!r}")
        return np.quantile(self.coefs, levels, axis=0)

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each feature, the most frequent first.

        Columns are ``frequency``, ``in_model`` (has the model of all rows the feature?), ``coef``
        (mean of the coefficient where it is chosen, NaN if it never is) and quantiles of it over
        all resamples, ``q05``, ``median`` and ``q95``.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError('to_frame needs pandas: pip install "bestk[io]"') from error
        in_model = np.isin(np.arange(len(self.names)), self.model.support)
        columns = {
            "frequency": self.frequencies,
            "in_model": in_model,
            "coef": self._means_if_chosen(),
            **dict(zip(("q05", "median", "q95"), self.coefficient_quantiles(), strict=True)),
        }
        frame = pd.DataFrame(columns, index=pd.Index(self.names, name="feature"))
        return frame.iloc[self._ranked()]

    def _ranked(self) -> np.ndarray:
        """Features, the most frequent first, in their order where they tie."""
        return np.argsort(-self.frequencies, kind="stable")

    def _means_if_chosen(self) -> np.ndarray:
        counts = self.chosen.sum(axis=0)
        sums = np.where(self.chosen, self.coefs, 0.0).sum(axis=0)
        return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)

    def __str__(self) -> str:
        lines = [
            f"bestk: stability of the best {self.k} of {len(self.names)} features, "
            f"{self.n_resamples} resamples ({self.resampling.kind})",
            self.claim,
        ]
        lines += self._feature_lines() + self._support_lines()
        return "\n".join(lines)

    def _feature_lines(self) -> list[str]:
        ever = [j for j in self._ranked() if self.frequencies[j] > 0.0]
        if not ever:
            return ["no feature is ever chosen"]
        shown, means, quantiles = (
            ever[:_ROWS],
            self._means_if_chosen(),
            self.coefficient_quantiles(),
        )
        width = max(7, *(len(self.names[j]) for j in shown))
        heads = f"{'chosen':>8}{'if chosen':>13}{'5%':>13}{'median':>13}{'95%':>13}"
        lines = [f"  {'feature':<{width}}{heads}  (* in the model of all rows)"]
        for j in shown:
            values = "".join(f"{value:>13.5g}" for value in (means[j], *quantiles[:, j]))
            mark = "  *" if j in self.model.support else ""
            lines.append(f"  {self.names[j]:<{width}}{self.frequencies[j]:>8.1%}{values}{mark}")
        more = len(ever) - len(shown)
        return [*lines, f"  ... and {more} more"] if more else lines

    def _support_lines(self) -> list[str]:
        supports = self.supports
        lines = [f"{len(supports)} different support{'' if len(supports) == 1 else 's'}"]
        own = tuple(self.model.support.tolist())
        for each in supports[:_SUPPORTS]:
            names = ", ".join(each.names[:_NAMES]) or "no features"
            names += ", ..." if len(each.names) > _NAMES else ""
            lines.append(f"  {each.share:>6.1%}  {names}{'  *' if each.support == own else ''}")
        more = len(supports) - _SUPPORTS
        return [*lines, f"  ... and {more} more"] if more > 0 else lines


def stability(
    X: Any,
    y: Any,
    k: int,
    *,
    n_resamples: int = 100,
    resample: str = "bootstrap",
    fraction: float = 0.5,
    block_length: int | None = None,
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
    feature_names: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    **options: Any,
) -> Stability:
    """How often is each feature, and each support, in the best model of resampled rows?

    Every resample is a problem of its own, with counts as weights of the rows, and its best model
    with at most k features is proven to be that, as by :func:`bestk.solve`. So what varies is the
    data, never the luck of a search.

    Parameters
    ----------
    X, y, k, alpha, bounds, include, exclude, free, groups, rules, constraints, fit_intercept
        As in :func:`bestk.solve`; X and y are in memory. ``bounds="auto"`` chooses a box for each
        resample. Of columns that are copies of each other, rounding may decide which one a model
        has: their frequencies add up, so keep one of them.
    n_resamples : int
        How many resamples to draw.
    resample : {"bootstrap", "subsample", "block"}
        "bootstrap" draws n rows with replacement. "subsample" draws a `fraction` of the rows
        without replacement; ``alpha`` is multiplied by the same fraction, so that the penalty stays
        the same beside the data. "block" is for time series, whose rows come in order: the circular
        block bootstrap draws blocks of `block_length` consecutive rows, n rows in all, where the
        first row follows the last one.
    fraction : float
        Share of the rows for "subsample", between 0 and 1.
    block_length : int or None
        Rows of a block for "block"; by default the cube root of n, rounded.
    sample_weight : (n,) array or None
        Nonnegative weights of the squared residuals; counts are multiplied by them. Rows are
        equally likely to be drawn, whatever their weight.
    feature_names : p strings, or None
        Those of the data frame by default.
    random_state : int, numpy.random.Generator or None
        The same number gives the same resamples and the same answer, whatever the number of
        threads. None gives others each time.
    n_threads : int or None
        Resamples that are searched side by side, each on one thread; None means all cores.
    **options
        Any other option of :func:`bestk.solve`, except `checkpoint`. ``time_limit`` is for all
        resamples together: those that have not begun by then are left out, and those that are
        running keep the model they have and their gap. At least one is begun. Other limits hold for
        each search. A callback that returns true, or Ctrl-C, ends all searches alike. With a
        client, each resample is a call of a worker.

    Returns
    -------
    Stability
        Frequencies of features and supports, the models themselves, and how many are proven.

    Examples
    --------
    >>> import bestk
    >>> X, y, coef = bestk.datasets.make_synthetic(200, 30, k=3, rho=0.5)
    >>> found = bestk.stability(X, y, k=3, n_resamples=20, random_state=0)
    >>> found.proven, found.selected(0.9).tolist()
    (20, [0, 10, 20])
    """
    started, begun = perf_counter(), time()
    first = options.pop("initial_support", None)
    settings = settings_of({"n_threads": n_threads, **options}).for_many()
    k = require_count("k", k, least=0)
    if is_collection(X):
        raise TypeError(
            "X must be in memory, because its rows are drawn at random; pass X.compute() "
            "and y.compute()"
        )
    names, X = feature_names or names_of(X), as_matrix("X", X)
    y = as_vector("y", y, length=X.shape[0], of="rows of X")
    weight = as_weights(sample_weight, X.shape[0])
    if len(y) == 0:
        raise ValueError("X has no rows to draw from; pass at least one")
    resampling = Resampling.of(
        len(y),
        n_resamples,
        resample=resample,
        fraction=fraction,
        block_length=block_length,
        random_state=random_state,
    )
    search = _Search(
        X=X,
        y=y,
        weight=weight,
        resampling=resampling,
        k=k,
        alpha=require_number("alpha", alpha, least=0.0),
        common={"bounds": bounds, "fit_intercept": fit_intercept, "feature_names": names},
        choices={
            "include": include,
            "exclude": exclude,
            "free": free,
            "groups": groups,
            "rules": rules,
            "constraints": constraints,
            "initial_support": first,
        },
        deadline=np.inf if settings.time_limit is None else begun + settings.time_limit,
    )
    # All searches start from the same support, whoever comes first: a seed decides everything.
    start = search.first_model(settings.on_one_thread())
    if start.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    search = replace(search, choices={**search.choices, "initial_support": start.support})
    numbers = [_ALL, *range(len(resampling))]
    with _one_display(settings) as watched:
        if settings.client is None:
            found, ended = _on_threads(search, numbers, watched)
        else:
            found, ended = _on_cluster(search, numbers, watched)
    model = found.pop(_ALL, start)
    results = [found[number] for number in sorted(found)]
    return Stability(
        k=k,
        alpha=search.alpha,
        names=tuple(model.name(j) for j in range(X.shape[1])),
        model=model,
        numbers=np.array(sorted(found)),
        chosen=np.array([np.isin(np.arange(X.shape[1]), r.support) for r in results]),
        coefs=np.array([r.coef for r in results]),
        intercepts=np.array([r.intercept for r in results]),
        objectives=np.array([r.objective for r in results]),
        lower_bounds=np.array([r.lower_bound for r in results]),
        gaps=np.array([r.gap for r in results]),
        statuses=tuple(r.status for r in results),
        seconds=perf_counter() - started,
        resampling=resampling,
        sample_weight=weight,
        ended=ended if len(results) < len(resampling) else None,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """The search of any one resample: depends on nothing but its number, and may run anywhere.

    The deadline is on the clock of the wall, which other machines have, too.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    resampling: Resampling
    k: int
    alpha: float
    common: dict[str, Any]
    choices: dict[str, Any]
    deadline: float

    def __call__(self, number: int, settings: Settings) -> Result | None:
        """The best model of a resample, or of all rows; None if it is too late to begin."""
        left = self.deadline - time()
        if left <= 0.0 and number > 0:  # the first resample always has a model
            return None
        if number != _ALL:  # proofs that nobody asks for would fill the memory
            settings = replace(settings, advanced=replace(settings.advanced, record=False))
        if np.isfinite(left):
            settings = replace(settings, time_limit=max(left, 0.0))
        return solve_problem(self.problem(number), self.k, **self.choices, **settings.as_options())

    def problem(self, number: int) -> Regression:
        """The regression of a resample, or of all rows."""
        if number == _ALL:
            X, y, weight, alpha = self.X, self.y, self.weight, self.alpha
        else:
            weight = _weighted(self.resampling.counts(number), self.weight)
            # Rows that are not there neither cost time nor have a say in how y is scaled.
            rows = np.flatnonzero(weight > 0.0)
            rows = rows if len(rows) else np.zeros(1, dtype=np.intp)  # one that has no weight
            X, y, weight = self.X[rows], self.y[rows], weight[rows]
            alpha = self.alpha * self.resampling.share
        return Regression.from_data(
            X, y, alpha=alpha, sample_weight=weight, n_threads=1, **self.common
        )

    def first_model(self, settings: Settings) -> Result:
        """A good model of all rows, without a proof; says what is wrong with any argument."""
        quick = replace(settings, node_limit=0, progress=None, callback=None, client=None)
        found = self(_ALL, replace(quick, device="cpu"))
        assert found is not None
        return found


def _on_threads(
    search: _Search, numbers: Sequence[int], settings: Settings
) -> tuple[dict[int, Result], Status | None]:
    """Results by number, and what ended the searches before the last one, if anything did.

    Searches are on threads even if there is one at a time: Ctrl-C comes to the thread that waits.
    """
    found: dict[int, Result] = {}
    stop, asked = Event(), settings.callback

    def is_over(snapshot: Snapshot) -> bool:
        if asked is not None and not stop.is_set() and asked(snapshot):
            stop.set()
        return stop.is_set()

    alone = replace(settings.on_one_thread(), callback=is_over)

    def run(number: int) -> None:
        # All rows and the first resample always have a model: a stop ends them as they begin.
        result = search(number, alone) if number <= 0 or not stop.is_set() else None
        if result is not None:
            found[number] = result
            if result.status is Status.INTERRUPTED:  # by whoever watches it
                raise KeyboardInterrupt

    ended: Status | None = None
    n_threads = min(settings.n_threads or default_threads(), len(numbers))
    with blas_threads(1), ThreadPoolExecutor(n_threads) as pool:
        try:
            jobs = [pool.submit(run, number) for number in numbers]
            for job in wait(jobs, return_when=FIRST_EXCEPTION).done:
                job.result()
        except KeyboardInterrupt:
            ended = Status.INTERRUPTED
        finally:
            is_stopped = stop.is_set()
            stop.set()  # after an error or Ctrl-C, those in flight end soon with what they have
    if ended is Status.INTERRUPTED and not is_stopped:
        found = {i: _interrupted(result) for i, result in found.items()}
    elif len(found) < len(numbers):
        ended = Status.STOPPED if is_stopped else Status.TIME_LIMIT
    return found, ended


def _interrupted(result: Result) -> Result:
    """Ctrl-C has stopped a search where a callback seems to have done so."""
    if result.status is not Status.STOPPED:
        return result
    return replace(result, status=Status.INTERRUPTED)


def _on_cluster(
    search: _Search, numbers: Sequence[int], settings: Settings
) -> tuple[dict[int, Result], Status | None]:
    """The same by the workers of a client, each with the data."""
    answers = run_jobs(search, numbers, settings, None)
    found = {i: answer for i, answer in zip(numbers, answers, strict=True) if answer is not None}
    return found, Status.TIME_LIMIT if len(found) < len(numbers) else None


@contextmanager
def _one_display(settings: Settings) -> Iterator[Settings]:
    """``progress=True`` shows one display for all searches, not one for each."""
    if settings.progress is not True:
        yield settings
        return
    display = make_progress(True)
    try:
        yield replace(settings, progress=_Shown(display))
    finally:
        display.close()


class _Shown:
    """A display that stays open when a search ends."""

    def __init__(self, display: Progress) -> None:
        self._display = display

    def update(self, snapshot: Snapshot) -> None:
        self._display.update(snapshot)

    def close(self) -> None:
        pass


def _weighted(counts: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return counts if weight is None else counts * weight


def as_threshold(value: Any) -> float:
    """A share of resamples, above 0 and at most 1."""
    value = require_number("threshold", value, least=0.0)
    if not 0.0 < value <= 1.0:
        raise ValueError(f"threshold must be above 0 and at most 1, such as 0.6; got {value:g}")
    return value
