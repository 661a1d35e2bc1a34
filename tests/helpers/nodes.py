"""Bounds of the nodes of tiny problems: the formula, the kernel, and vectors to try."""

import numpy as np

from bestk.base.constants import FREE, IN
from bestk.base.threads import Workers
from bestk.bounds.kernels import certify
from bestk.bounds.methods import Batch, bound_and_fix, make_method
from helpers.instances import make_node


def h(form, t, state, r, g):
    """The bound h(g), theory eq. 3, as the formula says it: no allowance for rounding."""
    u = form.c - (form.A - np.diag(t)) @ g
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        v = np.clip(np.where(u == 0.0, 0.0, u / t), form.lo, form.hi)
        phi = np.where(u == 0.0, 0.0, v * (2.0 * u - t * v))
    phi[np.isnan(phi)] = np.inf
    free = np.sort(phi[state == FREE])[::-1]
    quadratic = g @ (form.A - np.diag(t)) @ g
    return 1.0 - quadratic - phi[state == IN].sum() - free[:r].sum()


def certified(form, t, state, r, g, k, *, cutoff=np.inf, fix=False, eps=None):
    """(bound, states after fixing)."""
    state, phi = state.copy(), np.empty(form.p)
    eps = form.eps if eps is None else eps
    bound, _ = certify(
        form.A, form.c, t, form.lo, form.hi, state, r, g, eps, k, cutoff, fix, phi
    )  # fmt: skip
    return bound, state


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


def certify_all(case, name, t_split, cutoff=np.inf):
    batch = Batch(
        states=case.state[None].copy(),
        duals=np.zeros((1, case.form.p)),
        levels=np.zeros(1),
        bounds=np.full(1, -np.inf),
        work=np.zeros(1),
    )
    with Workers(1) as workers:
        method = make_method(name, case.form, t_split, workers)
        bound_and_fix(method, case.form, t_split, batch, case.k, cutoff, False, workers)
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
