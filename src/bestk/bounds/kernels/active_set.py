"""The relaxation of a node by an active-set method: exact in a few small factorisations.

Without a box the conditions of the optimum (theory: active-set) are linear once it is known which
features are zero, which have 0 < z < 1 and which have z = 1. So solve for this guess, correct it,
and repeat; from the solution of the parent that takes three or four rounds. It may run in circles;
then coordinate descent goes on from the best point. Nothing here needs to be exact or proven.
"""

import math
from typing import NamedTuple

import numpy as np

from bestk.base.compiling import kernel, step
from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.cholesky import factor, solve_factored
from bestk.bounds.kernels.gains import largest_first, sum_largest
from bestk.form.dense import residual

# Pieces of the penalty that a feature is on; those between zero and one have the sign of b.
_ZERO, _WHOLE, _FORCED = 0, 2, 3
# Multiplications that the start and the end of a loop over a row are worth.
_ROW = 28.0
# Features of a working set, at most: factors of larger ones take longer than sweeps.
MOST = 128
# Rounds in all, and rounds without a better bound, after which this is a circle.
_ROUNDS, _PATIENCE = 20, 4


class Room(NamedTuple):
    """Arrays to work in, as long as the features."""

    piece: np.ndarray
    working: np.ndarray
    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    gains: np.ndarray
    ranked: np.ndarray
    best: np.ndarray
    U: np.ndarray


@kernel
def room_for(p):
    return Room(
        np.empty(p, np.int8), np.empty(p, np.int64), np.empty(p), np.empty(p), np.empty(p),
        np.empty(p), np.empty(p), np.empty(p), np.empty((min(p, MOST), min(p, MOST))),
    )  # fmt: skip


@kernel
def settle(relaxed, root, state, r, b, level, cutoff, room):
    """Maximise h (theory: bound) for one node; b improves in place; ``root`` is sqrt(t).

    Returns (level, multiplies, whether it is settled: the optimum, or a bound at the cutoff).
    """
    A, c, t, _, _ = relaxed
    piece, working, x, y, u, gains, ranked, best_b, U = room
    p = c.shape[0]
    if level <= 0.0:
        level = _first_level(relaxed, state, r, b, u, ranked)
    _first_pieces(state, r, b, root, level, piece)
    best, best_level, is_settled = -np.inf, level, False
    multiplies, idle = 0.0, 0
    for _ in range(_ROUNDS):
        size, whole, partial = _list_working(piece, working)
        if size > MOST or not _solve(A, c, t, root, piece, working, size, partial, U, x, y):
            break
        if partial > 0:
            level = _level_of(root, piece, working, size, r - whole, x, y)
            if not level > 0.0:
                break
        for j in range(p):
            b[j] = 0.0
        for i in range(size):
            b[working[i]] = x[i] - level * y[i]
        residual(A, c, t, b, u)
        multiplies += size * (size * (size / 6.0 + _ROW) + p)
        bound = _bound(c, t, state, r, b, u, gains, ranked)
        idle += 1
        if bound > best:
            best, best_level, idle = bound, level, 0
            for j in range(p):
                best_b[j] = b[j]
        if best >= cutoff or r == 0:
            is_settled = True
            break
        if idle == _PATIENCE:
            break
        if partial == 0:
            level, is_settled = _level_between(state, b, root, gains, piece, r, whole)
            if is_settled:
                best_level = level
                break
        if not _correct(state, b, root, u, gains, level, size, piece, ranked):
            is_settled = True
            break
    if best > -np.inf:
        for j in range(p):
            b[j] = best_b[j]
    return best_level, multiplies, is_settled


@step
def _first_level(relaxed, state, r, b, u, ranked):
    """Somewhat below the mean of the r largest gains: then a few more than r leave zero."""
    A, c, t, _, _ = relaxed
    residual(A, c, t, b, u)
    m = 0
    for j in range(c.shape[0]):
        if state[j] == FREE:
            ranked[m] = u[j] * u[j] / t[j]
            m += 1
    return 0.7 * math.sqrt(sum_largest(ranked, m, r) / max(r, 1))


