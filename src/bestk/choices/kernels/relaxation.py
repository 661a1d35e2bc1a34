"""Dual vectors and multipliers of a node, compiled: block coordinate descent on its relaxation.

    min  1 - 2 c'x + x'A x + sum over FREE groups of (1/z_g - 1) sum_j t_j x_j^2,   sum z_g <= r,

and the constraints, as an augmented Lagrangian. A group whose block of A is the identity moves as a
whole, in closed form; groups that are IN are solved for together. Nothing here needs to be exact:
any x is a valid dual vector, with any multipliers, and what they prove is decided in ``bound.py``.
"""

import math
from typing import NamedTuple

import numpy as np

from bestk.base.arithmetic import add_row
from bestk.base.compiling import kernel, put, step
from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.kernels.cholesky import factor, solve_factored
from bestk.bounds.kernels.gains import gain_of, sum_largest
from bestk.form.dense import residual

# Sweeps in all; with constraints multipliers move after every few.
_SWEEPS, _AT_ONCE = 48, 4
# Coordinates that are solved for all at once, and rounds of multipliers for that.
_MOST_SOLVED, _ROUNDS = 200, 12
# A share of what is missing to the cutoff that is much.
_MUCH = 0.2
# What is not worth another sweep, as a share of what is missing to the cutoff.
_CLOSE = 5e-3
# Sections of an interval in which the best share z of a group with bounds is looked for.
_SECTIONS = 10


class Penalty(NamedTuple):
    """Constraints as the descent sees them: A + sum of weight_i C_i C_i', and the weights."""

    A: np.ndarray
    weights: np.ndarray


