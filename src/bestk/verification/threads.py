"""Work that is shared out among threads in parts which do not depend on their number."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Found = TypeVar("Found")


def shared(
    pool: ThreadPoolExecutor | None, work: Callable[[Part], Found], parts: Sequence[Part]
) -> list[Found]:
    """work(part) of each part, in their order; on a pool if there is one and more than one part."""
    if pool is None or len(parts) < 2:
        return [work(part) for part in parts]
    return list(pool.map(work, parts))
