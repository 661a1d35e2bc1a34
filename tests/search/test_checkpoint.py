"""Runs that survive: checkpoints, kills at any moment, and going on from where it ended."""

import json
import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from helpers.checks import assert_same_run

import bestk
from bestk import Advanced, Problem, Status, storage
from bestk.runs.checkpoint import Checkpoint, Writer

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["warm"])


def data(n=120, p=40, rho=0.9):
    X, y, _ = bestk.datasets.make_synthetic(n, p, k=10, rho=rho)
    return X, y


@pytest.fixture
def every_checkpoint(monkeypatch):
    """Collects the bytes of every checkpoint that is written."""
    written = []
    write = Writer.write

    def keep(self, tree):
        write(self, tree)
        written.append(self.path.read_bytes())

    monkeypatch.setattr(Writer, "write", keep)
    return written


CASES = {
    "default": {"k": 9},
    "depth-first": {"k": 9, "search": "depth-first"},
    "breadth-first": {"k": 7, "search": "breadth-first"},
    "boxes": {"k": 8, "bounds": (-2.0, 2.0)},
    "intercept": {"k": 8, "fit_intercept": True},
    "without a record": {"k": 8, "advanced": Advanced(record=False)},
    "bounds only": {"k": 7, "advanced": Advanced(enumeration=False), "include": [3]},
    "paper": {"k": 5, "bound": "admm", "advanced": Advanced(fixing=False, rebuild=False)},
}


