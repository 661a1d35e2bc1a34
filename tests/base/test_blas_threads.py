"""Limits on the threads of BLAS: nested, overlapping, inherited, and always taken back."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import pytest
from helpers.blas import LIMIT, METHODS, blas_now

from bestk.base.threads import blas_threads, default_threads

pytestmark = pytest.mark.usefixtures("nothing_is_left")


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


def test_default_threads_are_those_of_the_process():
    assert 1 <= default_threads() <= (os.cpu_count() or 1)
