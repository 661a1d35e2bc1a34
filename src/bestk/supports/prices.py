"""What an enumeration costs, in model seconds: measured once, for all numbers of features.

A scan of triples among m features costs a fixed part, one for each feature, one for each row of
pairs and one for each support; it is done once for each beginning of a support. So with r features
to choose the four parts come C(m, r - 3), C(m, r - 2), C(m, r - 1) and C(m, r) times.
"""

from typing import NamedTuple

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.tuning import Tuning
from bestk.devices.tasks import MOST_FEATURES, MOST_PREFIX, MOST_SETS


class Prices(NamedTuple):
    """Model seconds of scans, and of multiplications of a bound, to compare them with.

    See :class:`bestk.base.tuning.Tuning`.
    """

    per_beginning: float
    per_first: float
    per_pair_row: float
    per_support: float
    per_update: float
    per_multiply: float
    per_device_support: float
    per_device_row: float
    per_device_first: float
    per_device_beginning: float
    per_device_node: float
    device_threads: float


def prices_of(now: Tuning) -> Prices:
    return Prices(
        now.per_beginning, now.per_first, now.per_pair_row, now.per_support, now.per_update,
        now.per_unit_multiply, now.per_device_support, now.per_device_row, now.per_device_first,
        now.per_device_beginning, now.per_device_node, now.device_threads,
    )  # fmt: skip


@kernel
def choices(m, r):
    """C(m, r) as a float; 0 for negative r."""
    if r < 0 or r > m:
        return 0.0
    total = 1.0
    for i in range(min(r, m - r)):
        total *= (m - i) / (i + 1.0)
    return total


@kernel
def scan_seconds(prices, n_free, n_inside, r):
    """Model seconds to try all ways to add r of n_free features to those inside."""
    beginnings = max(choices(n_free, r - 3), 1.0)
    scan = prices.per_beginning * beginnings + prices.per_first * choices(n_free, r - 2)
    scan += prices.per_pair_row * choices(n_free, r - 1)
    scan += prices.per_support * choices(n_free, r)
    return scan + prices.per_update * n_free * n_free * (n_inside + 1)


@kernel
def device_seconds(prices, n_free, n_inside, r):
    """The same on a device, in seconds of the threads beside it, which could do something else.

    Infinite where it cannot be asked, or one thread takes less than that.
    """
    sets = choices(n_free, r)
    if r < 3 or r > MOST_PREFIX + 3 or n_free > MOST_FEATURES or sets > MOST_SETS:
        return np.inf
    scan = prices.per_device_support * sets + prices.per_device_row * choices(n_free, r - 1)
    scan += prices.per_device_first * choices(n_free, r - 2)
    scan += prices.per_device_beginning * (r - 2) * choices(n_free, r - 3)
    scan += prices.per_device_node + prices.per_update * n_free * n_free * (n_inside + 1)
    scan *= prices.device_threads
    return scan if scan <= scan_seconds(prices, n_free, n_inside, r) else np.inf
