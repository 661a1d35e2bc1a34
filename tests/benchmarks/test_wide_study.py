"""The study of wide data: who meets whom for how long, which rows count, and what a page says."""

from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.harness import rows
from benchmarks.harness.arena import Arena, Instance, Task, measured
from benchmarks.harness.contest import reviewed
from benchmarks.harness.paper import GAP
from benchmarks.harness.referee import refitted
from benchmarks.wide.parts import (
    CONTENDERS,
    FREE,
    GROWTH,
    PARTS,
    PEERS,
    ROOT_BOUNDS,
    ROOTS,
    ROWS,
)
from benchmarks.wide.report import findings, results, root_bounds
from benchmarks.wide.rows import Row
from benchmarks.wide.study import Wide

TINY = Instance(30, 40, 0.1, 0.1, 2, M=1.5)


@pytest.fixture
def row(row):
    """Makes a closed row of one of the instances, with changes."""

    def make(contender="bestk", instance=ROWS[0], **changes):
        usual = {"size": 10, "true_features": 10, "notes": '{"bound seconds": 0.25}'}
        base = asdict(row(contender, **usual)) | instance._asdict()
        return Row(**base | {"memory": 200.0, "largest": 1.1} | changes)

    return make


# Who meets whom --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTS)
def test_parts_know_their_contenders(name):
    tasks = PARTS[name].tasks()
    assert len(set(tasks)) == len(tasks) > 0
    assert {task.contender for task in tasks} <= set(CONTENDERS)
    instances = [task.instance for task in tasks]
    runs = sum(a != b for a, b in pairwise(instances)) + 1
    assert runs == len(set(instances))  # data are made once


def test_limits_of_the_rows():
    limits = {(task.instance.name, task.contender): task.limit for task in PARTS["rows"].tasks()}
    assert len(ROWS) == 8
    for instance in ROWS:
        few = instance.n in (100, 200)
        assert limits[instance.name, "bestk"] == (60.0 if few else 240.0)
        for peer in PEERS:
            assert limits[instance.name, peer] == (120.0 if instance.p <= 3000 else 180.0)
    free = {name: limit for (name, who), limit in limits.items() if who == "bestk" + FREE}
    assert free == {"500-3000-0.1-0.1": 10.0, "500-3000-0.1-10": 10.0}


def test_a_limit_and_an_instance_can_be_asked_for():
    tasks = PARTS["rows"].tasks(limit=3.0, only="200-3000-0.1-10")
    assert {task.instance for task in tasks} == {Instance(200, 3000, 0.1, 10.0, M=1.5)}
    assert {task.limit for task in tasks} == {3.0}
    assert {task.contender for task in tasks} == {"bestk", *PEERS}
    assert PARTS["growth"].tasks(only="200-3000-0.1-10") == []


def test_growth_spares_the_peer_where_it_is_too_large():
    peers = [task.instance.p for task in PARTS["growth"].tasks() if task.contender == "l0bnb"]
    assert peers == [1000, 3000, 10_000]
    assert [i.p for i in GROWTH] == [1000, 3000, 10_000, 30_000, 100_000]


def test_root_bounds_come_with_and_without_a_box():
    assert {CONTENDERS[name].is_boxed for name in ROOT_BOUNDS} == {True, False}
    for name in ROOT_BOUNDS:
        assert CONTENDERS[name].is_boxed == (not name.endswith(FREE))
    methods = {contender.options["method"] for contender in ROOT_BOUNDS.values()}
    assert methods == {"descent", "fast", "subgradient", "admm"}


# Rows ------------------------------------------------------------------------------------------


def test_a_model_refutes_bounds_of_its_box_only(row):
    outside = row("bestk" + FREE, objective=4.0, lower_bound=0.0, largest=1.6)
    inside = row("el0ps", objective=4.5, lower_bound=4.0, largest=1.4)
    assert all(not r.complaint for r in reviewed([row(), outside]))
    complaints = {r.contender: r.complaint for r in reviewed([row(), outside, inside])}
    assert "above" in complaints.pop("bestk")
    assert set(complaints.values()) == {""}
    too_high = replace(outside, objective=6.0, lower_bound=5.5, largest=1.6)
    better = row("bestk", objective=5.0, lower_bound=1.0)
    assert any("above" in r.complaint for r in reviewed([too_high, better]))


def test_the_trivial_gap_is_that_of_the_bound_zero(row):
    assert row(objective=5.0, yy=20.0).trivial_gap == pytest.approx(5 / 15)


# The page --------------------------------------------------------------------------------------


