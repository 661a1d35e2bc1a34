"""Bounds of the nodes of tiny problems: the formula, the kernel, and vectors to try."""

import numpy as np

from bestk.base.constants import FREE, IN
from bestk.base.threads import Workers
from bestk.bounds.kernels.conclude import Charges, Known, conclude_rows
from bestk.bounds.methods import bound_nodes, make_method
from bestk.bounds.node_batch import NodeBatch
from bestk.form.dense import DenseMatrix
from bestk.form.matrix import CAUTION
from helpers.instances import make_node


def h(form, t, state, r, g):
    """The bound h(g), theory: bound, as the formula says it: no allowance for rounding."""
    u = form.c - (form.A - np.diag(t)) @ g
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        v = np.clip(np.where(u == 0.0, 0.0, u / t), form.lo, form.hi)
        phi = np.where(u == 0.0, 0.0, v * (2.0 * u - t * v))
    phi[np.isnan(phi)] = np.inf
    free = np.sort(phi[state == FREE])[::-1]
    quadratic = g @ (form.A - np.diag(t)) @ g
    return 1.0 - quadratic - phi[state == IN].sum() - free[:r].sum()


def concluded(A, c, t, lo, hi, states, remaining, duals, eps, k, cutoff, fix):
    """(bounds, states after fixing) of nodes: slopes by the dense matrix, then the conclusion."""
    states, rows, bounds = states.copy(), np.arange(len(states)), np.empty(len(states))
    slopes = DenseMatrix(A).slopes(c, t, eps / CAUTION, states)
    slopes.set(rows, duals)
    known = Known(slopes.u, slopes.quadratic, slopes.error, slopes.lost)
    charges = Charges(t, lo, hi)
    conclude_rows(known, charges, rows, states, remaining, eps, k, cutoff, fix, bounds)
    return bounds, states


def certified(form, t, state, r, g, k, *, cutoff=np.inf, fix=False, eps=None):
    """(bound, state after fixing) of one node; by default without any caution."""
    bounds, states = concluded(
        form.A, form.c, t, form.lo, form.hi, state[None], np.array([r]), g[None],
        form.eps if eps is None else eps, k, cutoff, fix,
    )  # fmt: skip
    return bounds[0], states[0]


def random_dual(rng, case, t):
    """Noise, a perturbed fit of the best support, or the ridge solution; some entries zero."""
    p = case.form.p
    kind = rng.integers(3)
    if kind == 0 or not (t > 0).all():
        g = rng.standard_normal(p) * 10.0 ** rng.integers(-3, 2)
    elif kind == 1:
        best = list(min(case.values, key=case.values.get))
        g = np.zeros(p)
        inner = case.form.A[np.ix_(best, best)]
        g[best] = np.linalg.lstsq(inner, case.form.c[best], rcond=1e-12)[0]
    else:
        g = np.linalg.solve(case.form.A, case.form.c)
    return g * (rng.random(p) < 0.8)


def cases(first, count):
    """(random numbers, node) of the seeds that have one."""
    for seed in range(first, first + count):
        case = make_node(seed)
        if case is not None:
            yield np.random.default_rng([seed, 3]), case


def root_batch(states):
    """Nodes without warm starts, to be bounded."""
    return NodeBatch.of(states.copy(), np.zeros(states.shape), np.zeros(len(states)))


def certify_all(case, name, t_split, cutoff=np.inf):
    batch = root_batch(case.state[None])
    with Workers(1) as workers:
        method = make_method(name, case.form, t_split, workers)
        bound_nodes(method, case.form, t_split, batch, case.k, cutoff, False, workers)
    return batch


def well_posed(count, boxed):
    """Nodes whose relaxation is not trivial."""
    found = []
    seed = 0
    while len(found) < count:
        case = make_node(seed, "plain")
        seed += 1
        if case is None or case.form.is_boxed != boxed:
            continue
        if 0 < case.r < np.count_nonzero(case.state == FREE):
            found.append(case)
    return found
