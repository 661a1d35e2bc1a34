"""Stopped runs: the right status, the best model so far, and a bound that still holds."""

import tracemalloc
from io import StringIO

import numpy as np
import pytest
from helpers.instances import batched_optimum, make_medium
from rich.console import Console

import bestk
from bestk import Advanced, Result, Snapshot, Status
from bestk.search.batches import Batches
from bestk.search.root import Root
from bestk.search.units.flight import Flight
from bestk.show.progress import LiveDisplay
from bestk.subtrees import explore as loop
from bestk.supports.incumbent import Incumbent

SLOW = Advanced(enumeration=False, batch_size=1)  # many small steps, so that limits bite


@pytest.fixture(scope="module")
def hard():
    """An instance of several hundred nodes, and its optimum."""
    instance = make_medium(5)
    return instance, batched_optimum(instance)


def run(instance, **settings):
    return instance.solve(**{"advanced": SLOW, **settings})


def check_stopped(result, status, optimum):
    assert isinstance(result, Result)
    assert result.status is status
    assert 0.0 <= result.lower_bound <= optimum * (1 + 1e-9)
    assert result.objective >= optimum * (1 - 1e-9)
    assert result.gap == pytest.approx(
        (result.objective - result.lower_bound) / result.objective, rel=1e-9
    )
    assert np.count_nonzero(result.coef) <= len(result.support)


def test_the_instance_is_hard_enough(hard):
    instance, optimum = hard
    result = run(instance)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1e-9)
    assert result.n_nodes > 100


def test_no_time_at_all(hard):
    instance, optimum = hard
    result = run(instance, time_limit=0.0)
    check_stopped(result, Status.TIME_LIMIT, optimum)
    assert len(result.support) == instance.k


def test_infinite_limits_are_no_limits(hard):
    instance, _ = hard
    result = run(instance, time_limit=np.inf, memory_limit=np.inf, node_limit=10**9)
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("search", ["best-first", "breadth-first", "depth-first"])
@pytest.mark.parametrize("limit", [0, 1, 10, 50])
def test_node_limit(hard, limit, search):
    instance, optimum = hard
    result = run(instance, node_limit=limit, search=search)
    check_stopped(result, Status.NODE_LIMIT, optimum)
    assert limit <= result.n_nodes <= limit + 3


@pytest.mark.parametrize("limit", [0, 10_000])
def test_memory_limit(hard, limit):
    instance, optimum = hard
    check_stopped(run(instance, memory_limit=limit), Status.MEMORY_LIMIT, optimum)