@pytest.fixture
def made_up(row):
    """A few rows of every part: closed, open, failed, refuted."""
    open_row = ROWS[6]
    return [
        row(seconds=0.5),
        row("bestk" + FREE, lower_bound=0.0, seconds=10.0),
        row("l0bnb", seconds=50.0, memory=300.0),
        row("el0ps", lower_bound=6.0, complaint="bound 6 is above a model's objective"),
        row(instance=open_row, lower_bound=2.0, seconds=60.0, limit=60.0, true_features=9),
        row("l0bnb", instance=open_row, objective=np.nan, complaint="chose 3 features, not 10"),
        *(row(instance=i, seconds=i.p / 1e3, memory=100.0 + i.p / 100) for i in GROWTH),
        row("l0bnb", instance=GROWTH[0], lower_bound=4.0, seconds=60.0),
        *(
            row(name, instance=i, lower_bound=3.0 if name.endswith(FREE) else 4.0)
            for i in ROOTS
            for name in ROOT_BOUNDS
        ),
    ]


def test_findings_are_those_of_the_rows(row, made_up):
    text = "\n".join(findings(made_up))
    assert "closes 2 of 3 problems" in text  # one of the growth study's is a row, too
    assert "100, 3000, 0.1, 10 with 20% after 60 s" in text
    assert "gives 33.3%; 9 of 10 true features found" in text
    assert "l0bnb in 100 to 100 times the time" in text
    assert "0.5 s in the box, 33.3% after 10 s without" in text
    assert "from p = 1000 to 100000 features" in text
    assert "No model has a coefficient at its box; the largest is 73.3% of it." in text
    assert "refutes: el0ps on 500, 3000, 0.1, 0.1." in text
    held = "\n".join(findings([row(largest=1.5)]))
    assert "coefficient at its box, or beyond: bestk on 500, 3000, 0.1, 0.1" in held
    assert findings([]) == []


def test_tables_show_gaps_memory_and_what_others_report(made_up):
    (first, *_), (last, *_) = (
        [r for r in results(made_up).rows if r[0] == name]
        for name in ("500, 3000, 0.1, 0.1", "100, 3000, 0.1, 10")
    )
    assert first[2:6] == [
        "0.5 s, 200 MiB",
        "33.3% after 10 s, 200 MiB",
        "50 s, 300 MiB",
        "refuted, 200 MiB",
    ]
    assert "1835 s" in first[-1]
    assert last[2] == "20% after 60 s, 200 MiB"
    assert last[4] == "failed, 200 MiB"
    assert "MOSEK 10.1%" in last[-1]


def test_bounds_at_the_root_stand_beside_each_other(made_up):
    table = root_bounds([r for r in made_up if r.contender in ROOT_BOUNDS])
    assert len(table.rows) == len(ROOT_BOUNDS) / 2
    assert table.rows[0][0] == "descent"
    assert table.rows[0][1:] == ["6.67%, 0.25 s", "13.3%, 0.25 s"] * 2


def test_a_page_and_a_figure_from_rows_alone(tmp_path, made_up):
    path = tmp_path / "wide.csv"
    rows.begin(path, Row, ["a machine"])
    for item in made_up:
        rows.append(path, item)
    Wide().write(path, tmp_path / "docs")
    page = path.with_suffix(".md").read_text()
    marks = ["<!-- findings -->", "<!-- tables -->", "<!-- machine -->"]
    places = [page.index(mark) for mark in marks]
    assert places == sorted(places)
    for part in PARTS.values():
        assert part.title in page
    assert "chose 3 features, not 10" in page
    assert (tmp_path / "docs" / "wide_growth.svg").read_text().startswith("<?xml")


def test_a_page_without_rows_is_empty(tmp_path):
    Wide().write(tmp_path / "wide.csv", tmp_path)
    page = (tmp_path / "wide.md").read_text()
    assert "##" not in page
    assert not (tmp_path / "wide_growth.svg").exists()


# A real run ------------------------------------------------------------------------------------


def test_a_tiny_instance_in_the_arena(tmp_path):
    tasks = [Task(TINY, name, 20.0) for name in ("bestk", "root: ADMM, 100 steps")]
    ours, root = measured(tasks, {}, CONTENDERS, kind=Row, threads=1)
    assert ours.complaint == root.complaint == ""
    assert ours.is_closed
    assert ours.gap <= GAP * (1 + 1e-6)
    assert ours.largest <= TINY.M
    assert 10.0 < ours.memory < 1e5
    assert root.lower_bound <= ours.objective
    assert root.bound_seconds > 0.0
    arena = Arena.of(TINY, tmp_path, threads=1)
    X, y = arena.data.arrays()
    truth = refitted(X, y, arena.true_support, TINY.alpha)
    assert arena._true_model(X, y, np.inf) == pytest.approx(truth)
    assert arena._true_model(X, y, 0.1) == np.inf
