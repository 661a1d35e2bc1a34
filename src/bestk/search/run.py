"""One search: from a presolved problem to a result with its certificate."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter

import numpy as np

from bestk.base.dense import open_dense
from bestk.base.fingerprint import fingerprint
from bestk.base.settings import Settings
from bestk.base.threads import Workers, blas_threads, default_threads
from bestk.base.tuning import tuning
from bestk.devices.opening import open_device
from bestk.form.on_device import DeviceWork, dense_work_on, device_in_use
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression
from bestk.results.assumptions import assumptions_of
from bestk.results.certificate import Certificate
from bestk.results.gaps import relative_gap
from bestk.results.progress import make_progress
from bestk.results.result import Result, Snapshot
from bestk.results.status import Status
from bestk.search.automatic_box import at_bounds
from bestk.search.checkpoint import Checkpoint, Writer
from bestk.search.lessons import Lessons
from bestk.search.tree import Tree
from bestk.subtrees.recorder import Recorder
from bestk.supports.enumeration import Shortlist
from bestk.supports.incumbent import Incumbent

HISTORY = np.dtype([("seconds", "f8"), ("nodes", "i8"), ("incumbent", "f8"), ("bound", "f8")])
# A share of an objective that is not told from rounding.
_ROUNDING = 1e-9


@contextmanager
def small_blas(problem: Regression, settings: Settings) -> Iterator[None]:
    """BLAS uses one thread, or for large problems those of the settings, and the device if any."""
    few = 1 if problem.moments.is_small else None
    device = None
    if settings.device != "cpu" and problem.n_features >= tuning().device_factors:
        device = DeviceWork(open_dense(settings.device))
    with blas_threads(few or settings.n_threads or default_threads()), dense_work_on(device):
        yield


def solve_presolved(
    presolved: Presolved,
    k: int,
    starts: Sequence[np.ndarray],
    settings: Settings,
    started: float,
    *,
    lessons: Lessons | None = None,
    shortlist: Shortlist | None = None,
    saved: Checkpoint | None = None,
) -> Result:
    """One search from known supports; BLAS threads are the caller's business.

    What other searches of the same presolved problem found out is in `lessons`, to which this one
    adds. With a shortlist there is nothing left to search.
    """
    problem, include = presolved.problem, presolved.include
    if len(include) > k:
        raise ValueError(f"include names {len(include)} features, but k = {k}; raise k")
    lessons = lessons or Lessons(presolved.form)
    incumbent = Incumbent(problem, lessons.fits)
    incumbent.offer(presolved.required)
    for support in starts:
        incumbent.offer(np.union1d(support, presolved.required))
    history: list[tuple[float, int, float, float]] = []
    size = presolved.size(k)
    for support in shortlist.supports if shortlist else []:
        incumbent.offer(support)
    progress = make_progress(settings.progress)
    try:
        if size <= 0 or (shortlist and incumbent.objective <= shortlist.floor):
            bound, status, n_nodes = incumbent.objective, Status.OPTIMAL, 0
            recorder = Recorder(settings.record_limit)
            recorder.close_by_enumeration(0)
            engine = Workers(settings.n_threads).words
        else:
            writer = None if settings.checkpoint is None else Writer(settings, presolved, k)
            device, cluster = open_device(settings.device), settings.cluster()
            with Workers(settings.n_threads, device, cluster) as pool:
                tree = Tree(
                    presolved, size, incumbent, lessons, settings, pool, progress, started, writer
                )
                if saved is not None:
                    tree.restore(saved.parts)
                status = tree.run()
            bound, n_nodes, history = tree.space.lower_bound, tree.space.n_nodes, tree.watch.history
            started = tree.watch.started
            recorder, engine = tree.space.recorder, _engine(pool)
    finally:
        progress.close()
    return concluded(
        presolved,
        k,
        incumbent,
        bound,
        status,
        n_nodes,
        history,
        recorder,
        settings,
        started,
        engine,
    )


def _engine(pool: Workers) -> str:
    """What did the work, in words, and what a device could not do."""
    device = device_in_use()
    return f"{pool.words} ({device.failure})" if device and device.failure else pool.words


def _certain(incumbent: Incumbent) -> float:
    """The incumbent's objective, or what is certain of it where that is mostly rounding."""
    problem, objective = incumbent.problem, incumbent.objective
    least = problem.least_objective(incumbent.support, incumbent.coef, objective)
    return objective if least >= (1.0 - _ROUNDING) * objective else least


def concluded(
    presolved, k, incumbent, bound, status, n_nodes, history, recorder, settings, started, engine
) -> Result:
    """What a search has found and proven, as users see it; no more than rounding allows."""
    problem = presolved.problem
    searched, bound = bound, min(bound, _certain(incumbent))
    gap = relative_gap(incumbent.objective, bound, problem.yy)
    if gap <= settings.gap_tol:
        status = Status.OPTIMAL
    elif status is Status.OPTIMAL and bound < searched and gap > _ROUNDING:
        status = Status.NUMERICAL_LIMIT
    if status is Status.OPTIMAL and problem.box is not None:
        status = Status.CONDITIONAL
    coef = np.zeros(problem.n_features)
    coef[incumbent.support] = incumbent.coef
    seconds = perf_counter() - started
    end = Snapshot(
        seconds=seconds,
        n_nodes=n_nodes,
        n_open=0,
        objective=incumbent.objective,
        lower_bound=min(bound, incumbent.objective),
        yy=problem.yy,
    )
    history = [*history, (seconds, n_nodes, end.objective, end.lower_bound)]
    result = Result(
        k=k,
        alpha=problem.alpha,
        coef=coef,
        intercept=float(problem.moments.y_shift - problem.moments.shift @ coef),
        support=np.union1d(incumbent.support, presolved.include),
        objective=end.objective,
        lower_bound=end.lower_bound,
        gap=end.gap,
        explained_gap=end.explained_gap,
        status=status,
        n_nodes=n_nodes,
        seconds=seconds,
        yy=problem.yy,
        n_samples=problem.n_samples,
        fit_intercept=problem.fit_intercept,
        feature_names=problem.feature_names,
        settings=settings.summary(),
        engine=engine,
        assumptions=assumptions_of(presolved, k),
        at_bounds=at_bounds(problem, coef),
        box=problem.box,
        history=np.array(history, dtype=HISTORY),
    )
    return replace(result, certificate=_certificate(presolved, result, recorder))


def _certificate(presolved: Presolved, result: Result, recorder: Recorder) -> Certificate | None:
    proof = recorder.proof()
    if proof is None:
        return None
    question = presolved.question(result.k)
    tree, splits = proof
    return Certificate(
        **question.as_dict(),
        fingerprint=fingerprint(presolved.problem.digest, question),
        coef=result.coef,
        intercept=result.intercept,
        objective=result.objective,
        lower_bound=result.lower_bound,
        copies=presolved.copies,
        splits=splits,
        tree=tree,
    )
