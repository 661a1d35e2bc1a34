"""The referee of the benchmarks: what it believes, what it refutes, and what it measures again."""

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from benchmarks.harness import rows
from benchmarks.harness.answering import Question
from benchmarks.harness.arena import Arena, Task, measure_missing
from benchmarks.harness.environments import run_solver
from benchmarks.harness.fitting import refit
from benchmarks.harness.prices import forward_penalty, forward_selection, triangle
from benchmarks.harness.referee import judge, refitted
from benchmarks.synthetic.rows import Row
from benchmarks.synthetic.standings import certified, reviewed, standing
from benchmarks.synthetic.studies import CONTENDERS, STUDIES, Instance

ALPHA = 0.1
INSTANCE = Instance(30, 6, 0.5, ALPHA, 2)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    return X, X[:, 0] - X[:, 3] + 0.3 * rng.standard_normal(30)


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


# Prices instead of k ---------------------------------------------------------------------------


def test_penalty_lies_between_the_gains_around_k(data):
    X, y = data
    best = [
        min(refitted(X, y, np.array(s, dtype=int), ALPHA) for s in combinations(range(6), k))
        for k in (1, 2, 3)
    ]
    price = forward_penalty(X, y, 2, ALPHA)
    assert best[1] - best[2] < price < best[0] - best[1]
    assert price == pytest.approx(forward_penalty(X, y, 2, ALPHA, [0, 3]))


def test_forward_selection_takes_what_lowers_the_objective_most(data):
    X, y = data
    chosen, gains = forward_selection(X, y, 4, ALPHA)
    value = float(y @ y)
    for step in range(4):
        now = {
            j: refitted(X, y, np.array([*chosen[:step], j]), ALPHA)
            for j in range(6)
            if j not in chosen[:step]
        }
        assert chosen[step] == min(now, key=now.__getitem__)
        assert gains[step] == pytest.approx(value - min(now.values()))
        value = min(now.values())


def test_triangle_keeps_every_objective(data):
    X, y = data
    R, z = triangle(X, y)
    assert len(R) == 7
    for b in np.random.default_rng(1).standard_normal((5, 6)):
        assert np.sum((z - R @ b) ** 2) == pytest.approx(np.sum((y - X @ b) ** 2))


# Rows and standings ----------------------------------------------------------------------------


def row(contender="bestk", **changes):
    default = Row(
        **INSTANCE._asdict(),
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


def test_rows_come_back_as_they_were(tmp_path):
    path = tmp_path / "folder" / "rows.csv"
    assert rows.read(path, Row) == []
    written = [row(seconds=1 / 3), row("OMP", lower_bound=np.nan, complaint='says "no", twice')]
    for item in written:
        rows.append(path, item, threads=1)
    read = rows.read(path, Row)
    assert [r.contender for r in read] == ["bestk", "OMP"]
    assert read[0] == replace(written[0], seconds=read[0].seconds)
    assert read[0].seconds == pytest.approx(1 / 3, rel=1e-11)
    assert read[1].complaint == written[1].complaint
    assert np.isnan(read[1].gap)


def test_one_contender_refutes_another():
    """The bound of okridge lies above a model that OMP has found; nobody else complains."""
    better = row("OMP", objective=4.0, lower_bound=np.nan)
    too_many = row("lasso", objective=1.0, lower_bound=np.nan, size=3)
    checked = reviewed([row(lower_bound=3.0), row("okridge"), better, too_many])
    complaints = {r.contender: r.complaint for r in checked}
    assert "above" in complaints.pop("okridge")
    assert set(complaints.values()) == {""}


def test_closed_runs_come_before_open_ones():
    fast, slow = row(seconds=1.0), row(seconds=9.0)
    near, far = row(lower_bound=4.0), row(lower_bound=1.0)
    wrong = row(seconds=0.1, complaint="bound 6 is above another's model")
    heuristic = row(lower_bound=np.nan)
    ranked = sorted([wrong, far, slow, near, fast], key=standing)
    assert ranked == [fast, slow, near, far, wrong]
    assert standing(heuristic) == standing(wrong)


def test_the_best_formulation_of_a_program_counts():
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


def test_only_what_is_missing_is_measured(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    rows.append(path, row(limit=1.0), threads=1)  # closed
    rows.append(path, row("okridge", lower_bound=1.0, limit=10.0), threads=1)  # had its time
    rows.append(path, row("SCIP sos1", lower_bound=1.0, limit=1.0), threads=1)  # had too little
    measured = []

    def run(self, task, contender, kind):
        assert contender is CONTENDERS[task.contender]
        measured.append(task.contender)
        return row(task.contender, limit=task.limit)

    monkeypatch.setattr(Arena, "run", run)
    names = ("bestk", "okridge", "SCIP sos1", "OMP")
    tasks = [Task(INSTANCE, name, 10.0) for name in names]
    for _ in range(2):
        measure_missing(tasks, path, threads=1, contenders=CONTENDERS, kind=Row)
        assert measured == ["SCIP sos1", "OMP"]


@pytest.mark.parametrize("name", STUDIES)
def test_studies_know_their_contenders_and_limits(name):
    tasks = STUDIES[name].tasks()
    assert len(set(tasks)) == len(tasks) > 0
    for task in tasks:
        most = CONTENDERS[task.contender].most_features
        assert most is None or task.instance.p <= most
    instances = [task.instance for task in tasks]
    runs = sum(a != b for a, b in pairwise(instances)) + 1
    assert runs == len(set(instances))  # data are made once
    assert {task._replace(limit=0) for task in tasks} <= {
        task._replace(limit=0) for task in STUDIES[name].tasks(full=True)
    }
