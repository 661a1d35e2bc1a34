"""Supports tried on a device, by a kernel that the search does not know."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from math import comb

import numpy as np

from bestk.base.device.cuda import Cuda, number_of
from bestk.base.device.driver import DeviceFailed, Driver

_MOST_PREFIX, _MOST_FEATURES = 16, 1024
_THREADS = 256
# First features of a block, and the fewest where the device has little memory for it.
_FIRSTS = (4, 1)
# Blocks of one launch, and beginnings that may be listed.
_MOST_BLOCKS, _MOST_LISTED = 2**28, 2**16


@cache
def open_scan(name: str) -> "PairScan":
    """The device with a name. Raises DeviceUnavailable."""
    number = number_of(name)
    return PairScan([Cuda(number) for _ in _FIRSTS])


class PairScan:
    """Finds the beginnings behind which supports may gain too much; see pairs.cu.

    There is a driver for each number of first features that share a block.
    """

    def __init__(self, drivers: list[Driver]) -> None:
        self.name = drivers[0].name
        self._drivers = dict(zip(_FIRSTS, drivers, strict=True))
        source = files("bestk.verification.supports").joinpath("pairs.cu").read_text()
        for firsts, driver in self._drivers.items():
            driver.compile(source, {"FIRSTS": firsts, "MOST_PREFIX": _MOST_PREFIX})
        table = [[comb(n, r) for r in range(_MOST_PREFIX + 1)] for n in range(_MOST_FEATURES + 1)]
        self._table = np.array(table, dtype=np.float64)

    def can_try(self, m: int, r: int) -> bool:
        """Whether sets of r of m features can be tried: they have numbers, and there is room."""
        few = 3 <= r <= _MOST_PREFIX + 3 and m <= _MOST_FEATURES and comb(m, r - 3) < 2**53
        return few and self._firsts(m, r) is not None

    def _firsts(self, m: int, r: int) -> int | None:
        """As many first features together as there is memory for."""
        for firsts, driver in self._drivers.items():
            if _shared_bytes(m, r, firsts) <= driver.most_shared - 2**10:
                return firsts
        return None

    def beginnings(self, H, d, needed: float, least: float, r: int) -> np.ndarray | None:
        """Rows of r - 2 features, or of r - 3 and -1, that stand for all that begins with them.

        Every other set of r gains no more than `needed`. H's upper triangle counts. None if there
        are too many rows.
        """
        m = len(d)
        firsts = self._firsts(m, r)
        assert firsts is not None, "ask can_try first"
        driver = self._drivers[firsts]
        whole = np.triu(H) + np.triu(H, 1).T
        try:
            products, moments, table = map(driver.upload, (whole, d, self._table))
            counts, listed = driver.allocate(4), driver.allocate(16 * _MOST_LISTED)
        except MemoryError:
            raise DeviceFailed(f"{self.name} has no memory left") from None
        driver.zero(counts)
        groups = -(-(m - (r - 3)) // firsts)
        for first, size in _pieces(comb(m, r - 3), _MOST_BLOCKS // groups):
            driver.launch(
                "pairs", size * groups, _THREADS, _shared_bytes(m, r, firsts),
                (products, moments, m, r - 3, np.float64(needed), np.float64(least), table,
                 np.int64(first), groups, listed, _MOST_LISTED, counts),
            )  # fmt: skip
        count = int(driver.download(counts, np.int32, 1)[0])
        if count > _MOST_LISTED:
            return None
        found = driver.download(listed, np.int64, 2 * count).reshape(-1, 2).tolist()
        rows = [[*_prefix(rank, r - 3, m), feature] for rank, feature in sorted(found)]
        return np.array(rows, dtype=np.int64).reshape(-1, r - 2)


def _shared_bytes(m: int, r: int, firsts: int) -> int:
    return 8 * (r - 3 + 3 * firsts) * m


def _pieces(total: int, most: int) -> Iterator[tuple[int, int]]:
    for first in range(0, total, max(most, 1)):
        yield first, min(max(most, 1), total - first)


def _prefix(rank: int, q: int, m: int) -> list[int]:
    """The set of q of m features with a rank, in the order of a dictionary."""
    prefix: list[int] = []
    feature = 0
    while len(prefix) < q:
        with_it = comb(m - feature - 1, q - len(prefix) - 1)
        if rank < with_it:
            prefix.append(feature)
        else:
            rank -= with_it
        feature += 1
    return prefix