@pytest.mark.parametrize("name", CASES)
def test_every_checkpoint_leads_to_the_same_run(name, tmp_path, every_checkpoint):
    (X, y), case = data(), {"alpha": 1e-3, **CASES[name]}
    whole = bestk.solve(X, y, **case)
    path = tmp_path / "run.ckpt"
    watched = bestk.solve(X, y, **case, checkpoint=path, checkpoint_interval=0.0)
    written = list(every_checkpoint)
    assert len(written) > 1
    for content in written[:: max(1, len(written) // 4)]:
        path.write_bytes(content)
        resumed = bestk.resume(path, X, y)
        for run in (watched, resumed):
            if whole.certificate is None:
                assert run.certificate is None
                assert (run.n_nodes, run.lower_bound) == (whole.n_nodes, whole.lower_bound)
            else:
                assert_same_run(run, whole)
    assert os.listdir(tmp_path) == ["run.ckpt"]


def test_block_bounds_come_back(tmp_path, every_checkpoint, cluster_bounds):
    (X, y), case = data(n=300, p=20), {"k": 4, "advanced": Advanced(enumeration=False)}
    whole = bestk.solve(X, y, **case)
    assert any(split.clusters for split in whole.certificate.splits)
    path = tmp_path / "run.ckpt"
    bestk.solve(X, y, **case, checkpoint=path, checkpoint_interval=0.0)
    for content in every_checkpoint[::3]:
        path.write_bytes(content)
        assert_same_run(bestk.resume(path, X, y), whole)


def test_a_limit_and_then_the_rest(tmp_path):
    X, y = data(150, 60)
    path = tmp_path / "run.ckpt"
    whole = bestk.solve(X, y, 9, alpha=1e-3)
    run = bestk.solve(X, y, 9, alpha=1e-3, node_limit=50, checkpoint=path)
    assert run.status is Status.NODE_LIMIT
    seen = [run]
    while run.status is not Status.OPTIMAL:
        before = Checkpoint.read(path).parts["watch"].plain["seconds"]
        run = bestk.resume(path, X, y, node_limit=run.n_nodes + 100)
        seen.append(run)
        assert run.lower_bound >= seen[-2].lower_bound
        assert run.seconds > before > 0.0
    assert len(seen) > 2
    assert run.objective == whole.objective
    assert run.certificate.verify(X, y)
    # A finished run can be asked again.
    assert bestk.resume(path, X, y).lower_bound == run.lower_bound


def test_what_was_given_up_within_the_tolerance_is_gone(tmp_path):
    X, y = data()
    path = tmp_path / "run.ckpt"
    bestk.solve(X, y, 9, alpha=1e-3, node_limit=50, checkpoint=path)
    with pytest.raises(ValueError, match="gap_tol"):
        bestk.resume(path, X, y, gap_tol=0.0)
    assert bestk.resume(path, X, y, gap_tol=0.01).gap <= 0.01


def test_a_run_that_had_not_begun_is_resumed_too(tmp_path):
    X, y = data()
    path = tmp_path / "run.ckpt"
    run = bestk.solve(X, y, 9, alpha=1e-3, time_limit=0.0, checkpoint=path)
    assert run.status is Status.TIME_LIMIT
    assert_same_run(bestk.resume(path, X, y), bestk.solve(X, y, 9, alpha=1e-3))


def test_an_interrupt_leaves_the_last_checkpoint(tmp_path):
    X, y = data(150, 60)
    path = tmp_path / "run.ckpt"

    def interrupt(snapshot):
        if snapshot.n_nodes > 100:
            raise KeyboardInterrupt

    options = {"checkpoint": path, "checkpoint_interval": 0.0, "callback": interrupt}
    run = bestk.solve(X, y, 9, alpha=1e-3, **options)
    assert run.status is Status.INTERRUPTED
    assert_same_run(bestk.resume(path, X, y), bestk.solve(X, y, 9, alpha=1e-3))


def test_problems_without_rows_are_resumed_from_a_problem(tmp_path):
    X, y = data()
    path = tmp_path / "run.ckpt"
    batches = [(X[:50], y[:50]), (X[50:], y[50:])]
    problem = Problem.from_batches(batches, alpha=1e-3)
    problem.solve(9, node_limit=50, checkpoint=path)
    run = bestk.resume(path, problem=Problem.from_batches(batches, alpha=1e-3))
    assert run.status is Status.OPTIMAL
    assert run.objective == problem.solve(9).objective


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (np.nextafter(X, np.inf), y),
        lambda X, y: (X[:-1], y[:-1]),
        lambda X, y: (X, -y),
        lambda X, y: (X[:, ::-1], y),
    ],
)
def test_other_data_are_refused(tmp_path, change):
    X, y = data()
    path = tmp_path / "run.ckpt"
    bestk.solve(X, y, 9, node_limit=50, checkpoint=path)
    with pytest.raises(ValueError, match="other data or another problem"):
        bestk.resume(path, *change(X, y))
    other = Problem.from_data(X, y, alpha=0.5)
    with pytest.raises(ValueError, match="other data or another problem"):
        bestk.resume(path, problem=other)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    X, y = data()
    with pytest.raises(FileNotFoundError, match="solve again"):
        bestk.resume(tmp_path / "nothing", X, y)
    np.savez(tmp_path / "other.npz", X=X)
    with pytest.raises(ValueError, match="no checkpoint"):
        bestk.resume(tmp_path / "other.npz", X, y)
    bestk.solve(X, y, 5, node_limit=5, checkpoint=tmp_path / "run.ckpt")
    with pytest.raises(TypeError, match="X and y, or problem="):
        bestk.resume(tmp_path / "run.ckpt")
    with pytest.raises(TypeError, match="unknown option 'time_limits'"):
        bestk.resume(tmp_path / "run.ckpt", X, y, time_limits=3)
    with pytest.raises(TypeError, match="checkpoint must be the name of a file"):
        bestk.solve(X, y, 3, checkpoint=5)
    with pytest.raises(ValueError, match="checkpoint_interval"):
        bestk.solve(X, y, 3, checkpoint="run", checkpoint_interval=-1.0)


