"""Searches with a device: the same answers, the same tree for any number of threads, no loss."""

import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from helpers import instances
from helpers.checks import assert_same_run, check_result, configuration
from helpers.devices import Plain, using
from helpers.emulator import COMPILER, Emulator
from helpers.forcing import forced
from helpers.seeds import seeds

import bestk
from bestk import Advanced, Status
from bestk.base.device.driver import DeviceUnavailable
from bestk.devices import scanner
from bestk.devices.scanner import Scanner
from bestk.devices.tasks import Stopped
from bestk.runs.checkpoint import Writer


def small():
    X, y, _ = bestk.datasets.make_synthetic(30, 22, k=8, rho=0.9)
    return X, y


@seeds(300, chunk=25)
def test_answers_are_those_of_brute_force(seed, force):
    force.closed_on_device()
    instance = instances.make(seed)
    chosen = configuration(seed)
    with using(Plain()):
        result = instance.solve(**chosen, device="cuda")
    check_result(instance, result, chosen["gap_tol"])


@seeds(60, chunk=10)
def test_proofs_by_a_device_are_verified(seed, force):
    force.closed_on_device()
    instance = instances.make(seed)
    with using(Plain()) as device:
        result = instance.solve(device="cuda", n_threads=1)
    check_result(instance, result, 1e-4)
    if device.n_tasks and not instance.options.get("sample_weight") is not None:
        assert result.certificate.verify(instance.X, instance.y)


LANDINGS = pytest.mark.parametrize(("batch", "lag"), [(0.0, 1e-8), (2.0, 1e-8), (0.0, 1e-7)])


@LANDINGS
@pytest.mark.parametrize("in_flight", [1, 3, 64])
def test_the_tree_does_not_depend_on_threads(batch, lag, in_flight, force):
    """Nodes go to the device alone or many at a time, and land soon or late among units."""
    X, y = small()
    plain = bestk.solve(X, y, 6, alpha=1e-3)
    force.units(nodes=5, in_flight=in_flight, close=0.0)
    force.closed_on_device(most=1000, batch=batch, lag=lag)
    runs = []
    for n_threads in (1, 2, 5):
        with using(Plain()) as device:
            runs.append(bestk.solve(X, y, 6, alpha=1e-3, device="cuda", n_threads=n_threads))
        assert device.n_tasks > 3
    for run in runs:
        assert run.status is Status.OPTIMAL
        np.testing.assert_array_equal(run.support, plain.support)
        assert_same_run(run, runs[0])
        assert run.certificate.verify(X, y)
    assert [run.engine for run in runs] == [
        "plain:0 (NumPy) and 1 thread", "plain:0 (NumPy) and 2 threads",
        "plain:0 (NumPy) and 5 threads",
    ]  # fmt: skip


