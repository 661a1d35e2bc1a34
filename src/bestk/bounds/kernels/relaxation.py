"""Coordinate descent on the relaxation of a node (theory: relaxation), step by step.

Nothing here needs to be exact: every b is a valid dual vector, and what it proves is decided
elsewhere (``conclude.py``).
"""

import math
from typing import NamedTuple

import numpy as np

from bestk.base.arithmetic import add_row
from bestk.base.compiling import kernel, step
from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.gains import gain_of, largest_first, sum_largest
from bestk.form.dense import residual


class Relaxed(NamedTuple):
    """``1 - 2 c'b + b'A b`` over lo <= b <= hi, with charges t >= 0 on its diagonal."""

    A: np.ndarray
    c: np.ndarray
    t: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class Effort(NamedTuple):
    """How long to look for a better dual vector; see :class:`bestk.base.tuning.Tuning`."""

    closeness: float
    sweeps: int
    sweeps_at_once: int


class _Working(NamedTuple):
    """The working set: features, and for each its slope v, b as x, charge t and sqrt(t).

    ``gains`` is room for as many numbers.
    """

    features: np.ndarray
    v: np.ndarray
    x: np.ndarray
    t: np.ndarray
    root: np.ndarray
    gains: np.ndarray


@kernel
def descend_rows(relaxed, states, remaining, duals, levels, cutoff, effort, multiplies):
    """:func:`descend` for each node (row)."""
    for i in range(states.shape[0]):
        levels[i], multiplies[i] = descend(
            relaxed, states[i], remaining[i], duals[i], levels[i], cutoff, effort
        )


