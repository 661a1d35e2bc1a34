"""Runs side by side in threads and processes: same results, nothing left behind."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from helpers.blas import LIMIT, METHODS, blas_now
from helpers.forcing import forced

import bestk
from bestk import Problem

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def problem_of(seed: int) -> Problem:
    """Correlated features, some of them in boxes: a few dozen nodes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 24)) + 1.5 * rng.standard_normal((60, 1))
    y = X[:, ::5] @ rng.standard_normal(5) + 3.0 * rng.standard_normal(60)
    bounds = (-0.5, 0.5) if seed % 2 else None
    return Problem.from_data(X, y, alpha=0.1 * (seed % 3), bounds=bounds)


def outcome(problem: Problem, k: int = 5):
    """All of a result that must not depend on what else is running."""
    advanced = bestk.Advanced(enumeration=False)
    result = problem.solve(k, n_threads=2, advanced=advanced)
    return result.support.tolist(), result.coef.tolist(), result.lower_bound, result.n_nodes


def outcome_of(seed: int):
    """In another process, which fixtures do not reach."""
    before = blas_now()
    with forced() as force:
        force.units_from(0)
        return outcome(problem_of(seed)), blas_now() == before


def test_problems_solved_at_once_give_what_they_give_one_by_one():
    alone = [outcome(problem_of(seed)) for seed in range(8)]
    assert max(nodes for *_, nodes in alone) > 20
    barrier = Barrier(8)

    def together(seed):
        barrier.wait(LIMIT)
        return outcome(problem_of(seed))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(together, range(8))) == alone


def test_one_problem_may_be_solved_by_several_threads():
    problem = problem_of(3)
    sizes = [2, 3, 4, 5] * 2
    alone = [outcome(problem_of(3), k) for k in sizes]
    barrier = Barrier(8)

    def together(k):
        barrier.wait(LIMIT)
        return outcome(problem, k)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(together, sizes)) == alone


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_give_the_same_results(method):
    alone = [outcome(problem_of(seed)) for seed in range(4)]
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        results = list(pool.map(outcome_of, range(4), timeout=LIMIT))
    assert [result for result, _ in results] == alone
    assert all(restored for _, restored in results)


class Stop(Exception):
    """Raised by a callback."""


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
def test_a_run_that_fails_restores_the_limit(error):
    problem, seen = problem_of(0), []

    def callback(snapshot):
        seen.append(set(blas_now()))
        raise error

    options = {"callback": callback, "advanced": bestk.Advanced(enumeration=False)}
    if error is Stop:
        with pytest.raises(Stop):
            problem.solve(5, **options)
    else:
        assert problem.solve(5, **options).status is bestk.Status.INTERRUPTED
    assert seen == [{1}]
    assert set(blas_now()) == {3}


def test_a_run_that_fails_leaves_others_their_limit():
    """One of two overlapping runs ends with an exception; the other one goes on with its limit."""
    running, finish = Event(), Event()

    def wait(snapshot):
        running.set()
        finish.wait(LIMIT)

    options = {"advanced": bestk.Advanced(enumeration=False)}
    other = Thread(target=partial(problem_of(1).solve, 5, callback=wait, **options), daemon=True)
    other.start()
    assert running.wait(LIMIT)
    with pytest.raises(ValueError, match="initial_support"):
        problem_of(2).solve(2, initial_support=[0, 1, 2])
    problem_of(2).solve(2)
    assert set(blas_now()) == {1}
    finish.set()
    other.join(LIMIT)
    assert not other.is_alive()
