"""Bounds by clusters: a good dual vector by quasi-Newton steps, and what it proves.

The bound (theory: cluster-bound), smoothed at a temperature, is concave in g. In the metric of Q
its ascent direction is b - g, where b is the mean choice.
"""

from typing import NamedTuple

import numpy as np

from bestk.base.arithmetic import add, add_row, dot
from bestk.base.compiling import kernel, step
from bestk.base.constants import UNIT_ROUNDOFF
from bestk.bounds.kernels.choice import (
    Options,
    Room,
    enter,
    largest_gain,
    largest_gains_with,
    room_for_choices,
)
from bestk.bounds.kernels.conclude import proven
from bestk.bounds.kernels.smoothing import smoothed_gain
from bestk.form.dense import slope_errors

# Bounds that exceed the cutoff by this share of it will do so when they are proven.
_SPARE = 1e-6


class Clusters(NamedTuple):
    """A split with clusters as kernels want it; see :class:`bestk.bounds.clusters.ClusterSplit`.

    ``floor`` bounds the eigenvalues of T from below, less what is unknown about the data and about
    Q; ``largest`` is the number of features in a cluster, at most.
    """

    Q: np.ndarray
    c: np.ndarray
    options: Options
    floor: float
    largest: int
    eps: float


class Point(NamedTuple):
    """A dual vector g, and the gradient of the smoothed bound there, both with their product by Q.

    ``values`` are the smoothed bound and the bound.
    """

    g: np.ndarray
    Qg: np.ndarray
    gradient: np.ndarray
    Qgradient: np.ndarray
    values: np.ndarray


class Memory(NamedTuple):
    """The last steps s and changes of gradient y, with Q s, Q y and 1 / s'Q y, in turn.

    ``steps`` is how many there have been.
    """

    s: np.ndarray
    y: np.ndarray
    Qs: np.ndarray
    Qy: np.ndarray
    inverse: np.ndarray
    weights: np.ndarray
    steps: np.ndarray


class Work(NamedTuple):
    """All that an ascent works with, for one k: made once for many nodes."""

    here: Point
    new: Point
    direction: np.ndarray
    Qdirection: np.ndarray
    u: np.ndarray
    evaluations: np.ndarray
    memory: Memory
    room: Room


@kernel
def work_for(clusters, k, size):
    """Room for ascents that remember `size` steps."""
    p = len(clusters.c)
    here = Point(np.empty(p), np.empty(p), np.empty(p), np.empty(p), np.empty(2))
    new = Point(np.empty(p), np.empty(p), np.empty(p), np.empty(p), np.empty(2))
    memory = Memory(
        np.empty((size, p)), np.empty((size, p)), np.empty((size, p)), np.empty((size, p)),
        np.empty(size), np.empty(size), np.zeros(1, np.int64),
    )  # fmt: skip
    room = room_for_choices(clusters.options, k)
    return Work(here, new, np.empty(p), np.empty(p), np.empty(p), np.zeros(1), memory, room)


@kernel
def begin(clusters, work, g, state, k, mu):
    """Start an ascent at g, at temperature mu.

    It remembers the steps of earlier ones: curvature is much the same from node to node.
    """
    here = work.here
    here.g[:] = g
    enter(clusters.options, state, work.room)
    sparse_times(clusters.Q, here.g, here.Qg)
    _evaluate(clusters, work, here, state, k, mu)
    _complete(clusters.Q, here)


@kernel
def climb(clusters, work, state, k, mu, cutoff, closeness, steps):
    """At most so many steps; whether that was enough. Called again, it goes on."""
    here, new, direction, Qdirection, _, _, memory, _ = work
    p, enough = len(here.g), cutoff + _SPARE * abs(cutoff)
    for _ in range(steps):
        if here.values[1] >= enough:
            return True
        _set_direction(memory, here, direction, Qdirection)
        bound, slope, length = here.values[0], 2.0 * dot(Qdirection, here.gradient), 1.0
        while True:
            for j in range(p):
                new.g[j] = here.g[j] + length * direction[j]
                new.Qg[j] = here.Qg[j] + length * Qdirection[j]
            _evaluate(clusters, work, new, state, k, mu)
            if new.values[0] >= bound + 1e-4 * length * slope or length < 1e-3:
                break
            length *= 0.4
        _complete(clusters.Q, new)
        _remember(memory, here, new)
        gained = new.values[0] - bound
        if gained > 0.0:
            _copy(new, here)
        if gained < closeness * abs(cutoff - here.values[0]):
            return True
    return False


