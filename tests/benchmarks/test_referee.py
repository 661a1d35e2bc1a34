"""The referee of the benchmarks: what it believes, and what it refutes."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness.answering import Question
from benchmarks.harness.environments import run_solver
from benchmarks.harness.fitting import refit
from benchmarks.harness.process import peak_memory
from benchmarks.harness.referee import judge, refitted

ALPHA = 0.1


def honest_claim(X, y, support):
    coef, objective = refit(X, y, support, ALPHA)
    found = np.flatnonzero(coef)
    return {
        "seconds": 1.0,
        "nodes": 1,
        "support": found.tolist(),
        "coef": coef[found].tolist(),
        "objective": objective,
        "lower_bound": objective,
    }


# The referee -----------------------------------------------------------------------------------


def test_an_honest_claim_is_accepted(data):
    X, y = data
    claim = honest_claim(X, y, [0, 3])
    verdict = judge(X, y, k=2, alpha=ALPHA, claim=claim)
    residual = y - X[:, [0, 3]] @ np.array(claim["coef"])
    expected = residual @ residual + ALPHA * np.sum(np.square(claim["coef"]))
    assert verdict.objective == pytest.approx(expected)
    assert verdict.size == 2
    assert verdict.complaint == ""
    assert verdict.closed(1e-4)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"objective": 0.0}, "claims objective"),
        ({"lower_bound": 1e6}, "above a model's objective"),
        ({"support": [0, 3, 5], "coef": [1.0, -1.0, 0.1]}, "3 nonzeros"),
    ],
)
def test_false_claims_are_refuted(data, change, complaint):
    X, y = data
    verdict = judge(X, y, k=2, alpha=ALPHA, claim=honest_claim(X, y, [0, 3]) | change)
    assert complaint in verdict.complaint
    assert not verdict.closed(np.inf)


def test_a_bound_is_refuted_by_a_better_model(data):
    """A solver that stops at a poor model and calls it optimal."""
    X, y = data
    poor = honest_claim(X, y, [1, 2])
    assert judge(X, y, k=2, alpha=ALPHA, claim=poor).complaint == ""
    best = refitted(X, y, np.array([0, 3]), ALPHA)
    assert "above" in judge(X, y, k=2, alpha=ALPHA, claim=poor, best_known=best).complaint


def test_without_a_bound_there_is_no_gap(data):
    X, y = data
    claim = honest_claim(X, y, [0, 3]) | {"lower_bound": None}
    verdict = judge(X, y, k=2, alpha=ALPHA, claim=claim)
    assert verdict.complaint == ""
    assert np.isnan(verdict.gap)
    assert not verdict.closed(np.inf)


def test_a_solver_runs_in_a_process_of_its_own(data):
    X, y = data
    question = Question(k=2, alpha=ALPHA, gap=1e-4, time_limit=30.0, threads=1)
    claim = run_solver("bestk", X, y, question=question)
    assert claim["support"] == [0, 3]
    assert judge(X, y, k=2, alpha=ALPHA, claim=claim).closed(1e-4)
    assert claim["versions"]["numpy"] == np.__version__
    broken = replace(question, options={"bound": "no such bound"})
    assert "bound" in run_solver("bestk", X, y, question=broken)["error"]


def test_peak_memory_is_that_of_this_process():
    before = peak_memory()
    block = np.ones(2**23)  # 64 MiB
    assert peak_memory() >= max(before, block.nbytes / 2**20)
