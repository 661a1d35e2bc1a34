"""The synthetic study: who meets whom, which rows count, and how they rank."""

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.harness.contest import reviewed
from benchmarks.synthetic.contenders import CONTENDERS
from benchmarks.synthetic.parts import PARTS
from benchmarks.synthetic.standings import certified, standing


def test_one_contender_refutes_another(row):
    """The bound of okridge lies above a model that OMP has found; nobody else complains."""
    better = row("OMP", objective=4.0, lower_bound=np.nan)
    too_many = row("lasso", objective=1.0, lower_bound=np.nan, size=3)
    checked = reviewed([row(lower_bound=3.0), row("okridge"), better, too_many])
    complaints = {r.contender: r.complaint for r in checked}
    assert "above" in complaints.pop("okridge")
    assert set(complaints.values()) == {""}


def test_closed_runs_come_before_open_ones(row):
    fast, slow = row(seconds=1.0), row(seconds=9.0)
    near, far = row(lower_bound=4.0), row(lower_bound=1.0)
    wrong = row(seconds=0.1, complaint="bound 6 is above another's model")
    heuristic = row(lower_bound=np.nan)
    ranked = sorted([wrong, far, slow, near, fast], key=standing)
    assert ranked == [fast, slow, near, far, wrong]
    assert standing(heuristic) == standing(wrong)


def test_the_best_formulation_of_a_program_counts(row):
    runs = certified(
        [
            row(seconds=2.0),
            row("Gurobi sos1", seconds=5.0),
            row("Gurobi bigM 5", seconds=3.0),
            row("Gurobi perspective", seconds=1.0, complaint="failed"),
            row("OMP", seconds=0.1),
            row("uniform d", seconds=0.1),
        ]
    )
    (best,) = runs.values()
    assert {name: r.contender for name, r in best.items()} == {
        "bestk": "bestk",
        "Gurobi": "Gurobi bigM 5",
    }


@pytest.mark.parametrize("name", PARTS)
def test_parts_know_their_contenders_and_limits(name):
    tasks = PARTS[name].tasks()
    assert len(set(tasks)) == len(tasks) > 0
    for task in tasks:
        most = CONTENDERS[task.contender].most_features
        assert most is None or task.instance.p <= most
    instances = [task.instance for task in tasks]
    runs = sum(a != b for a, b in pairwise(instances)) + 1
    assert runs == len(set(instances))  # data are made once
    assert {task._replace(limit=0) for task in tasks} <= {
        task._replace(limit=0) for task in PARTS[name].tasks(full=True)
    }