@pytest.mark.parametrize("search", ["best-first", "breadth-first", "depth-first"])
@pytest.mark.parametrize("record", [True, False])
def test_memory_is_what_the_limit_says(search, record, force):
    """Measured, within 20%: everything that is allocated during a run, its matrices included."""
    force.units(nodes=8)  # small ones leave more nodes open
    X, y, _ = bestk.datasets.make_synthetic(60, 80, k=10, rho=0.9)
    advanced = Advanced(enumeration=False, fixing=False, rebuild=False, record=record, batch_size=8)
    options = {"alpha": 1.0, "search": search, "advanced": advanced, "n_threads": 1}
    bestk.solve(X, y, 10, node_limit=100, **options)  # what is imported or compiled is not counted
    limit = 2e6
    tracemalloc.start()
    try:
        result = bestk.solve(X, y, 10, memory_limit=limit, node_limit=20_000, **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 1.2 * limit
    if search != "depth-first":  # which needs hardly any
        assert result.status is Status.MEMORY_LIMIT
        assert peak >= 0.8 * limit


@pytest.mark.parametrize("calls", [1, 2, 20])
def test_callback_stops_the_run(hard, calls):
    instance, optimum = hard
    seen = []

    def callback(snapshot):
        seen.append(snapshot)
        return len(seen) == calls

    check_stopped(run(instance, callback=callback), Status.STOPPED, optimum)
    assert len(seen) == calls
    assert all(isinstance(snapshot, Snapshot) for snapshot in seen)


def test_callback_that_returns_nothing_changes_nothing(hard):
    instance, _ = hard
    watched = run(instance, callback=lambda snapshot: None)
    assert watched.n_nodes == run(instance).n_nodes
    assert watched.status is Status.OPTIMAL


def test_errors_in_a_callback_reach_the_user(hard):
    def callback(snapshot):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        run(hard[0], callback=callback)


class Impatient:
    """A progress object during whose n-th update Ctrl-C is pressed."""

    def __init__(self, updates):
        self.left, self.closed = updates, False

    def update(self, snapshot):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def close(self):
        self.closed = True


@pytest.mark.parametrize("updates", [1, 2, 20])
def test_interrupt_during_a_progress_update(hard, updates):
    instance, optimum = hard
    progress = Impatient(updates)
    check_stopped(run(instance, progress=progress), Status.INTERRUPTED, optimum)
    assert progress.closed


@pytest.mark.parametrize("calls", [1, 2, 20])
def test_interrupt_during_a_callback(hard, calls):
    instance, optimum = hard
    progress = Impatient(calls)
    result = run(instance, callback=progress.update)
    check_stopped(result, Status.INTERRUPTED, optimum)


@pytest.mark.parametrize(
    ("owner", "name", "calls"),
    [
        (Batches, "bound", 1),
        (Batches, "admit", 1),
        (Flight, "step", 2),
        (Flight, "_launch", 2),
        (Flight, "_taken", 3),
        (Flight, "_merge", 3),
        (loop, "run", 5),
        (Incumbent, "offer", 4),
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_interrupt_at_any_moment_leaves_a_valid_bound(hard, owner, name, calls, when, monkeypatch):
    """Ctrl-C arrives before or after some step deep inside the run."""
    instance, optimum = hard
    original, count = getattr(owner, name), iter(range(1, 10**9))

    def interrupted(*args, **kwargs):
        now = next(count) == calls
        if now and when == "before":
            raise KeyboardInterrupt
        value = original(*args, **kwargs)
        if now:
            raise KeyboardInterrupt
        return value

    monkeypatch.setattr(owner, name, interrupted)
    check_stopped(run(instance), Status.INTERRUPTED, optimum)


def test_progress_object_is_closed_and_updated(hard):
    class Counter(Impatient):
        def update(self, snapshot):
            self.left += 1

    progress = Counter(0)
    run(hard[0], progress=progress)
    assert progress.left > 10
    assert progress.closed


def test_live_line_shows_and_clears(hard):
    file = StringIO()
    console = Console(
        file=file, width=80, force_terminal=True, force_jupyter=False, _environ={"TERM": "xterm"}
    )
    result = run(hard[0], progress=LiveDisplay(console, delay=0.0))
    assert result.status is Status.OPTIMAL
    assert "best found" in file.getvalue()
    assert f"{result.objective:.7g}" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K")  # its lines are erased


def test_progress_is_silent_where_nobody_watches(hard, capsys):
    result = run(hard[0], progress=True)
    assert result.status is Status.OPTIMAL
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_nothing_is_printed_unless_asked(hard, capsys):
    run(hard[0], node_limit=20)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def path_of(result):
    return result.history[["nodes", "incumbent", "bound"]].tolist()


@pytest.mark.parametrize("limit", [1, 10, 60])
def test_limits_do_not_change_the_path(hard, limit):
    instance, _ = hard
    whole, part = path_of(run(instance)), path_of(run(instance, node_limit=limit))
    steps = part[:-1]  # the last point is the end of the run
    assert len(steps) > 0
    assert whole[: len(steps)] == steps


@pytest.mark.parametrize("search", ["best-first", "breadth-first", "depth-first"])
@pytest.mark.parametrize("bound", ["descent", "fast"])
def test_history_is_monotone_and_ends_at_the_result(hard, search, bound):
    result = run(hard[0], search=search, bound=bound)
    history = result.history
    assert history.dtype.names == ("seconds", "nodes", "incumbent", "bound")
    assert (np.diff(history["incumbent"]) <= 0).all()
    assert (np.diff(history["bound"]) >= 0).all()
    assert (np.diff(history["nodes"]) >= 0).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert tuple(history[-1])[1:] == (result.n_nodes, result.objective, result.lower_bound)


def test_snapshots_carry_both_gaps(hard):
    seen = []
    result = run(hard[0], callback=lambda snapshot: seen.append(snapshot))
    for snapshot in seen:
        difference = snapshot.objective - snapshot.lower_bound
        assert snapshot.gap == pytest.approx(difference / snapshot.objective)
        assert snapshot.explained_gap == pytest.approx(
            difference / (snapshot.yy - snapshot.objective)
        )
        assert snapshot.lower_bound <= result.objective
    assert seen[-1].n_nodes <= result.n_nodes


def test_stop_right_after_features_were_excluded_claims_no_more_than_the_root(monkeypatch, force):
    """The new root is open then, though nothing is in the queue."""
    force.cluster_bounds()
    X, y, _ = bestk.datasets.make_synthetic(4000, 120, k=8, rho=0.5)
    best = bestk.solve(X, y, k=5)
    tighten = Root.tighten

    def stop_after(self):
        restart = tighten(self)
        if restart:
            self.closing.watch.status = Status.STOPPED
        return restart

    monkeypatch.setattr(Root, "tighten", stop_after)
    result = bestk.solve(X, y, k=5)
    assert result.status is Status.STOPPED
    assert result.lower_bound < best.lower_bound
    assert 0 < result.gap < 0.5


@pytest.mark.parametrize("gap_tol", [0.0, 1e-4])
def test_one_of_many_perfect_fits_ends_the_search(gap_tol):
    """Thousands of models tie at the level of rounding; the status does not claim more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 30))
    y = X[:, 3] - 2.0 * X[:, 4]
    result = bestk.solve(X, y, k=6, gap_tol=gap_tol)
    assert result.is_proven
    assert {3, 4} <= set(result.support)
    assert result.lower_bound <= result.objective <= 1e-12 * result.yy
    assert (result.status is Status.OPTIMAL) == (result.gap <= gap_tol)
    if result.status is not Status.OPTIMAL:
        assert result.status is Status.PERFECT_FIT
        assert "perfect" in result.message
        assert "Perfect fit." in result.to_html()
