"""The searches of all resamples, on threads or on a cluster."""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Event
from time import time
from typing import Any

import numpy as np

from bestk.base.settings import Settings
from bestk.base.threads import blas_threads, default_threads
from bestk.problem.regression import Regression
from bestk.results.result import Result, Snapshot
from bestk.results.status import Status
from bestk.search.solve import solve_problem
from bestk.selection.jobs import run_jobs
from bestk.selection.stability.resampling import Resampling, weighted

# The number of the search on all rows, which resamples are compared with.
ALL = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class ResampleSearch:
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
        if number != ALL:  # proofs that nobody asks for would fill the memory
            settings = replace(settings, advanced=replace(settings.advanced, record=False))
        if np.isfinite(left):
            settings = replace(settings, time_limit=max(left, 0.0))
        return solve_problem(self.problem(number), self.k, **self.choices, **settings.as_options())

    def problem(self, number: int) -> Regression:
        """The regression of a resample, or of all rows."""
        if number == ALL:
            X, y, weight, alpha = self.X, self.y, self.weight, self.alpha
        else:
            weight = weighted(self.resampling.counts(number), self.weight)
            # Rows that are not there neither cost time nor have a say in how y is scaled.
            rows = np.flatnonzero(weight > 0.0)
            X, y, weight = self.X[rows], self.y[rows], weight[rows]
            if not len(rows):  # nothing to fit
                X, y, weight = np.zeros((1, X.shape[1])), np.zeros(1), np.ones(1)
            alpha = self.alpha * self.resampling.share
        return Regression.from_data(
            X, y, alpha=alpha, sample_weight=weight, n_threads=1, **self.common
        )

    def first_model(self, settings: Settings) -> Result:
        """A good model of all rows, without a proof; says what is wrong with any argument."""
        quick = replace(settings, node_limit=0, progress=None, callback=None, client=None)
        found = self(ALL, replace(quick, device="cpu"))
        assert found is not None
        return found


def on_threads(
    search: ResampleSearch, numbers: Sequence[int], settings: Settings
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


def on_cluster(
    search: ResampleSearch, numbers: Sequence[int], settings: Settings
) -> tuple[dict[int, Result], Status | None]:
    """The same by the workers of a client, each with the data."""
    answers = run_jobs(search, numbers, settings, None)
    found = {i: answer for i, answer in zip(numbers, answers, strict=True) if answer is not None}
    return found, Status.TIME_LIMIT if len(found) < len(numbers) else None
