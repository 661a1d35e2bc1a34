"""The suite of lists: its quick mode without R, and checks that find what is wrong."""

from itertools import chain

import numpy as np
import pytest

import bestk
from benchmarks.harness.tables import write_csv, write_markdown
from benchmarks.near_optimal import checking, groups
from benchmarks.near_optimal.checking import check, expanded, swaps
from benchmarks.near_optimal.leaps import Listed, worse
from benchmarks.near_optimal.problems import Problem, problem, unpenalised

K, WITHIN = 3, 0.2


@pytest.fixture
def small():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 9))
    X[:, 5] = X[:, 0] + 0.2 * rng.standard_normal(40)
    y = 2.0 + X[:, 0] - X[:, 3] + 0.5 * X[:, 7] + 0.5 * rng.standard_normal(40)
    return Problem(X, y, 0.1, True)


@pytest.fixture
def answer(small):
    """What list_run.py answers, without times."""
    options = {"alpha": small.alpha, "fit_intercept": True}
    found = bestk.near_optimal(small.X, small.y, K, within=WITHIN, **options)
    assert len(found) > 1
    return {
        "supports": [model.support.tolist() for model in found],
        "objectives": [model.objective for model in found],
        "threshold": found.threshold,
        "best": found.best.objective,
    }


# The command -----------------------------------------------------------------------------------


def test_quick_mode_without_r(monkeypatch, tmp_path):
    monkeypatch.setattr(groups, "rscript", lambda: None)
    for name, group in groups.GROUPS.items():
        table = group(1, True)
        assert table.name == name
        write_csv(table, tmp_path)
        assert all(len(row) == len(table.columns) for row in table.rows)
        if name == "near_leaps":
            assert table.rows == []
            continue
        for row in (dict(zip(table.columns, row, strict=True)) for row in table.rows):
            assert row["complete"] == row["verified"] == "yes"
            assert row["checked"].startswith("all ")
            assert row["remarks"] == ""
    page = write_markdown("near_optimal benchmarks", list(groups.GROUPS), tmp_path)
    assert page.name == "near_optimal.md"
    assert "there is no R" in page.read_text()


def test_rows_beside_r(monkeypatch, small):
    """A peer that lists what is true, one that misses something, and one that fails."""
    ours = [[[0], [5]], [[0, 3], [3, 5]]]
    answers = iter([ours, [ours[0], [[3, 5], [1, 2]]], None])

    def regsubsets(command, data, k, count, patience):
        lists = next(answers)
        return Listed(error="leaps: no") if lists is None else Listed("R 4", 2.0, [*chain(*lists)])

    own = {"supports": ours, "complete": True, "seconds": 0.1, "all_seconds": 0.5}
    monkeypatch.setattr(groups, "rscript", lambda: "Rscript")
    monkeypatch.setattr(groups, "unpenalised", lambda name: small)
    monkeypatch.setattr(groups, "_run", lambda *args, **asked: own)
    monkeypatch.setattr(groups, "regsubsets", regsubsets)
    rows = [groups.leaps(1, True).rows[0] for _ in range(3)]
    assert rows[0][5:] == ["2.0000", "0.1000", "20", "0.5000", "4", "2 of 2", ""]
    assert rows[1][-2:] == ["1 of 2", "leaps is worse at 1 places of size 2"]
    assert rows[2][-2:] == ["-", "leaps: no"]


# The data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "name", "shape"),
    [
        (problem, "diabetes 2", (442, 65)),
        (problem, "lorenz 1", (4000, 56)),
        (problem, "30, 12, 0.5", (30, 12)),
        (unpenalised, "breast cancer 1", (569, 30)),
        (unpenalised, "diabetes 2, first 30", (442, 30)),
        (unpenalised, "30, 12, 0.5", (30, 12)),
    ],
)
def test_problems_by_name(make, name, shape):
    data = make(name)
    assert data.X.shape == shape
    assert data.y.shape == shape[:1]
    if make is unpenalised:
        assert (data.alpha, data.fit_intercept) == (0.0, True)


# Checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [checking.MOST, 0], ids=["all supports", "swaps"])
def test_a_list_that_is_right(monkeypatch, small, answer, most):
    monkeypatch.setattr(checking, "MOST", most)
    checked = check(small, K, WITHIN, answer)
    assert checked.complaints == []
    assert checked.of_size_k is None or checked.of_size_k >= len(answer["supports"])


def test_wrong_lists_are_refuted(small, answer):
    def complaints(**changes):
        return "; ".join(check(small, K, WITHIN, answer | changes).complaints)

    supports, objectives = answer["supports"], answer["objectives"]
    last = len(supports) - 1
    assert "missing" in complaints(supports=supports[:last], objectives=objectives[:last])
    assert "twice" in complaints(
        supports=supports + supports[:1], objectives=[*objectives, objectives[0]]
    )
    assert "not" in complaints(objectives=[0.9 * objectives[0], *objectives[1:]])
    assert "another threshold" in complaints(best=1.1 * answer["best"])
    assert "better model" in complaints(best=1.1 * answer["best"])
    wrong = complaints(supports=[*supports, [1, 2, 4]], objectives=[*objectives, answer["best"]])
    assert "does not belong" in wrong
    assert "above the threshold" in wrong
    larger = sorted({*supports[0], *range(9)} - {*supports[0]})[: K + 1 - len(supports[0])]
    grown = [sorted(supports[0] + larger), *supports[1:]]
    assert "can be reduced" in complaints(supports=grown)


def test_what_a_list_stands_for():
    assert expanded([(0,), (1, 2)], 2, 4) == {(0, 1), (0, 2), (0, 3), (1, 2)}
    assert swaps([(0, 2)], 4) == {(1, 2), (2, 3), (0, 1), (0, 3)}


def test_lists_are_compared_by_objectives(small):
    assert worse(small, [[0, 3], [5, 3]], [[3, 5], [0, 3]]) == (0, 0)
    assert worse(small, [[3, 5], [1, 2]], [[0, 3], [3, 5]]) == (1, 0)
    assert worse(small, [[0, 3], [3, 5]], [[3, 5]]) == (0, 1)
