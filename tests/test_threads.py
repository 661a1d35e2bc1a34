"""Runs side by side in threads and processes: same results, nothing left behind."""

import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import bestk
from bestk import Problem
from bestk.base.threads import blas_threads, default_threads

LIMIT = 60.0  # seconds after which a test is stuck
METHODS = [m for m in ("spawn", "fork") if m in multiprocessing.get_all_start_methods()]


def libraries():
    return ThreadpoolController().select(user_api="blas").lib_controllers


def blas_now() -> list[int]:
    """The number of threads of every BLAS library of this process."""
    return [library.num_threads for library in libraries()]


def set_blas(counts) -> None:
    for library, n in zip(libraries(), counts, strict=True):
        library.set_num_threads(n)
        # Newer versions let only the thread that was first set numbers, until it says it is done.
        getattr(library, "clear_controlling_thread", lambda: None)()


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """BLAS has three threads before and after; no new files in the temporary or current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    for variable in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(variable, str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = blas_now()
    set_blas([3] * len(before))
    try:
        yield
        assert set(blas_now()) == {3}
    finally:
        set_blas(before)
    assert [path.name for path in tmp_path.rglob("*")] == ["temporary"]


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
    before = blas_now()
    return outcome(problem_of(seed)), blas_now() == before


class Block(Thread):
    """A `blas_threads` block in a thread of its own, entered and left on command."""

    def __init__(self, n: int | None) -> None:
        super().__init__(daemon=True)
        self.n, self.inside, self.end = n, Event(), Event()
        self.start()
        assert self.inside.wait(LIMIT)

    def run(self) -> None:
        with blas_threads(self.n):
            self.inside.set()
            self.end.wait(LIMIT)

    def leave(self) -> None:
        self.end.set()
        self.join(LIMIT)
        assert not self.is_alive()


def test_the_first_of_two_overlapping_blocks_leaves_first():
    first, second = Block(1), Block(1)
    first.leave()
    assert set(blas_now()) == {1}
    second.leave()
    assert set(blas_now()) == {3}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_the_smallest_of_overlapping_limits_holds(order):
    wanted = [2, 1, 4]
    blocks = [Block(n) for n in wanted]
    for i in order:
        assert set(blas_now()) == {min(wanted)}
        blocks[i].leave()
        wanted[i] = 10 if len([n for n in wanted if n < 10]) > 1 else 3
    assert set(blas_now()) == {3}


def test_none_leaves_blas_alone_and_blocks_nest():
    with blas_threads(None):
        assert set(blas_now()) == {3}
        with blas_threads(2), blas_threads(1):
            assert set(blas_now()) == {1}
        assert set(blas_now()) == {3}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_restores_the_limit(error):
    with pytest.raises(error), blas_threads(1):
        raise error
    assert set(blas_now()) == {3}


def test_many_blocks_at_once_restore_the_limit():
    barrier = Barrier(8)

    def enter_and_leave(n):
        barrier.wait(LIMIT)
        for i in range(50):
            with blas_threads(1 + (n + i) % 3):
                assert max(blas_now()) <= 3
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(enter_and_leave, range(8)))


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


@pytest.mark.skipif("fork" not in METHODS, reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_inherit_the_blocks_of_other_threads():
    """Threads do not survive a fork: nobody would ever leave their blocks."""
    other = Block(1)
    reader, writer = os.pipe()
    with blas_threads(2):
        seen = blas_now()[:1]
        child = os.fork()
        if child == 0:
            seen += blas_now()[:1]
    if child == 0:
        os.write(writer, bytes(seen + blas_now()[:1]))
        os._exit(0)
    os.waitpid(child, 0)
    assert list(os.read(reader, 3)) == [1, 2, 3]
    assert set(blas_now()) == {1}
    os.close(reader)
    os.close(writer)
    other.leave()


class Stop(Exception):
    """Raised by a callback."""


@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
def test_a_run_that_fails_restores_the_limit(error):
    problem = problem_of(0)

    def callback(snapshot):
        assert set(blas_now()) == {1}
        raise error

    with suppress(Stop, KeyboardInterrupt):
        problem.solve(5, callback=callback, advanced=bestk.Advanced(enumeration=False))
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


def test_default_threads_are_those_of_the_process():
    assert 1 <= default_threads() <= (os.cpu_count() or 1)
