"""The study of real tables: the data, who is asked what, which rows count, and what a page says."""

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.harness import rows
from benchmarks.harness.answering import Question
from benchmarks.harness.arena import Arena, Task, measured
from benchmarks.harness.contest import reviewed
from benchmarks.harness.paper import GAP
from benchmarks.tables import sources, study
from benchmarks.tables.contenders import CONTENDERS, PROGRAMS, Meeting, takes
from benchmarks.tables.preparing import MOST_FEATURES, distinct, prepared
from benchmarks.tables.problems import SIZES, Problem, is_well_posed, problems
from benchmarks.tables.report import findings, results, standings, summary
from benchmarks.tables.rows import Row
from benchmarks.tables.sources import TABLES
from benchmarks.tables.study import Tables

IRIS = Problem("iris", 2, 3, 1.0)
ALL = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(not source.is_here, reason=f"{source.package} is not installed"),
    )
    for name, source in TABLES.items()
]


@pytest.fixture
def row():
    """Makes a closed row of iris, with changes."""

    def make(contender="bestk", problem=IRIS, **changes):
        usual = {
            **problem._asdict(),
            **{"n": 150, "p": 14, "contender": contender, "threads": 1, "limit": 10.0},
            **{"seconds": 1.0, "nodes": 3, "objective": 5.0, "lower_bound": 5.0, "yy": 20.0},
            **{"size": 3, "box": np.nan, "largest": 1.0, "complaint": "", "notes": "{}"},
            **{"versions": "python 3, numpy 2", "commit": "abc"},
        }
        return Row(**usual | changes)

    return make


# The data --------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ALL)
def test_tables_are_clean(table):
    """No missing value; mean 0, variance 1; nothing constant, nothing twice; names for all."""
    X, y, names = prepared(table, 1)
    n, p = X.shape
    assert n >= 30
    assert 4 <= p == len(names) == len(set(names))
    assert y.shape == (n,)
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
    for column in (*X.T, y):
        assert column.mean() == pytest.approx(0.0, abs=1e-9)
        assert column.std() == pytest.approx(1.0)
    alike = np.abs(X.T @ X) / n - np.eye(p)
    assert alike.max() < 1.0 - 1e-9
    assert str(n) in TABLES[table].about


def test_there_are_enough_tables():
    assert len(TABLES) >= 10
    assert {source.package for source in TABLES.values()} == {"sklearn", "statsmodels"}
    assert all(source.about for source in TABLES.values())


def test_terms_have_names_and_no_twins():
    X, _, names = prepared("diabetes", 2)
    assert X.shape == (442, 64)  # sex has two values, so that its square says the same
    assert "bmi bp" in names
    assert "sex^2" not in names


def test_too_many_terms_are_not_made():
    assert prepared("digits", 2) is None
    assert prepared("breast cancer", 2).X.shape[1] <= MOST_FEATURES
    assert list(problems("digits", 2)) == []
    with pytest.raises(ValueError, match="too many terms"):
        Problem("digits", 2, 3, 1.0).data()


def test_constant_and_repeated_columns_go():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 50))
    X, kept = distinct(np.column_stack([a, np.full(50, 1e6), 3.0 - 2.0 * a, b, b]))
    assert kept.tolist() == [0, 3]
    assert X.shape == (50, 2)


def test_statsmodels_is_optional(monkeypatch, capsys):
    monkeypatch.setattr(sources, "find_spec", lambda name: None if name == "statsmodels" else 1)
    arguments = Namespace(
        tables=["iris", "fair"], degrees=[1], sizes=[3], solvers=["bestk"], limit=1.0, quick=False
    )
    tables = {task.instance.table for tasks in study._tasks(arguments) for task in tasks}
    assert tables == {"iris"}
    assert "statsmodels is not installed" in capsys.readouterr().err


# Who is asked what -----------------------------------------------------------------------------


def test_problems_fit_their_table():
    for problem in [*problems("iris", 1), *problems("diabetes", 1), *problems("wine", 2)]:
        X, y, truth = problem.data()
        assert problem.k in SIZES
        assert problem.k < X.shape[1] == len(truth)
        assert 3 * problem.k <= len(y)
        assert problem.alpha == 1.0 or is_well_posed(X)
    assert {problem.alpha for problem in problems("diabetes", 1)} == {0.0, 1.0}
    assert {problem.alpha for problem in problems("wine", 2)} == {1.0}  # 178 rows, 104 terms


def test_licences_and_patience_end():
    small, large = Problem("iris", 2, 5, 1.0), Problem("wine", 3, 8, 1.0)
    assert all(takes(contender, small, 14) for contender in CONTENDERS.values())
    asked = {name for name, contender in CONTENDERS.items() if takes(contender, large, 559)}
    assert asked == set(CONTENDERS) - {
        *("Gurobi, eigen-perspective", "Gurobi, SOS1", "SCIP", "el0ps in a box")
    }
    assert PROGRAMS["Gurobi"].most_features == 100


def test_everybody_aims_at_the_same_gap():
    """At the goal of a peer, relative to y'y - f, the gap relative to f is GAP."""
    place = Meeting(instance=IRIS, data=None, true_support=None, threads=1)
    place.beam = {"objective": 6.0}
    question = Question(k=3, alpha=1.0, gap=GAP, time_limit=1.0, threads=1)
    assert place.goal(CONTENDERS["bestk"], question, 20.0) == GAP
    assert place.goal(CONTENDERS["okridge"], question, 20.0) * 14.0 == pytest.approx(GAP * 6.0)
    place.least = 5.0
    assert place.goal(CONTENDERS["okridge"], question, 20.0) * 15.0 == pytest.approx(GAP * 5.0)


