"""Bounds by clusters: a good dual vector by quasi-Newton steps, and what it proves.

The bound (theory: cluster-bound), smoothed at a temperature, is concave in g. In the metric of Q
its ascent direction is b - g, where b is the mean choice.
"""

from typing import NamedTuple

import numpy as np

from bestk.base.compiling import kernel
from bestk.base.constants import UNIT_ROUNDOFF
from bestk.bounds.kernels.choice import Options, choose
from bestk.bounds.kernels.conclude import proven
from bestk.bounds.kernels.vectors import add, dot, times
from bestk.form.dense import slope_errors

# Temperature of the exact maximum.
_COLD = 1e-9


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


class Memory(NamedTuple):
    """The last steps s and changes of gradient y, with Q s, Q y and 1 / s'Q y; oldest first."""

    s: np.ndarray
    y: np.ndarray
    Qs: np.ndarray
    Qy: np.ndarray
    inverse: np.ndarray
    filled: np.ndarray


class Point(NamedTuple):
    """A dual vector with Q g, the gradient of the smoothed bound there, and its value."""

    g: np.ndarray
    Qg: np.ndarray
    gradient: np.ndarray
    value: np.ndarray


@kernel
def memory_for(p, size):
    return Memory(
        np.empty((size, p)), np.empty((size, p)), np.empty((size, p)), np.empty((size, p)),
        np.empty(size), np.zeros(1, np.int64),
    )  # fmt: skip


@kernel
def point_at(clusters, g, state, k, mu):
    """The dual vector g, evaluated at temperature mu; `g` is kept and moves."""
    p = len(g)
    point = Point(g, np.empty(p), np.empty(p), np.empty(1))
    times(clusters.Q, g, point.Qg)
    c, options = clusters.c, clusters.options
    point.value[0] = _evaluate(c, options, g, point.Qg, state, k, mu, point.gradient)
    return point


@kernel
def climb(clusters, point, memory, state, k, mu, cutoff, closeness, steps):
    """At most so many steps; whether that was enough. Called again, it goes on."""
    Q, c, options = clusters.Q, clusters.c, clusters.options
    p = len(c)
    g, Qg, gradient, _ = point
    direction, Qdirection, new_g, new_Qg, new_gradient = (
        np.empty(p), np.empty(p), np.empty(p), np.empty(p), np.empty(p),
    )  # fmt: skip
    weights = np.empty(len(memory.inverse))
    for _ in range(steps):
        bound = point.value[0]
        if bound >= cutoff:
            return True
        _direction(memory, gradient, direction, weights)
        times(Q, direction, Qdirection)
        slope, length = 2.0 * dot(Qdirection, gradient), 1.0
        while True:
            for j in range(p):
                new_g[j] = g[j] + length * direction[j]
                new_Qg[j] = Qg[j] + length * Qdirection[j]
            new = _evaluate(c, options, new_g, new_Qg, state, k, mu, new_gradient)
            if new >= bound + 1e-4 * length * slope or length < 1e-3:
                break
            length *= 0.4
        _remember(Q, memory, length, direction, Qdirection, gradient, new_gradient)
        gained = new - bound
        if gained > 0.0:
            point.value[0] = new
            for j in range(p):
                g[j], Qg[j], gradient[j] = new_g[j], new_Qg[j], new_gradient[j]
        if gained < closeness * abs(cutoff - point.value[0]):
            return True
    return False


@kernel
def prove(clusters, g, state, k, with_feature):
    """The bound of g, valid in floating point; with each feature forced in, `with_feature`.

    See theory: cluster-rounding.
    """
    Q, c, options, floor, m, eps = clusters
    p = len(c)
    Qg, b = np.empty(p), np.zeros(p)
    times(Q, g, Qg)
    quadratic, size = 0.0, 0.0
    for j in range(p):
        quadratic += g[j] * Qg[j]
        size += abs(g[j])
    error, lost = slope_errors(p + 6, size, eps)
    total = choose(options, c - Qg, state, k, _COLD, b, with_feature)
    relative = UNIT_ROUNDOFF * (64.0 / floor**2 + 8.0 * m**3 / floor) + 1e-12
    # |u| enters through a norm with eigenvalues up to 1 / floor, at most p entries of it.
    moved = error * np.sqrt(p / floor)
    for j in range(p):
        root = np.sqrt(max(with_feature[j], 0.0) * (1.0 + relative)) + moved
        with_feature[j] = proven(quadratic, root * root, lost, eps, p)
    root = np.sqrt(max(total, 0.0) * (1.0 + relative)) + moved
    return proven(quadratic, root * root, lost, eps, p)


@kernel
def _evaluate(c, options, g, Qg, state, k, mu, gradient):
    """The smoothed bound; its gradient in the metric of Q, up to a factor 2."""
    u = c - Qg
    for j in range(len(g)):
        gradient[j] = 0.0
    total = choose(options, u, state, k, mu, gradient, np.empty(0))
    for j in range(len(g)):
        gradient[j] -= g[j]
    return 1.0 - dot(g, Qg) - total


@kernel
def _direction(memory, gradient, direction, weights):
    """The L-BFGS direction in the metric of Q."""
    s, y, Qs, Qy, inverse, count = memory
    p, last = len(gradient), count[0] - 1
    for j in range(p):
        direction[j] = gradient[j]
    for i in range(last, -1, -1):
        weights[i] = inverse[i] * dot(Qs[i], direction)
        add(direction, -weights[i], y[i])
    scale = 0.2 if last < 0 else dot(Qs[last], y[last]) / dot(Qy[last], y[last])
    for j in range(p):
        direction[j] *= scale
    for i in range(last + 1):
        add(direction, weights[i] - inverse[i] * dot(Qy[i], direction), s[i])


@kernel
def _remember(Q, memory, length, direction, Qdirection, gradient, new_gradient):
    s, y, Qs, Qy, inverse, count = memory
    size = len(inverse)
    if count[0] == size:
        for i in range(size - 1):
            inverse[i] = inverse[i + 1]
            for j in range(s.shape[1]):
                s[i, j], y[i, j] = s[i + 1, j], y[i + 1, j]
                Qs[i, j], Qy[i, j] = Qs[i + 1, j], Qy[i + 1, j]
        count[0] -= 1
    i = count[0]
    for j in range(s.shape[1]):
        s[i, j], Qs[i, j] = length * direction[j], length * Qdirection[j]
        y[i, j] = gradient[j] - new_gradient[j]
    times(Q, y[i], Qy[i])
    curvature = dot(s[i], Qy[i])
    if curvature > 0.0:
        inverse[i] = 1.0 / curvature
        count[0] += 1