@pytest.mark.parametrize("method", ["solve_path", "solve_grid", "runner_up"])
def test_one_file_serves_one_search(tmp_path, method):
    problem = Problem.from_data(*data())
    argument = problem.solve(2) if method == "runner_up" else [1, 2]
    with pytest.raises(ValueError, match="checkpoint is for one search"):
        getattr(problem, method)(argument, checkpoint=tmp_path / "run.ckpt")


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch):
    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bestk.runs.checkpoint.os.replace", full)
    X, y = data()
    with pytest.warns(RuntimeWarning, match="no checkpoint was written.*No space left on device;"):
        run = bestk.solve(X, y, 9, alpha=1e-3, checkpoint=tmp_path / "run.ckpt")
    assert run.status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("name", "message"),
    [("no folder/run.ckpt", "checkpoint: cannot write .* no folder .*no folder; make it"),
     ("", "checkpoint: .* is a folder; give the name of a file")],
)  # fmt: skip
def test_a_place_that_cannot_hold_a_file_is_said_before_the_run(tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        bestk.solve(None, None, 9, checkpoint=tmp_path / name)


def go_on(path, ready, answer=None):
    """Start, or go on; in a process of its own."""
    X, y = data(150, 60)
    ready.set()
    options = {"checkpoint_interval": 0.0, "n_threads": 1}
    if os.path.exists(path):
        result = bestk.resume(path, X, y, **options)
    else:
        result = bestk.solve(X, y, 10, alpha=1e-3, checkpoint=path, **options)
    if answer is not None:
        storage.save(result, answer)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_fifty_kills_at_random_times(tmp_path, monkeypatch):
    # The server that forks imports warm.py.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
    path, answer = tmp_path / "run.ckpt", tmp_path / "answer.npz"
    rng = np.random.default_rng(0)
    kills = resumed = 0
    longest = 0.3
    X, y = data(150, 60)
    # By the same server: code that was compiled elsewhere may round in another way.
    ready = processes.Event()
    first = processes.Process(target=go_on, args=(path, ready, answer))
    first.start()
    first.join()
    whole = storage.load(answer)
    path.unlink()
    answer.unlink()
    while kills < 50:
        ready = processes.Event()
        process = processes.Process(target=go_on, args=(path, ready))
        process.start()
        assert ready.wait(60)
        process.join(rng.uniform(0.0, longest))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
        if path.exists():
            nodes = Checkpoint.read(path).parts["tree"].plain["n_nodes"]  # always a whole file
            resumed += 1
            if nodes == whole.n_nodes:
                path.unlink()
        else:
            longest *= 1.2  # a slow machine: give it time for a first one
    process = processes.Process(target=go_on, args=(path, ready, answer))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert resumed > 10
    result = storage.load(answer)
    assert_same_run(result, whole)
    assert result.certificate.verify(X, y)
    assert sorted(os.listdir(tmp_path)) == ["answer.npz", "run.ckpt"]


def test_checkpoints_of_another_format_say_what_to_do(tmp_path):
    path = tmp_path / "run.ckpt"
    bestk.solve(*data(), 4, node_limit=3, checkpoint=path)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays["checkpoint"])) | {"version": 1}
    with path.open("wb") as file:
        np.savez(file, **arrays | {"checkpoint": np.array(json.dumps(header))})
    with pytest.raises(ValueError, match="format 1, this bestk reads 7; resume it with the bestk"):
        bestk.resume(path, *data())


@pytest.mark.parametrize("change", [{"parts": {}}, {"parts": None}])
def test_broken_checkpoints_are_refused(change, tmp_path):
    path = tmp_path / "run.ckpt"
    bestk.solve(*data(), 4, node_limit=3, checkpoint=path)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays["checkpoint"])) | change
    with path.open("wb") as file:
        np.savez(file, **arrays | {"checkpoint": np.array(json.dumps(header))})
    with pytest.raises(ValueError, match="broken checkpoint"):
        bestk.resume(path, *data())


@pytest.mark.parametrize(
    "options", [{"include": [0]}, {"free": [1]}, {"include": [0], "free": [2]}]
)
@pytest.mark.parametrize("seed", range(5))
def test_lists_go_on_from_before_their_first_model(seed, options, tmp_path):
    """No model is known to the tree yet, not even one with what every model has."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 6))
    y = X[:, 3] + X[:, 4] + rng.standard_normal(30)
    path, ask = tmp_path / "list.ckpt", {"alpha": 0.1, "within": 0.3, "n_threads": 1, **options}
    bestk.near_optimal(X, y, 3, checkpoint=path, node_limit=0, **ask)
    found = bestk.near_optimal(X, y, 3, checkpoint=path, **ask)
    again = bestk.near_optimal(X, y, 3, **ask)
    assert found.complete
    assert [m.support.tolist() for m in found] == [m.support.tolist() for m in again]
    assert found.certificate.verify(X, y)


@pytest.mark.parametrize("options", [{"include": [0]}, {"free": [1]}])
def test_a_run_goes_on_where_no_feature_helps(options, tmp_path):
    """Then the best model is empty, and lacks what every model may have."""
    X = np.kron(np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 2.0]]), np.ones((2, 1)))
    X, y = np.vstack([X, X]), np.repeat([1.0, -1.0], 4)
    path = tmp_path / "run.ckpt"
    bestk.solve(X, y, 2, alpha=1.0, checkpoint=path, node_limit=0, **options)
    result = bestk.resume(path, X, y, node_limit=None)
    assert result.status is Status.OPTIMAL
    assert result.objective == y @ y