# Rows ------------------------------------------------------------------------------------------


def test_proven_is_relative_to_the_whole_objective(row):
    assert row(lower_bound=5.0 * (1.0 - GAP)).is_closed
    assert not row(lower_bound=5.0 * (1.0 - 2.0 * GAP)).is_closed  # 0.7 GAP of the paper
    assert not row("lasso", lower_bound=np.nan).is_closed
    assert not row(complaint="bound 6 is above a model's objective").is_closed


def test_a_model_refutes_bounds_of_its_box_only(row):
    model = row("lasso", objective=4.0, lower_bound=np.nan, largest=2.0)
    boxed = row("l0bnb in a box", box=1.5)
    complaints = {r.contender: r.complaint for r in reviewed([row(), boxed, model])}
    assert "above" in complaints["bestk"]
    assert complaints["l0bnb in a box"] == ""
    inside = replace(model, largest=1.4)
    assert all(r.complaint for r in reviewed([boxed, inside]) if r.contender != "lasso")


# The page --------------------------------------------------------------------------------------


@pytest.fixture
def made_up(row):
    """Closed, open, failed, refuted and too large."""
    large = Problem("wine", 2, 5, 1.0)
    wide = {"problem": large, "n": 178, "p": 104}
    return [
        row(seconds=0.5),
        row("okridge", seconds=2.0),
        row("Gurobi, eigen-perspective", lower_bound=4.0),
        row("Gurobi, SOS1", seconds=4.0),
        row("bestk in a box", box=1.5, seconds=0.25),
        row("l0bnb in a box", box=1.5, complaint="bound 6 is above a model's objective"),
        row("lasso", objective=5.5, lower_bound=np.nan),
        row(lower_bound=4.0, **wide),
        row("okridge", complaint="AttributeError", objective=np.nan, lower_bound=np.nan, **wide),
        row("lasso", lower_bound=np.nan, **wide),
    ]


def test_findings_are_those_of_the_rows(made_up):
    text = "\n".join(findings(made_up))
    assert "`bestk` proves 1 of 2 problems from 2 tables, 1 of them within a second" in text
    assert "1 stay open, with a gap of 20% in the median" in text
    assert "okridge proves 1 of 2 problems; of the 2 that both tried" in text
    assert "both 1, okridge in 4 times the time" in text
    assert "Gurobi proves 1 of 2 problems (1 are too large for it)" in text
    assert "lasso, which proves nothing, finds the best known model of 1 of 2 problems" in text
    assert "refutes: l0bnb in a box on iris, degree 2, k = 3." in text
    assert "Nothing has been measured yet" in findings([])[0]


def test_tables_show_seconds_or_gaps(made_up):
    best = {IRIS: 5.0, Problem("wine", 2, 5, 1.0): 5.0}
    small = results([r for r in made_up if r.table == "iris"], best)
    assert small.columns[2:5] == ["bestk", "okridge", "Gurobi"]
    assert small.rows == [["3", "1", "0.5 s", "2 s", "4 s", "0.25 s", "refuted", "+10%"]]
    lines = {line[0]: line[1:] for line in summary(made_up).rows}
    assert lines["bestk"] == ["2", "1", "1", "20%", "0", "0", "0", "2"]
    assert lines["Gurobi"] == ["2", "1", "0", "-", "1", "0", "0", "1"]
    assert lines["lasso"][1:3] == ["-", "-"]
    assert [one.program for one in standings(made_up)] == list(lines)


def test_a_page_and_a_figure_from_rows_alone(tmp_path, made_up):
    path = tmp_path / "tables.csv"
    rows.begin(path, Row, ["a machine"])
    for item in made_up:
        rows.append(path, item)
    Tables().write(path, tmp_path / "docs")
    page = path.with_suffix(".md").read_text()
    marks = ["findings", "tables", "details", "machine"]
    places = [page.index(f"<!-- {mark} -->") for mark in marks]
    assert places == sorted(places)
    assert "AttributeError" in page
    assert "150 rows, 14 terms up to degree 2" in page
    assert (tmp_path / "docs" / "tables.svg").read_text().startswith("<?xml")


def test_a_page_without_rows(tmp_path):
    Tables().write(tmp_path / "tables.csv", tmp_path)
    page = (tmp_path / "tables.md").read_text()
    assert "Nothing has been measured yet" in page
    assert "##" not in page
    assert not (tmp_path / "tables.svg").exists()


# A real run ------------------------------------------------------------------------------------


def test_a_small_table_in_the_arena(monkeypatch):
    """What is answered is not measured again; a goal was translated for lasso, too."""
    tasks = [Task(IRIS, name, 20.0) for name in ("bestk", "bestk in a box", "lasso")]
    known = {}
    options = {"kind": Row, "threads": 1, "place": Meeting}
    ours, boxed, lasso = measured(tasks, known, CONTENDERS, **options)
    assert (ours.n, ours.p, ours.instance) == (150, 14, IRIS)
    assert ours.is_closed
    assert boxed.is_closed
    assert boxed.largest <= boxed.box
    assert np.isnan(ours.box)
    assert lasso.objective >= ours.objective * (1.0 - 1e-9)
    assert lasso.complaint == ""
    monkeypatch.setattr(Arena, "run", None)
    assert list(measured(tasks, known, CONTENDERS, **options)) == []