@step
def _first_pieces(state, r, b, root, level, piece):
    for j in range(state.shape[0]):
        piece[j] = _ZERO
        if state[j] == IN:
            piece[j] = _FORCED
        elif state[j] == FREE and b[j] != 0.0 and r > 0:
            piece[j] = _piece_of(b[j], root[j], level)


@kernel
def _piece_of(b, root, level):
    if abs(b) * root >= level:
        return _WHOLE
    return 1 if b > 0 else -1


@step
def _list_working(piece, working):
    """Features that are not zero: (how many, with z = 1, with z between)."""
    size, whole, partial = 0, 0, 0
    for j in range(piece.shape[0]):
        if piece[j] != _ZERO:
            working[size] = j
            size += 1
            whole += piece[j] == _WHOLE
            partial += abs(piece[j]) == 1
    return size, whole, partial


@step
def _solve(A, c, t, root, piece, working, size, partial, U, x, y):
    """b = x - level y on the working set; False where its matrix is singular up to rounding."""
    for i in range(size):
        j = working[i]
        row = A[j]
        for k in range(i, size):
            U[i, k] = row[working[k]]
        x[i], y[i] = c[j], 0.0
        if abs(piece[j]) == 1:
            U[i, i] -= t[j]
            y[i] = piece[j] * root[j]
    if not factor(U, size):
        return False
    solve_factored(U, x, size)
    if partial > 0:
        solve_factored(U, y, size)
    return True


@step
def _level_of(root, piece, working, size, left, x, y):
    """The level at which those between zero and one share out what is left of r; 0 if none."""
    along, across = 0.0, 0.0
    for i in range(size):
        j = working[i]
        if abs(piece[j]) == 1:
            along += piece[j] * root[j] * x[i]
            across += piece[j] * root[j] * y[i]
    return along / (left + across) if left + across > 1e-12 else 0.0


@step
def _bound(c, t, state, r, b, u, gains, ranked):
    """h(b) without rounding allowance; fills the gains of those not OUT."""
    quadratic, forced, m = 0.0, 0.0, 0
    for j in range(c.shape[0]):
        quadratic += b[j] * (c[j] - u[j])
        if state[j] == OUT:
            continue
        gains[j] = u[j] * u[j] / t[j]
        if state[j] == IN:
            forced += gains[j]
        else:
            ranked[m] = gains[j]
            m += 1
    return 1.0 - quadratic - forced - sum_largest(ranked, m, r)


@step
def _level_between(state, b, root, gains, piece, r, whole):
    """No feature has z between zero and one: (a level for the next round, is this the optimum?)."""
    smallest, largest = np.inf, 0.0
    for j in range(state.shape[0]):
        if piece[j] == _WHOLE:
            smallest = min(smallest, abs(b[j]) * root[j])
        elif piece[j] == _ZERO and state[j] == FREE:
            largest = max(largest, math.sqrt(gains[j]))
    if whole == r:
        return 0.5 * (smallest + largest), largest <= smallest
    return (0.9 * largest, False) if whole < r else (1.0000001 * smallest, False)


@step
def _correct(state, b, root, u, gains, level, size, piece, ranked):
    """Move features to the pieces where they belong; False if all of them are there."""
    edge = level * level * (1.0 + 1e-9)
    m = 0
    for j in range(state.shape[0]):
        if piece[j] == _ZERO and state[j] == FREE and gains[j] > edge:
            ranked[m] = gains[j]
            m += 1
    # Once the first of those that would leave zero have moved, most of the others stay.
    most, entry = max(8, size // 4), edge
    if m > most:
        largest_first(ranked, m, most)
        entry = np.min(ranked[:most])
    changed = False
    for j in range(state.shape[0]):
        if state[j] != FREE:
            continue
        old = piece[j]
        if old == _ZERO:
            if gains[j] > edge and gains[j] >= entry:
                piece[j] = 1 if u[j] > 0 else -1
        elif old == _WHOLE:
            if abs(b[j]) * root[j] < level * (1.0 - 1e-9):
                piece[j] = 1 if b[j] > 0 else -1
        elif b[j] * old <= 0.0:
            piece[j] = _ZERO
        elif abs(b[j]) * root[j] > level * (1.0 + 1e-9):
            piece[j] = _WHOLE
        changed = changed or piece[j] != old
    return changed
