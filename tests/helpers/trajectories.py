"""Trajectories whose equations are known, and their terms by other means than PySINDy's."""

import numpy as np

STEP = 0.002
KS, ALPHAS = range(1, 5), (1e-5, 0.05)


def oscillator(t, decay=0.1, start=(2.0, 0.0)):
    """x' = -decay x + 2 y, y' = -2 x - decay y, exactly."""
    rotated = np.exp((-decay - 2j) * (t - t[0])) * (start[0] + 1j * start[1])
    return np.c_[rotated.real, rotated.imag]


def supports(found):
    return [set(result.names) for result in found.results]


def lorenz_terms():
    return [{"x", "y"}, {"x", "y", "x z"}, {"z", "x y"}]


def pipeline(states):
    """(terms, derivatives) by other means than PySINDy's."""
    from scipy.signal import savgol_filter

    smooth = savgol_filter(states, 9, 3, axis=0)
    derivatives = np.gradient(smooth, STEP, axis=0, edge_order=2)
    columns = [np.ones(len(states))]
    for degree in (1, 2, 3):
        for powers in sorted(
            {p for p in np.ndindex(degree + 1, degree + 1, degree + 1) if sum(p) == degree},
            reverse=True,
        ):
            columns.append(np.prod(states ** np.array(powers), axis=1))
    return np.column_stack(columns), derivatives


def table(n=60, d=2):
    return np.random.default_rng(0).standard_normal((n, d)).cumsum(axis=0)


T = np.arange(60.0)