@LANDINGS
def test_a_resumed_run_takes_the_same_path(batch, lag, force, tmp_path, monkeypatch):
    """From every checkpoint of a run, with nodes in flight and waiting for the device."""
    force.units(nodes=5, in_flight=4, close=0.0)
    force.closed_on_device(most=1000, batch=batch, lag=lag)
    (X, y), path, written = small(), tmp_path / "run.ckpt", []
    write = Writer.write

    def keep(self, parts):
        write(self, parts)
        written.append((self.path.read_bytes(), parts["flight"].arrays["batches"]))

    monkeypatch.setattr(Writer, "write", keep)
    with using(Plain()):
        options = {"alpha": 1e-3, "checkpoint": path, "checkpoint_interval": 0.0}
        whole = bestk.solve(X, y, 6, device="cuda", **options)
        monkeypatch.setattr(Writer, "write", write)
        assert any((batches >= 0).any() for _, batches in written)
        for content, _ in written[:: max(1, len(written) // 12)]:
            path.write_bytes(content)
            again = bestk.resume(path, X, y)
            assert_same_run(again, whole)
            assert again.engine.startswith("plain:0 (NumPy)")
            # Where there is no device, what waited for it is open like everything else.
            path.write_bytes(content)
            other = bestk.resume(path, X, y, device="cpu")
            assert other.status is Status.OPTIMAL
            np.testing.assert_array_equal(other.support, whole.support)
            assert other.certificate.verify(X, y)


@pytest.mark.parametrize("calls", [0, 1, 2, 5])
def test_a_lost_device_loses_nothing(calls, force):
    X, y = small()
    plain = bestk.solve(X, y, 6, alpha=1e-3)
    force.units(nodes=5, in_flight=4, close=0.0)
    force.closed_on_device(most=1000)
    with using(Plain(fails_after=calls)):
        result = bestk.solve(X, y, 6, alpha=1e-3, device="cuda", n_threads=2)
    assert result.status is Status.OPTIMAL
    np.testing.assert_array_equal(result.support, plain.support)
    assert result.engine == "2 threads (plain:0 (NumPy) is gone)"
    assert result.certificate.verify(X, y)


def test_a_device_that_is_lost_at_the_root_loses_nothing(force):
    X, y = small()
    plain = bestk.solve(X, y, 6, alpha=1e-3)
    force.closed_by_device_at_once()
    with using(Plain(fails_after=0)) as device:
        result = bestk.solve(X, y, 6, alpha=1e-3, device="cuda", n_threads=2)
    assert device.n_calls == 1
    assert result.status is Status.OPTIMAL
    np.testing.assert_array_equal(result.support, plain.support)
    assert result.engine == "2 threads (plain:0 (NumPy) is gone)"
    assert result.certificate.verify(X, y)


@pytest.mark.parametrize("nodes", [1, 3, 10, 40])
def test_limits_leave_a_bound_that_holds(nodes, force):
    X, y = small()
    best = bestk.solve(X, y, 6, alpha=1e-3)
    force.units(nodes=5, in_flight=4, close=0.0)
    force.closed_on_device(most=1000)
    with using(Plain()):
        result = bestk.solve(X, y, 6, alpha=1e-3, device="cuda", node_limit=nodes)
    assert result.status in (Status.NODE_LIMIT, Status.OPTIMAL)
    assert result.lower_bound <= best.objective * (1 + 1e-12)
    assert result.objective >= best.objective * (1 - 1e-12)


def test_progress_counts_supports(force):
    force.closed_on_device()
    seen = []
    with using(Plain()) as device:
        bestk.solve(*small(), 6, alpha=1e-3, device="cuda", callback=lambda s: seen.append(s))
    assert max(snapshot.n_supports for snapshot in seen) == device.n_tasks > 0


def test_without_enumeration_a_device_has_nothing_to_do(force):
    force.closed_on_device()
    with using(Plain()) as device:
        result = bestk.solve(*small(), 4, device="cuda", advanced=Advanced(enumeration=False))
    assert result.status is Status.OPTIMAL
    assert device.n_tasks == 0


def test_nothing_changes_without_a_device():
    result = bestk.solve(*small(), 6, alpha=1e-3, n_threads=2)
    assert result.engine == "2 threads"
    assert result.settings["device"] == "cpu"


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:-1", "CUDA", 0, None, "cuda:1e3"])
def test_names_of_devices_are_checked(name):
    with pytest.raises(ValueError, match='device must be "cpu", "cuda", or "cuda:" and a number'):
        bestk.solve(*small(), 3, device=name)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceUnavailable, match=r"needs CuPy: install bestk\[gpu\]"):
        bestk.solve(*small(), 3, device="cuda:7")


class Endless(Plain):
    """Never has an answer: it works until it is told to stop."""

    def remaining(self, tasks, stop, progress):
        self.n_calls += 1
        progress.begin(tasks)
        while not stop():
            progress.save(0, [[] for _ in tasks], 1)
            time.sleep(1e-3)
        raise Stopped


@pytest.mark.parametrize("most", [1000, 1e9])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_time_limit_ends_a_device(most, n_threads, force):
    """In the midst of closing everything, or beside units; it is a limit, and nothing is proven."""
    force.units(nodes=5, in_flight=4, close=0.0)
    force.closed_on_device(most=most)
    X, y = small()
    with using(Endless()) as device:
        result = bestk.solve(X, y, 6, device="cuda", time_limit=0.5, n_threads=n_threads)
    assert device.n_calls > 0
    assert result.status is Status.TIME_LIMIT
    assert result.gap > 1e-4
    assert result.certificate.verify(X, y)


def test_a_callback_ends_a_device(force):
    force.closed_on_device()
    with using(Endless()) as device:
        stopped = bestk.solve(
            *small(), 6, device="cuda", callback=lambda s: s.n_supports > 10 and device.n_calls
        )
    assert stopped.status is Status.STOPPED
    assert stopped.gap > 1e-4


def test_ctrl_c_ends_a_device(force, monkeypatch):
    force.closed_on_device()

    def interrupt(snapshot):
        if snapshot.n_supports > 10:
            raise KeyboardInterrupt

    with using(Endless()):
        result = bestk.solve(*small(), 6, device="cuda", callback=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.gap > 1e-4


def test_no_package_of_a_device_is_imported_for_nothing():
    code = "import sys, bestk; bestk.solve([[1.0]], [1.0], 1); print('cupy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("supports", [0, 1000, 40_000])
def test_a_long_enumeration_is_resumed_in_its_midst(supports, tmp_path, force, monkeypatch):
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(scanner, "_MOST_BATCHES", 1)
    monkeypatch.setattr(scanner, "_MOST_BYTES", 2**16)
    force.closed_by_device_at_once()
    (X, y), path = small(), tmp_path / "run.ckpt"
    counts = []

    def solve(ask, kind=Scanner, **options):
        with using(kind(Emulator(tmp_path))) as device:
            result = ask(device="cuda", **options)
        counts.append(device.driver.launched.count("scan"))
        return result

    class Waiting(Scanner):
        """Once enough is tried, it waits for whoever stops it."""

        def remaining(self, tasks, stop, progress):
            def is_over():
                deadline = time.monotonic() + 60.0
                while progress.n_sets > supports and not stop() and time.monotonic() < deadline:
                    time.sleep(0.001)
                return stop()

            return super().remaining(tasks, is_over, progress)

    whole = solve(partial(bestk.solve, X, y, 5))
    stopped = solve(
        partial(bestk.solve, X, y, 5),
        kind=Waiting,
        checkpoint=path,
        callback=lambda s: s.n_supports > supports,
    )
    assert stopped.status is Status.STOPPED
    saved = path.read_bytes()
    again = solve(partial(bestk.resume, path, X, y))
    assert again.n_nodes == whole.n_nodes == 1
    assert (again.objective, again.gap) == (whole.objective, 0.0)
    np.testing.assert_array_equal(again.support, whole.support)
    all_of_it, first, rest = counts
    assert 0 < first < all_of_it
    assert first + rest == all_of_it
    # On the CPU a resumed run has its own way.
    path.write_bytes(saved)
    with forced():
        other = bestk.resume(path, X, y, device="cpu")
    assert other.status is Status.OPTIMAL
    np.testing.assert_array_equal(other.support, whole.support)
