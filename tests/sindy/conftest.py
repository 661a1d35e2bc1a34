"""A noisy trajectory and the equations found in it."""

import pytest
from helpers.trajectories import ALPHAS, KS, STEP

from bestk.datasets import simulate
from bestk.sindy import discover


@pytest.fixture(scope="module")
def states():
    return simulate("lorenz", 3.0, noise=0.002)


@pytest.fixture(scope="module")
def found(states):
    return discover(states, STEP, degree=3, names=["x", "y", "z"], ks=KS, alphas=ALPHAS)
