"""Work that is shared out among threads in parts which do not depend on their number."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import cpu_count
from typing import TypeVar

from threadpoolctl import threadpool_limits

from bestk.base.validation import require_threads
from bestk.verification.limits import limits

Part = TypeVar("Part")
Found = TypeVar("Found")


def summing(n_features: int) -> AbstractContextManager[object]:
    """One thread for BLAS while batches with few features are summed up."""
    is_few = n_features <= limits().one_thread_features
    return threadpool_limits(limits=1, user_api="blas") if is_few else nullcontext()


def shared(
    pool: ThreadPoolExecutor | None, work: Callable[[Part], Found], parts: Sequence[Part]
) -> list[Found]:
    """work(part) of each part, in their order; on a pool if there is one and more than one part."""
    if pool is None or len(parts) < 2:
        return [work(part) for part in parts]
    return list(pool.map(work, parts))


@contextmanager
def threads_for(n_threads: int | None) -> Iterator[ThreadPoolExecutor | None]:
    """A pool of threads, None for one; BLAS is kept within a number that was given."""
    require_threads(n_threads)
    count = n_threads or cpu_count() or 1
    with nullcontext() if n_threads is None else threadpool_limits(limits=n_threads):
        if count == 1:
            yield None
        else:
            with ThreadPoolExecutor(count) as pool:
                yield pool