@kernel
def relax(space, penalty, t, state, r, x, lam, level, cutoff, solves):
    """Look for a better dual vector x and multipliers lam, in place; (level, multiplies).

    With `solves` the fit with everything is tried, too, where sweeps do not get far.
    """
    p, q = space.c.shape[0], space.C.shape[0]
    A, root = penalty.A, roots(t)
    inside, n_inside, n_free = _inside(space, state, x)
    U = np.empty((n_inside, n_inside))
    is_solvable = _factored(space, A, inside, n_inside, U)
    if r == 0 or r >= n_free:
        level = 0.0
    slack, c, u = np.empty(q), np.empty(p), np.empty(p)
    best, best_level = -np.inf, level
    best_x, best_lam, here, moved = np.empty(p), np.empty(q), np.empty(p), np.empty(q)
    multiplies, stalled = 0.0, 0
    for _ in range(_SWEEPS // _AT_ONCE):
        _targets(space, penalty, x, lam, slack, c)
        residual(A, c, t, x, u)
        if level <= 0.0 and 0 < r < n_free:
            level = _first_level(space, t, state, r, u)
        total = 0.0
        for _ in range(_AT_ONCE):
            if is_solvable:
                _solve_inside(A, t, inside, n_inside, U, x, u, here)
            total = _sweep(space, A, t, root, state, is_solvable, level, x, u)
            if level > 0.0 and r > 0:
                level *= min(max(total / r, 0.4), 2.5) ** 0.4
        if is_solvable:
            _solve_inside(A, t, inside, n_inside, U, x, u, here)
        multiplies += _AT_ONCE * (n_inside + 4.0 * (r + 4)) * p
        _multipliers(space, penalty, x, lam, slack, moved)
        put(lam, moved)
        value = _value(space, t, state, r, x, lam, u)
        gained = value - best
        if value > best:
            best, best_level = value, level
            put(best_x, x)
            put(best_lam, lam)
        stalled = 0 if gained > _CLOSE * max(cutoff - best, 1e-6) else stalled + 1
        if best >= cutoff or stalled >= 2:
            break
    if best > -np.inf:
        put(x, best_x)
        put(lam, best_lam)
    if solves and best < cutoff and _solve_all(space, penalty, state, best_x, best_lam):
        multiplies += p * p * p / 3.0
        value = _value(space, t, state, r, best_x, best_lam, u)
        # It says little about which groups matter: taken only where it proves much more.
        if value > best + _MUCH * min(max(cutoff - best, 0.0), 1.0) and value > best:
            put(x, best_x)
            put(lam, best_lam)
    return best_level, multiplies


@kernel
def roots(t):
    """sqrt(t), zero where rounding makes it negative."""
    root = np.empty(t.shape[0])
    for j in range(t.shape[0]):
        root[j] = math.sqrt(max(t[j], 0.0))
    return root


@kernel
def _solve_all(space, penalty, state, x, lam):
    """The fit with everything that is not OUT, and its multipliers: whether there is one.

    Nearly dependent features make sweeps slow. But where they leave little more to gain than a good
    model has, this fit proves nearly all there is.
    """
    live, count = np.empty(space.c.shape[0], np.int64), 0
    for g in range(state.shape[0]):
        for j in range(space.starts[g], space.starts[g + 1]):
            x[j] = 0.0
            if state[g] != OUT:
                if space.lo[j] > -np.inf or space.hi[j] < np.inf:
                    return False
                live[count] = j
                count += 1
    if count == 0 or count > _MOST_SOLVED:
        return False
    U, here, is_solvable = np.empty((count, count)), np.empty(count), False
    for little in (0.0, 1e-12):
        for i in range(count):
            for e in range(i, count):
                U[i, e] = penalty.A[live[i], live[e]]
            U[i, i] += little
        if factor(U, count):
            is_solvable = True
            break
    if not is_solvable:
        return False
    q = lam.shape[0]
    slack, c, moved = np.empty(q), np.empty(x.shape[0]), np.empty(q)
    for _ in range(_ROUNDS if q > 0 else 1):
        _targets(space, penalty, x, lam, slack, c)
        for i in range(count):
            here[i] = c[live[i]]
        solve_factored(U, here, count)
        for i in range(count):
            x[live[i]] = here[i]
        _multipliers(space, penalty, x, lam, slack, moved)
        put(lam, moved)
    return True


@step
def _inside(space, state, x):
    """(coordinates that are IN, how many, how many groups that count are FREE); x is zero OUT."""
    inside, n_inside, n_free = np.empty(space.c.shape[0], np.int64), 0, 0
    for g in range(state.shape[0]):
        n_free += state[g] == FREE
        for j in range(space.starts[g], space.starts[g + 1]):
            if state[g] == IN:
                inside[n_inside] = j
                n_inside += 1
            elif state[g] == OUT:
                x[j] = 0.0
    return inside, n_inside, n_free


@step
def _factored(space, A, inside, n_inside, U):
    """Whether what is IN can be solved for together: no bounds, and a factor, which U then is."""
    for i in range(n_inside):
        j = inside[i]
        if space.lo[j] > -np.inf or space.hi[j] < np.inf:
            return False
        for e in range(i, n_inside):
            U[i, e] = A[j, inside[e]]
    return factor(U, n_inside)


@kernel
def _targets(space, penalty, x, lam, slack, c):
    """The c of the augmented Lagrangian, once the best slack variables are known."""
    for j in range(c.shape[0]):
        c[j] = space.c[j]
    for i in range(slack.shape[0]):
        weight, at = penalty.weights[i], 0.0
        for j in range(x.shape[0]):
            at += space.C[i, j] * x[j]
        slack[i] = min(max(at + lam[i] / (2.0 * weight), space.lower[i]), space.upper[i])
        pull = weight * slack[i] - 0.5 * lam[i]
        for j in range(c.shape[0]):
            c[j] += pull * space.C[i, j]


@kernel
def _multipliers(space, penalty, x, lam, slack, moved):
    """Those for which x is stationary in the Lagrangian itself."""
    for i in range(slack.shape[0]):
        at = 0.0
        for j in range(x.shape[0]):
            at += space.C[i, j] * x[j]
        moved[i] = lam[i] + 2.0 * penalty.weights[i] * (at - slack[i])
        # What points to a side that has no end proves nothing: rounding, mostly.
        if (moved[i] > 0.0 and space.upper[i] == np.inf) or (
            moved[i] < 0.0 and space.lower[i] == -np.inf
        ):
            moved[i] = 0.0


@kernel
def _solve_inside(A, t, inside, n_inside, U, x, u, here):
    """Minimise over all that is IN; u follows."""
    for i in range(n_inside):
        j = inside[i]
        here[i] = u[j] - t[j] * x[j]
    solve_factored(U, here, n_inside)
    for i in range(n_inside):
        j = inside[i]
        if here[i] != 0.0:
            x[j] += here[i]
            add_row(u, -here[i], A, j, u.shape[0])
            u[j] += t[j] * here[i]


@step
def _sweep(space, A, t, root, state, is_solved, level, x, u):
    """Minimise over one group after the other; the sum of z."""
    total = 0.0
    for g in range(state.shape[0]):
        first, end = space.starts[g], space.starts[g + 1]
        if state[g] == OUT or first == end or (state[g] == IN and is_solved):
            continue
        if state[g] == IN or level <= 0.0:
            _move_freely(space, A, t, x, u, first, end)
            total += state[g] == FREE
        elif end - first == 1 or space.is_round[g]:
            total += _move_round(space, A, t, root, level, x, u, first, end)
        else:
            total += _move_by_share(space, A, t, level, x, u, first, end)
    return total


@kernel
def _set(A, t, x, u, j, new):
    change = new - x[j]
    if change != 0.0:
        x[j] = new
        add_row(u, -change, A, j, u.shape[0])
        u[j] += t[j] * change


@step
def _move_freely(space, A, t, x, u, first, end):
    for j in range(first, end):
        a = u[j] + (A[j, j] - t[j]) * x[j]
        _set(A, t, x, u, j, min(max(a / A[j, j], space.lo[j]), space.hi[j]))


@step
def _move_round(space, A, t, root, level, x, u, first, end):
    """In closed form along the direction of the slopes; the group's z."""
    q, size = A[first, first] - t[first], 0.0
    for j in range(first, end):
        a = u[j] + q * x[j]
        size += a * a
    size = math.sqrt(size)
    reach = np.inf
    if end - first == 1:
        a = u[first] + q * x[first]
        reach = space.hi[first] if a > 0 else -space.lo[first]
    new, share = _best_size(size, q, t[first], root[first], reach, level)
    factor_ = new / size if size > 0.0 else 0.0
    for j in range(first, end):
        _set(A, t, x, u, j, factor_ * (u[j] + q * x[j]))
    return share


@kernel
def _best_size(a, q, t, root, reach, level):
    """(size of the group, its z): zero up to a threshold, then z grows from 0 to 1."""
    if reach * root >= level:
        knee, threshold = level / root if root > 0.0 else np.inf, root * level
    elif reach > 0.0:
        knee, threshold = reach, 0.5 * (t * reach + level * level / reach)
    else:
        return 0.0, 0.0
    if a <= threshold:
        return 0.0, 0.0
    if a - threshold < q * knee:
        new = (a - threshold) / q
        return new, new / knee
    return min(max(a / (q + t), knee), reach), 1.0


@step
def _move_by_share(space, A, t, level, x, u, first, end):
    """Coordinates for the share z that is best for them if they did not touch each other; z.

    With a = u + q x the part of coordinate j is  -2 a b + (q + t / z) b^2  over lo z <= b <= hi z,
    and the share itself costs level^2: convex in z, so sections find the best one.
    """
    gain = 0.0
    for j in range(first, end):
        gain += gain_of(u[j] + (A[j, j] - t[j]) * x[j], A[j, j], space.lo[j], space.hi[j])
    if gain <= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_SECTIONS):
        left, right = low + 0.382 * (high - low), high - 0.382 * (high - low)
        if _cost_of_share(space, A, t, level, x, u, first, end, left) <= _cost_of_share(
            space, A, t, level, x, u, first, end, right
        ):
            high = right
        else:
            low = left
    share = 0.5 * (low + high)
    if _cost_of_share(space, A, t, level, x, u, first, end, share) >= 0.0:
        share = 0.0
    for j in range(first, end):
        new = 0.0
        if share > 0.0:
            new = _at_share(space, A, t, x, u, share, j)
        _set(A, t, x, u, j, new)
    return share


