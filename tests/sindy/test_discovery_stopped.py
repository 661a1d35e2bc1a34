"""discover and OKRidge under limits and Ctrl-C: what there is, and what is not proven."""

import numpy as np
import pytest
from helpers.trajectories import STEP, pipeline
from sklearn.exceptions import ConvergenceWarning

from bestk import Status
from bestk.sindy import OKRidge, discover


class Impatient:
    """Ctrl-C at the n-th update."""

    def __init__(self, updates):
        self.left = updates

    def update(self, snapshot):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def close(self):
        pass


def test_an_interruption_gives_what_there_is(states):
    with pytest.warns(ConvergenceWarning, match="left for . of . equations: a model"):
        found = discover(states, STEP, degree=5, alphas=[1e-5], progress=Impatient(1))
    assert found.grids[0][1e-5].results[-1].status is Status.INTERRUPTED
    reached = len(found.grids[0][1e-5])
    assert reached < 5
    assert np.isinf(found.scores[0, 0, reached:]).all()
    assert np.isfinite(found.scores[1:]).all()
    assert found.share_proven < 1.0
    assert not found.is_proven
    for result in found.searches:
        assert (result.status is Status.OPTIMAL) == (result.gap == 0.0)
        assert result.lower_bound <= result.objective
    assert "not proven" in str(found)


def test_a_time_limit_leaves_gaps_and_says_so(states):
    with pytest.warns(ConvergenceWarning, match=r"gap of \d+\.\d\d% left") as caught:
        found = discover(states, STEP, degree=5, ks=[3], alphas=[1e-5], time_limit=0.0)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    assert {result.status for result in found.results} == {Status.TIME_LIMIT}
    assert not found.is_proven
    assert "time limit" in found.summary()
    assert Status.TIME_LIMIT.advice in found.summary()
    assert all("gap" in remark for remark in found.remarks)
    assert (found.margins >= 0).all()


def test_ctrl_c_spares_the_other_equations_of_the_optimizer(states, monkeypatch):
    """After the first equation was interrupted, the others only take their warm start."""
    from bestk.search import tree

    calls = []
    report = tree.Tree._report

    def interrupted(self):
        calls.append(self.settings.time_limit)
        report(self)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(tree.Tree, "_report", interrupted)
    X, Y = pipeline(states)
    with pytest.warns(ConvergenceWarning):
        optimizer = OKRidge(k=4, gap_tol=0.0).fit(X, Y)
    assert optimizer.results_[0].status is Status.INTERRUPTED
    assert set(calls[1:]) == {0.0}
    assert np.count_nonzero(optimizer.coef_, axis=1).tolist() == [4, 4, 4]