@kernel
def descend(relaxed, state, r, b, level, cutoff, effort):
    """Maximise h (theory: bound) for one node; b improves in place. Returns (level, multiplies).

    Coordinate descent on the primal relaxation over a growing working set. The level
    s = sqrt(multiplier of sum z <= r) follows sum z towards r between sweeps.
    """
    A, c, t, _, _ = relaxed
    p = c.shape[0]
    working = _Working(
        np.empty(p, np.int64), np.empty(p), np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    )
    listed = np.zeros(p, np.bool_)
    size, n_free = _first_working_set(state, r, b, working.features, listed)
    u = np.empty(p)
    residual(A, c, t, b, u)
    gains, ranked = np.empty(p), np.empty(max(n_free, 1))
    limited = 0 < r < n_free
    if not limited:
        level = 0.0
    elif level <= 0.0:
        level = _first_level(relaxed, state, r, u, ranked)

    best, best_level, best_b = -np.inf, level, np.empty(p)
    Q, gathered = np.empty((size, size)), 0
    converged, primal = False, np.inf
    sweeps, multiplies = 0, 0.0
    while True:
        multiplies += size * p
        bound = _bound(relaxed, state, r, b, u, gains, ranked)
        if bound > best or best == -np.inf:
            best, best_level = bound, level
            _copy(b, best_b)
        # Those left out of the working set are zero: its primal value is one of the whole problem.
        close = _is_close(primal, bound, cutoff, effort.closeness)
        if bound >= cutoff or sweeps >= effort.sweeps or close:
            break
        grown = _let_in(state, r, gains, level, listed, working.features, size, ranked)
        if converged and grown == size:
            break
        size = grown
        if size > Q.shape[0]:
            Q, gathered = np.empty((size + size // 4, size + size // 4)), 0
        _gather(A, t, working.features, size, gathered, Q)
        gathered = size
        _enter(working, size, u, b, t)
        level, total, primal, converged, done = _sweep_until_close(
            relaxed, state, r, working, size, Q, level, cutoff, effort
        )
        sweeps += done
        multiplies += (1 + done) * size * size
        for i in range(size):
            b[working.features[i]] = working.x[i]
        residual(A, c, t, b, u)
        if limited and total < 0.98 * r:
            level = min(level, _level_of_next(relaxed, state, u, listed))
    _copy(best_b, b)
    return best_level, multiplies


@step
def _copy(source, target):
    for j in range(source.shape[0]):  # compiles much faster than a slice
        target[j] = source[j]


@kernel
def _is_close(primal, bound, cutoff, closeness):
    """Is what a better dual could still gain small beside what the node lacks (or y'y = 1)?"""
    return primal - bound <= closeness * min(abs(cutoff - bound), 1.0) + 1e-13


@step
def _first_working_set(state, r, b, features, listed):
    """What is IN or not zero; b becomes zero where it must be. Returns (size, free features)."""
    size, n_free = 0, 0
    for j in range(state.shape[0]):
        if state[j] == FREE:
            n_free += 1
        if state[j] == OUT or (r == 0 and state[j] == FREE):
            b[j] = 0.0
        elif state[j] == IN or b[j] != 0.0:
            features[size] = j
            listed[j] = True
            size += 1
    return size, n_free


@step
def _first_level(relaxed, state, r, u, ranked):
    """Somewhat below the mean of the r largest gains: then a few more than r leave zero."""
    _, _, t, lo, hi = relaxed
    m = 0
    for j in range(state.shape[0]):
        if state[j] == FREE:
            ranked[m] = gain_of(u[j], t[j], lo[j], hi[j])
            m += 1
    return 0.7 * math.sqrt(sum_largest(ranked, m, r) / r)


@step
def _bound(relaxed, state, r, b, u, gains, ranked):
    """h(b) over all features, without rounding allowance; fills the gains of those not OUT."""
    _, c, t, lo, hi = relaxed
    quadratic = 0.0
    forced = 0.0
    m = 0
    for j in range(state.shape[0]):
        quadratic += b[j] * (c[j] - u[j])
        if state[j] == OUT:
            continue
        gains[j] = gain_of(u[j], t[j], lo[j], hi[j])
        if state[j] == IN:
            forced += gains[j]
        else:
            ranked[m] = gains[j]
            m += 1
    return 1.0 - quadratic - forced - sum_largest(ranked, m, r)


@step
def _let_in(state, r, gains, level, listed, features, size, ranked):
    """The working set with the first of the features whose gain exceeds the level; its size.

    These would leave zero. Once the first of them have moved, most of the others stay.
    """
    if r == 0:
        return size
    m = 0
    for j in range(state.shape[0]):
        if state[j] == FREE and not listed[j]:
            ranked[m] = gains[j]
            m += 1
    most = max(16, size // 8)
    entry = 0.0
    if m > most:
        largest_first(ranked, m, most)
        entry = np.min(ranked[:most])
    for j in range(state.shape[0]):
        if state[j] == FREE and not listed[j] and gains[j] > level * level and gains[j] >= entry:
            features[size] = j
            listed[j] = True
            size += 1
    return size


@step
def _gather(A, t, features, size, gathered, Q):
    """Q = A - diag(t) on the working set, of which the first rows and columns are there already.

    Only rows of new features are read: A is symmetric, and its other rows are far away in memory.
    """
    for i in range(gathered, size):
        row = A[features[i]]
        for k in range(i):
            Q[i, k] = row[features[k]]
            Q[k, i] = Q[i, k]
        Q[i, i] = row[features[i]] - t[features[i]]


@step
def _enter(working, size, u, b, t):
    features, v, x, charge, root, _ = working
    for i in range(size):
        j = features[i]
        v[i], x[i], charge[i], root[i] = u[j], b[j], t[j], math.sqrt(t[j])


@step
def _sweep_until_close(relaxed, state, r, working, size, Q, level, cutoff, effort):
    """Sweep over a working set; the level follows sum z towards r.

    Returns (level, sum z, primal value, converged, sweeps).
    """
    gain, above = 0.5, True
    total, primal = float(r), np.inf
    for sweep in range(effort.sweeps_at_once):
        total = _sweep(relaxed, state, working, size, Q, level)
        if level > 0.0:
            # Follow sum z towards r, more gently once that overshoots.
            if (total > r) != above:
                above = not above
                gain = max(0.7 * gain, 0.05)
            level *= min(max(total / r, 0.4), 2.5) ** gain
        if sweep % 4 == 3:
            primal, dual = _both_values(relaxed, state, r, working, size, level, total)
            if _is_close(primal, dual, cutoff, effort.closeness):
                return level, total, primal, True, sweep + 1
    return level, total, primal, False, effort.sweeps_at_once


@step
def _sweep(relaxed, state, working, size, Q, level):
    """Minimise over one coordinate after the other; returns sum z."""
    _, _, _, lo, hi = relaxed
    features, v, x, t, root, _ = working
    total = 0.0
    for i in range(size):
        j, q = features[i], Q[i, i]
        a = v[i] + q * x[i]
        side = 1.0 if a > 0 else -1.0
        reach = hi[j] if a > 0 else -lo[j]
        if level > 0.0 and state[j] == FREE:
            new, share = _best_coordinate(abs(a), q, t[i], root[i], reach, level)
            total += share
        else:
            new = min(abs(a) / (q + t[i]), reach)
        step = side * new - x[i]
        if step != 0.0:
            x[i] = side * new
            add_row(v, -step, Q, i, size)
    return total


@step
def _best_coordinate(a, q, t, root, reach, level):
    """(size of the coordinate, its z): zero up to a threshold, then z grows from 0 to 1."""
    if reach * root >= level:
        knee = level / root
        threshold = root * level
    elif reach > 0.0:
        knee = reach
        threshold = 0.5 * (t * reach + level * level / reach)
    else:
        knee = 1.0
        threshold = np.inf
    if a <= threshold:
        return 0.0, 0.0
    if a - threshold < q * knee:
        new = (a - threshold) / q
        return new, new / knee
    return min(max(a / (q + t), knee), reach), 1.0


@step
def _both_values(relaxed, state, r, working, size, level, total):
    """(primal, dual) value, both on the working set: how far from its optimum?"""
    _, c, _, lo, hi = relaxed
    features, v, x, t, root, gains = working
    linear, penalty, forced, quadratic = 0.0, 0.0, 0.0, 0.0
    boxed = False
    m = 0
    for i in range(size):
        j = features[i]
        linear -= x[i] * (c[j] + v[i])
        quadratic += x[i] * (c[j] - v[i])
        gain = gain_of(v[i], t[i], lo[j], hi[j])
        if state[j] == IN or level == 0.0:
            penalty += t[i] * x[i] * x[i]
            forced += gain
            continue
        gains[m] = gain
        m += 1
        if x[i] != 0.0:
            reach = hi[j] if x[i] > 0 else -lo[j]
            knee = min(level / root[i], reach)
            boxed = boxed or knee == reach
            z = min(1.0, abs(x[i]) / knee)
            penalty += t[i] * x[i] * x[i] / z * max(1.0, total / r)
    # Scaling z down to sum to r is not possible where z is tied to a box.
    feasible = not boxed or total <= 1.002 * r
    primal = 1.0 + linear + penalty if feasible else np.inf
    return primal, 1.0 - quadratic - forced - sum_largest(gains, m, r)


@step
def _level_of_next(relaxed, state, u, listed):
    """Too few features share r: the level at which another one comes in."""
    _, _, t, lo, hi = relaxed
    largest = 0.0
    for j in range(state.shape[0]):
        if state[j] == FREE and not listed[j]:
            largest = max(largest, gain_of(u[j], t[j], lo[j], hi[j]))
    return 0.9 * math.sqrt(largest)
