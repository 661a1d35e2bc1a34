"""Good supports of one size to begin with, where the best of them are wanted."""

from itertools import combinations
from math import comb

import numpy as np

from bestk.form.standard_form import StandardForm
from bestk.supports.beam import fit_supports

# Supports of one size that are all tried, and supports whose swaps are tried.
_ALL, _STARTS = 1000, 10


def all_supports(
    form: StandardForm, inside: np.ndarray, size: int, count: int
) -> np.ndarray | None:
    """All supports of a size, as rows of form indices, if they are few or at most `count`."""
    free = np.setdiff1d(np.arange(form.p), inside)
    if comb(len(free), size - len(inside)) > max(count, _ALL):
        return None
    rows = [np.sort([*inside, *chosen]) for chosen in combinations(free, size - len(inside))]
    return np.array(rows, dtype=np.int64).reshape(len(rows), size)


def good_supports(
    form: StandardForm, inside: np.ndarray, start: np.ndarray, size: int, count: int
) -> list[np.ndarray]:
    """Swaps of good supports, about twice as many as are asked for, best first."""
    free = np.setdiff1d(np.arange(form.p), inside)
    others = np.setdiff1d(np.arange(form.p), start)
    values: dict[bytes, float] = {}
    waiting = [np.sort(np.concatenate([start, others])[:size]).astype(np.int64)]
    done: set[bytes] = set()
    while waiting and (len(values) < count or len(done) < _STARTS):
        row = waiting.pop(0)
        done.add(row.tobytes())
        near = _swaps(row, free)
        found = fit_supports(form, np.array(near))[1]
        values |= {one.tobytes(): value for one, value in zip(near, found, strict=True)}
        best = sorted(values, key=lambda key: values[key])[: max(count, _STARTS)]
        waiting = [np.frombuffer(key, np.int64) for key in best if key not in done]
    best = sorted(values, key=lambda key: values[key])[: 2 * count]
    return [np.frombuffer(key, np.int64) for key in best]


def _swaps(row: np.ndarray, free: np.ndarray) -> list[np.ndarray]:
    """The row, and all that differ from it by one feature; what is not free stays."""
    found = [row]
    others = np.setdiff1d(free, row)
    for out in np.intersect1d(row, free):
        rest = row[row != out]
        found += [np.sort(np.append(rest, other)) for other in others]
    return found
