"""One search: from a presolved problem to a result with its certificate."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from bestk.base.device.dense import open_dense
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
from bestk.results.progress import make_progress
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.runs.checkpoint import Checkpoint, Writer
from bestk.runs.conclusion import result_of
from bestk.search.lessons import Lessons
from bestk.search.tree import Tree
from bestk.subtrees.recorder import Recorder
from bestk.supports.enumeration import Shortlist
from bestk.supports.incumbent import Incumbent


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
    presolved.require_room(k)
    problem = presolved.problem
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
                    saved.restore(tree)
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


def concluded(
    presolved, k, incumbent, bound, status, n_nodes, history, recorder, settings, started, engine
) -> Result:
    """What a search has found and proven, as users see it; no more than rounding allows."""
    result = result_of(
        presolved.problem, k, incumbent, presolved.include, bound, status, n_nodes, history,
        settings, started, engine, assumptions_of(presolved, k),
    )  # fmt: skip
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
