"""What a feature can gain at its slope, and the largest gains of many."""

import numpy as np

from bestk.base.compiling import kernel


@kernel
def gain_of(u, t, lo, hi):
    """max over lo <= v <= hi of 2 u v - t v^2  (theory: gain), also for t <= 0."""
    if t <= 0.0:
        # Convex: largest at an end of the box, or at infinity where it rises there.
        if (hi == np.inf and (t < 0.0 or u > 0.0)) or (lo == -np.inf and (t < 0.0 or u < 0.0)):
            return np.inf
        right = hi * (2.0 * u - t * hi) if hi < np.inf else 0.0
        left = lo * (2.0 * u - t * lo) if lo > -np.inf else 0.0
        return max(right, left, 0.0)
    reach = hi if u > 0 else -lo
    u = abs(u)
    if u <= t * reach:
        return u * u / t
    return reach * (2.0 * u - t * reach)


@kernel
def largest_first(a, m, r):
    """Reorder a[:m] so that its r largest entries come first (quickselect, in place)."""
    low, high = 0, m - 1
    while low < high and 0 < r < m:
        x, y, z = a[low], a[(low + high) // 2], a[high]
        pivot = max(min(x, y), min(max(x, y), z))
        i, j = low, high
        while i <= j:
            while a[i] > pivot:
                i += 1
            while a[j] < pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if r - 1 <= j:
            high = j
        elif r - 1 >= i:
            low = i
        else:
            break


@kernel
def sum_largest(a, m, r):
    """Sum of the r largest of a[:m]; reorders a."""
    largest_first(a, m, r)
    total = 0.0
    for j in range(min(m, r)):
        total += a[j]
    return total