@kernel
def prove(clusters, work, g, state, k, cutoff, with_feature):
    """The bound of g, valid in floating point (theory: cluster-rounding).

    If it is below the cutoff, `with_feature` receives the bounds with each feature forced in.
    """
    Q, c, options, floor, m, eps = clusters
    p, Qg, u = len(c), work.new.Qg, work.u
    sparse_times(Q, g, Qg)
    quadratic, size = 0.0, 0.0
    for j in range(p):
        u[j] = c[j] - Qg[j]
        quadratic += g[j] * Qg[j]
        size += abs(g[j])
    error, lost = slope_errors(p + 6, size, eps)
    relative = UNIT_ROUNDOFF * (64.0 / floor**2 + 8.0 * m**3 / floor) + 1e-11
    # |u| enters through a norm with eigenvalues up to 1 / floor, at most p entries of it.
    moved = error * np.sqrt(p / floor)
    enter(options, state, work.room)
    gain = _moved(largest_gain(options, u, state, k, work.room), relative, moved)
    bound = proven(quadratic, gain, lost, eps, p)
    if bound < cutoff:
        largest_gains_with(options, state, k, work.room, with_feature)
        for j in range(p):
            gain = _moved(with_feature[j], relative, moved)
            with_feature[j] = proven(quadratic, gain, lost, eps, p)
    return bound


@kernel
def sparse_times(Q, x, out):
    """out = Q x for a symmetric Q: dual vectors have many zeros."""
    p = len(x)
    for j in range(p):
        out[j] = 0.0
    for j in range(p):
        if x[j] != 0.0:
            add_row(out, x[j], Q, j, p)


@kernel
def _moved(gain, relative, moved):
    root = np.sqrt(max(gain, 0.0) * (1.0 + relative)) + moved
    return root * root


@kernel
def _evaluate(clusters, work, point, state, k, mu):
    """Both bounds at a point; the gradient becomes the mean choice b."""
    g, Qg, u = point.g, point.Qg, work.u
    work.evaluations[0] += 1.0
    for j in range(len(g)):
        u[j] = clusters.c[j] - Qg[j]
    smooth, largest = smoothed_gain(clusters.options, u, state, k, mu, work.room, point.gradient)
    rest = 1.0 - dot(g, Qg)
    point.values[0], point.values[1] = rest - smooth, rest - largest


@step
def _complete(Q, point):
    """From the mean choice b to the gradient in the metric of Q, b - g, up to a factor 2."""
    sparse_times(Q, point.gradient, point.Qgradient)
    for j in range(len(point.g)):
        point.gradient[j] -= point.g[j]
        point.Qgradient[j] -= point.Qg[j]


@step
def _copy(new, here):
    for j in range(len(here.g)):
        here.g[j], here.Qg[j] = new.g[j], new.Qg[j]
        here.gradient[j], here.Qgradient[j] = new.gradient[j], new.Qgradient[j]
    here.values[0], here.values[1] = new.values[0], new.values[1]


@step
def _set_direction(memory, here, direction, Qdirection):
    """The L-BFGS direction in the metric of Q, and its product by Q: a sum of known ones."""
    s, y, Qs, Qy, inverse, weights, steps = memory
    size, p = len(inverse), len(direction)
    last, first = steps[0] - 1, max(steps[0] - size, 0)
    for j in range(p):
        direction[j], Qdirection[j] = here.gradient[j], here.Qgradient[j]
    for turn in range(last, first - 1, -1):
        i = turn % size
        weights[i] = inverse[i] * dot(Qs[i], direction)
        add(direction, -weights[i], y[i])
        add(Qdirection, -weights[i], Qy[i])
    i = last % size
    scale = 0.2 if last < 0 else 1.0 / (inverse[i] * dot(Qy[i], y[i]))
    for j in range(p):
        direction[j] *= scale
        Qdirection[j] *= scale
    for turn in range(first, last + 1):
        i = turn % size
        weight = weights[i] - inverse[i] * dot(Qy[i], direction)
        add(direction, weight, s[i])
        add(Qdirection, weight, Qs[i])


@step
def _remember(memory, here, new):
    s, y, Qs, Qy, inverse, _, steps = memory
    i = steps[0] % len(inverse)
    for j in range(len(here.g)):
        s[i, j], Qs[i, j] = new.g[j] - here.g[j], new.Qg[j] - here.Qg[j]
        y[i, j] = here.gradient[j] - new.gradient[j]
        Qy[i, j] = here.Qgradient[j] - new.Qgradient[j]
    curvature = dot(s[i], Qy[i])
    if curvature > 0.0:
        inverse[i] = 1.0 / curvature
        steps[0] += 1
