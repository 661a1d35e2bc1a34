"""What all studies share: rows in a file, what is measured again, the command and the page."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.dynamics import study as dynamics
from benchmarks.dynamics.study import Dynamics
from benchmarks.flows.rows import Row as FlowRow
from benchmarks.flows.study import Flows
from benchmarks.harness import rows
from benchmarks.harness.arena import Arena, Task, measured
from benchmarks.harness.contest import Row, by_task
from benchmarks.harness.study import RESULTS
from benchmarks.pysindy_tests.study import PySINDyTests
from benchmarks.synthetic.contenders import CONTENDERS
from benchmarks.synthetic.study import Synthetic
from benchmarks.tables.study import Tables
from benchmarks.wide.study import Wide

STUDIES = (Synthetic(), Wide(), Tables(), Dynamics(), Flows(), PySINDyTests())


# Rows ------------------------------------------------------------------------------------------


def test_rows_come_back_as_they_were(tmp_path, row):
    path = tmp_path / "folder" / "rows.csv"
    assert rows.read(path, Row) == []
    written = [row(seconds=1 / 3), row("OMP", lower_bound=np.nan, complaint='says "no", twice')]
    rows.begin(path, Row, ["a machine", "threads: 1"])
    for item in written:
        rows.append(path, item)
    read = rows.read(path, Row)
    assert [r.contender for r in read] == ["bestk", "OMP"]
    assert read[0] == replace(written[0], seconds=read[0].seconds)
    assert read[0].seconds == pytest.approx(1 / 3, rel=1e-11)
    assert read[1].complaint == written[1].complaint
    assert np.isnan(read[1].gap)
    assert rows.notes(path) == ["a machine", "threads: 1"]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_files_and_pages_are_those_of_the_rows(study, tmp_path):
    """What is read and written again is the same file; the page is what --report makes of it."""
    kept, copy = RESULTS / f"{study.name}.csv", tmp_path / "copy.csv"
    if not kept.exists():
        pytest.skip("not measured yet")
    read = rows.read(kept, study.row)
    rows.begin(copy, study.row, [])
    for row in read:
        rows.append(copy, row)
    lines = kept.read_text().splitlines()
    assert copy.read_text().splitlines() == [s for s in lines if not s.startswith("# ")]
    page = "\n".join(study.page(study.reviewed(read), rows.notes(kept))).rstrip() + "\n"
    assert page == kept.with_suffix(".md").read_text()


# What is measured ------------------------------------------------------------------------------


def test_only_what_is_missing_is_measured(monkeypatch, row):
    known = by_task(
        [
            row(limit=1.0),  # closed
            row("okridge", lower_bound=1.0, limit=10.0),  # had its time
            row("SCIP sos1", lower_bound=1.0, limit=1.0),  # had too little
        ]
    )

    def run(self, task, contender, kind):
        assert contender is CONTENDERS[task.contender]
        return row(task.contender, limit=task.limit)

    monkeypatch.setattr(Arena, "run", run)
    names = ("bestk", "okridge", "SCIP sos1", "OMP")
    tasks = [Task(row().instance, name, 10.0) for name in names]
    options = {"kind": Row, "threads": 1}
    new = [r.contender for r in measured(tasks, known, CONTENDERS, **options)]
    assert new == ["SCIP sos1", "OMP"]
    assert list(measured(tasks, known, CONTENDERS, **options)) == []


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs a study as its command does, with rows and pages in a folder of its own."""

    def run(study, *words):
        monkeypatch.setattr("sys.argv", [study.name, *words])
        monkeypatch.setattr(study, "results", tmp_path)
        monkeypatch.setattr(study, "figures", tmp_path)
        monkeypatch.setattr(study, "draw", lambda rows, folder: [])
        study.main("")
        return tmp_path

    return run


def test_contests_measure_what_was_asked_for(command, monkeypatch):
    asked = []

    def run(self, task, contender, kind):
        asked.append((task.instance.name, task.contender, task.limit))
        return next(r for r in kept if (r.instance, r.contender) == task[:2])

    kept = rows.read(RESULTS / "wide.csv", Wide.row)
    monkeypatch.setattr(Arena, "of", lambda *args: Arena(*args, 1))
    monkeypatch.setattr(Arena, "run", run)
    for _ in range(2):  # the second time nothing is missing
        folder = command(Wide(), "rows", "--only", "500-3000-0.1-10", "--limit", "2")
        names = ("bestk", "bestk, no box", "l0bnb", "el0ps")
        assert asked == [("500-3000-0.1-10", name, 2.0) for name in names]
    assert len(rows.read(folder / "wide.csv", Wide.row)) == 4
    assert "threads: 2" in (folder / "wide.md").read_text()
    with pytest.raises(SystemExit):
        command(Wide(), "no such part")


def test_dynamics_measures_what_was_asked_for(command, monkeypatch):
    asked = []

    def measure(task, methods, effort):
        asked.append((task, methods))
        return [r for r in kept if r.key[0] == task and r.method in methods]

    kept = rows.read(RESULTS / "dynamics.csv", Dynamics.row)
    monkeypatch.setattr(dynamics, "measure", measure)
    words = ("--systems", "hopf", "--lengths", "1", "3", "--trials", "1")
    command(Dynamics(), *words, "--methods", "bestk")
    assert [(task.length, methods) for task, methods in asked] == [(1, ["bestk"]), (3, ["bestk"])]
    asked.clear()
    folder = command(Dynamics(), *words, "--methods", "bestk", "STLSQ")
    assert [methods for _, methods in asked] == [["STLSQ"], ["STLSQ"]]
    assert len(rows.read(folder / "dynamics.csv", Dynamics.row)) == 4


def test_rows_without_a_commit_have_notes_of_every_run(tmp_path, monkeypatch):
    study, path = Flows(), tmp_path / "flows.csv"
    item = FlowRow(
        system="A", states=3, candidates=4, noise=0.0, method="bestk", equation=0, truth=""
    )
    monkeypatch.setattr(study, "measure", lambda arguments, known: [item] * 2)
    monkeypatch.setattr(study, "notes", lambda arguments: ["a machine"])
    for _ in range(2):
        study.measure_missing(path, None)
    assert rows.notes(path) == ["a machine"] * 2
    assert len(rows.read(path, FlowRow)) == 4
