"""Export the polynomial flows of dysts: dysts_export.py DEGREE ROWS_PER_PERIOD PERIODS FILE ANSWER.

A flow qualifies if polynomials of at most DEGREE, fitted to its right-hand side at random points,
agree with it to rounding at other points, ten times as far out and at another time. For each there
are its coefficients (dims, p) with monomials by degree, then by variables, the time step, and a
trajectory without noise from the initial state that dysts gives. Runs in an environment of its own.
"""

import json
import sys
import warnings
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # dysts misses numba
    from dysts import flows
    from dysts.systems import get_attractor_list

# Fits and their checks are good to 1e-12 or better, LorenzBounded's on some machines only just;
# functions that are no polynomials miss by percents.
ROUNDING = 1e-10


def terms(x, degree):
    """All monomials at the points x (n, dims)."""
    dims = x.shape[1]
    monomials = [
        m for d in range(degree + 1) for m in combinations_with_replacement(range(dims), d)
    ]
    return np.column_stack([np.prod(x[:, list(m)], axis=1) for m in monomials])


def coefficients(flow, dims, degree):
    """(dims, p) of the right-hand side as polynomials, or None if it is no such thing."""

    def sample(radius, n, t):
        points = np.random.default_rng(n).uniform(-radius, radius, (n, dims))
        return terms(points, degree), np.array([flow.rhs(x, t) for x in points])

    p = terms(np.zeros((1, dims)), degree).shape[1]
    X, Y = sample(10.0, 2 * p + 20, t=0.0)
    if not np.isfinite(Y).all():
        return None
    norms = np.linalg.norm(X, axis=0)
    fitted, squares, *_ = np.linalg.lstsq(X / norms, Y, rcond=None)
    if (squares > ROUNDING * np.sum(Y**2, axis=0)).any():
        return None
    coef = np.zeros((dims, p))
    for equation, scaled, y in zip(coef, fitted.T, Y.T, strict=True):
        # Again: a fit of what is there is free of the rounding of what is not.
        support = np.abs(scaled) > ROUNDING * np.abs(scaled).max()
        equation[support] = np.linalg.lstsq(X[:, support], y, rcond=None)[0]
    X, Y = sample(100.0, 200, t=np.pi)
    wrong = np.abs(Y - X @ coef.T) > ROUNDING * (np.abs(X) @ np.abs(coef).T)
    return None if wrong.any() or not np.isfinite(Y).all() else coef


def trajectory(flow, t):
    solution = solve_ivp(
        lambda time, x: flow.rhs(x, time),
        (t[0], t[-1]),
        np.asarray(flow.ic, dtype=float),
        method="LSODA",
        t_eval=t,
        rtol=1e-12,
        atol=1e-12,
    )
    if len(solution.t) < len(t):
        raise RuntimeError(f"{flow.name}: {solution.message}")
    return solution.y.T


def main(degree, rows_per_period, periods, file, answer):
    export = {}
    for name in get_attractor_list():
        flow = getattr(flows, name)()
        if flow.delay:
            continue
        with np.errstate(all="ignore"):
            coef = coefficients(flow, np.size(flow.ic), int(degree))
        if coef is None:
            continue
        dt = flow.period / int(rows_per_period)
        export[f"{name}/coef"] = coef
        export[f"{name}/dt"] = dt
        export[f"{name}/states"] = trajectory(
            flow, dt * np.arange(int(rows_per_period) * int(periods))
        )
    np.savez(file, **export)
    Path(answer).write_text(json.dumps({"flows": len(export) // 3}))


if __name__ == "__main__":
    main(*sys.argv[1:])