@kernel
def _at_share(space, A, t, x, u, share, j):
    """The best coordinate j for a share of its group."""
    q = A[j, j] - t[j]
    new = (u[j] + q * x[j]) / (q + t[j] / share)
    return min(max(new, share * space.lo[j]), share * space.hi[j])


@kernel
def _cost_of_share(space, A, t, level, x, u, first, end, share):
    total = level * level * share
    for j in range(first, end):
        q, b = A[j, j] - t[j], _at_share(space, A, t, x, u, share, j)
        total += b * ((q + t[j] / share) * b - 2.0 * (u[j] + q * x[j]))
    return total


@step
def _first_level(space, t, state, r, u):
    """Somewhat below the mean of the r largest gains: then a few more than r leave zero."""
    ranked, m = np.empty(state.shape[0]), 0
    for g in range(state.shape[0]):
        if state[g] == FREE:
            ranked[m] = 0.0
            for j in range(space.starts[g], space.starts[g + 1]):
                ranked[m] += min(gain_of(u[j], t[j], space.lo[j], space.hi[j]), 4.0)
            m += 1
    return 0.7 * math.sqrt(sum_largest(ranked, m, r) / r)


@kernel
def _value(space, t, state, r, x, lam, u):
    """What x and lam prove, without rounding; u becomes their slopes."""
    p = x.shape[0]
    residual(space.A, space.c, t, x, u)
    quadratic, support = 0.0, 0.0
    for j in range(p):
        quadratic += x[j] * (space.c[j] - u[j])
    for i in range(lam.shape[0]):
        if lam[i] != 0.0:
            support += lam[i] * (space.upper[i] if lam[i] > 0.0 else space.lower[i])
            for j in range(p):
                u[j] -= 0.5 * lam[i] * space.C[i, j]
    ranked, m, forced = np.empty(state.shape[0]), 0, 0.0
    for g in range(state.shape[0]):
        if state[g] != OUT:
            gain = 0.0
            for j in range(space.starts[g], space.starts[g + 1]):
                gain += gain_of(u[j], t[j], space.lo[j], space.hi[j])
            if state[g] == IN:
                forced += gain
            else:
                ranked[m] = gain
                m += 1
    return 1.0 - support - quadratic - forced - sum_largest(ranked, m, r)
