"""Data and rows that tests of the benchmarks share."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness.arena import Instance
from benchmarks.harness.contest import Row


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    return X, X[:, 0] - X[:, 3] + 0.3 * rng.standard_normal(30)


@pytest.fixture
def row():
    """Makes a closed row of a small instance, with changes."""

    def make(contender="bestk", **changes):
        default = Row(
            **{"n": 30, "p": 6, "rho": 0.5, "alpha": 0.1, "k": 2},
            contender=contender,
            threads=1,
            limit=10.0,
            seconds=1.0,
            nodes=3,
            objective=5.0,
            lower_bound=5.0,
            yy=20.0,
            size=2,
            true_features=2,
            complaint="",
            notes="{}",
            versions="python 3, numpy 2",
            commit="abc",
        )
        return replace(default, **changes)

    assert make().instance == Instance(30, 6, 0.5, 0.1, 2)
    return make
