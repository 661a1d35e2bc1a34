"""Units in flight: the same certificate on any number of threads, and whenever a limit comes."""

import numpy as np
import pytest
from helpers.checks import assert_same_run
from helpers.engines import Hostile, exploring_with
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

import bestk
from bestk import Status
from bestk.runs.watch import Watch
from bestk.subtrees import engines


def synthetic():
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    return X, y


def small():
    X, y, _ = bestk.datasets.make_synthetic(60, 25, k=8, rho=0.9)
    return X, y


def diabetes():
    """Ten features, their squares and their products."""
    X, y = load_diabetes(return_X_y=True)
    return PolynomialFeatures(2, include_bias=False).fit_transform(X), y


@pytest.mark.parametrize(
    ("data", "k", "options"),
    [
        (synthetic, 8, {}),
        (synthetic, 10, {"alpha": 1e-2, "include": [7], "exclude": [3, 4]}),
        (synthetic, 8, {"bounds": (-3.0, 3.0)}),
        (diabetes, 10, {"fit_intercept": True}),
    ],
)
def test_certificates_do_not_depend_on_threads(data, k, options):
    X, y = data()
    one = bestk.solve(X, y, k, **options, n_threads=1, node_limit=1000)
    assert one.n_nodes > 10
    for n_threads in (2, 3):
        other = bestk.solve(X, y, k, **options, n_threads=n_threads, node_limit=1000)
        assert_same_run(other, one)
    with exploring_with(Hostile(0)) as hostile:
        assert_same_run(bestk.solve(X, y, k, **options, n_threads=1, node_limit=1000), one)
    assert hostile.n_units > 3


class Clock:
    """Says that it is late from the n-th time on that it is asked while units are in flight."""

    def __init__(self, monkeypatch, times):
        self.left, self.is_waiting = times, False
        clock, is_late = self, Watch.is_late

        def asked(self):
            clock.left -= clock.is_waiting
            return clock.left < 0 or is_late(self)

        monkeypatch.setattr(Watch, "is_late", asked)
        for engine in (engines.Serial, engines.Threads):
            monkeypatch.setattr(engine, "get", self.during(engine.get))
        monkeypatch.setattr(engines, "_LOOK", 1e-4)

    def during(self, get):
        def watched(*arguments):
            self.is_waiting = True
            try:
                return get(*arguments)
            finally:
                self.is_waiting = False

        return watched


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("times", [0, 1, 2, 5, 9, 20, 41])
def test_a_limit_in_mid_flight_leaves_a_bound_and_a_checkpoint(times, n_threads, tmp_path, force):
    force.units(nodes=5, in_flight=4, close=0.0)
    force.closed_in_units_only()
    (X, y), path = small(), tmp_path / "run.ckpt"
    options = {"alpha": 1e-3, "n_threads": n_threads}
    whole = bestk.solve(X, y, 5, **options)
    assert whole.n_nodes > 50
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch, times)
        stopped = bestk.solve(X, y, 5, **options, checkpoint=path)
    # Threads are asked as often as they are waited for: they may be done before, or in time.
    was_late = stopped.status is Status.TIME_LIMIT
    assert was_late == (clock.left < 0) or (n_threads > 1 and stopped.gap <= 1e-4)
    assert stopped.lower_bound <= whole.lower_bound
    assert stopped.objective >= whole.objective
    if was_late:
        assert stopped.n_nodes < whole.n_nodes
        assert stopped.lower_bound < stopped.objective
    assert stopped.certificate.verify(X, y)
    assert_same_run(bestk.resume(path, X, y), whole)
    with exploring_with(Hostile(times)):
        assert_same_run(bestk.resume(path, X, y), whole)


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 20, 33])
def test_a_node_limit_is_kept_whatever_the_units(limit, force):
    """Up to a few nodes, and by units that are cut as well as by those that are not taken."""
    X, y = small()
    for nodes in (1, 2, 3, 32):
        force.units(nodes=nodes, in_flight=4, close=0.0)
        force.closed_in_units_only()
        result = bestk.solve(X, y, 5, alpha=1e-3, node_limit=limit)
        assert result.status is Status.NODE_LIMIT
        assert result.n_nodes <= limit + 2
        assert result.certificate.verify(X, y)


def test_the_smallest_units_end(force):
    """A unit branches once whatever its budget, with charges of its own, too."""
    X, y = small()
    force.closed_in_units_only()
    objectives = []
    for nodes in (1, 2, 300):
        force.units(nodes=nodes, in_flight=8, close=1e-4)
        objectives.append(bestk.solve(X, y, 5, alpha=1e-3).objective)
    force.own_charges()
    force.units(nodes=1, in_flight=8, close=1e-4)
    objectives.append(bestk.solve(X, y, 5, alpha=1e-3).objective)
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-4)
