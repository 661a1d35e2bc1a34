"""Beginnings that devices leave: all that matter, and hardly any other (theory: minor, single)."""

import json

import numpy as np
import pytest
from helpers.devices import Plain, harmful_beginnings
from helpers.emulator import COMPILER, Emulator
from helpers.minors import random_task, triples_of
from helpers.seeds import seeds

from bestk.base.device.driver import DeviceFailed
from bestk.devices import scanner
from bestk.devices.scanner import Scanner
from bestk.devices.tasks import Progress, Stopped, Task


def go_on():
    return False


def assert_covered(rows, task):
    """Every harmful beginning is left, up to rounding, and nothing that is safely harmless."""
    M, r = task
    wanted = harmful_beginnings(M + 1e-13 * np.eye(len(M)), r)
    left = {tuple(row) for row in rows.tolist()}
    assert sorted(left) == [tuple(row) for row in rows.tolist()]
    for beginning in wanted:
        assert beginning in left or (*beginning[:-1], -1) in left
    doubtful = harmful_beginnings(M - 1e-9 * np.eye(len(M)), r)
    for beginning in left:
        assert any(other[: r - 3] == beginning[: r - 3] for other in doubtful)
        assert beginning[-1] < 0 or beginning in doubtful


@seeds(120, chunk=12)
def test_no_harmful_beginning_is_passed_over(seed, device):
    rng = np.random.default_rng([seed, 5])
    tasks = [random_task(rng) for _ in range(rng.integers(1, 5))]
    for rows, task in zip(device.remaining(tasks, go_on, Progress()), tasks, strict=True):
        assert_covered(rows, task)


@pytest.mark.parametrize("m", [33, 64, 127, 128, 129, 150, 200])
@pytest.mark.parametrize("seed", range(3))
def test_large_tasks_with_several_tiles(m, seed, device):
    if isinstance(device, Plain):
        pytest.skip("the plain device tries set by set")
    rng = np.random.default_rng([m, seed])
    X = rng.standard_normal((2 * m, m)) + 0.5 * rng.standard_normal((2 * m, 1))
    X /= np.linalg.norm(X, axis=0)
    y = X[:, rng.permutation(m)[:4]].sum(axis=1) + 0.5 * rng.standard_normal(2 * m)
    d = X.T @ (y / np.linalg.norm(y))
    needed = np.sort(d**2)[-3:].sum() * rng.choice([0.8, 1.1, 1.4])
    M = X.T @ X - np.outer(d, d) / needed
    wanted = triples_of(M)
    (rows,) = device.remaining([Task(M, 3)], go_on, Progress())
    assert {tuple(row) for row in rows.tolist()} == wanted


@pytest.mark.parametrize("n_bytes", [2**15, 2**18])
def test_small_memory_means_more_batches(n_bytes, tmp_path, monkeypatch):
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(scanner, "_MOST_BYTES", n_bytes)
    monkeypatch.setattr(scanner, "_MOST_BATCHES", 4)
    device = Scanner(Emulator(tmp_path, most=2**40))
    rng = np.random.default_rng(3)
    tasks = [random_task(rng, features=(20, 30), most_r=5) for _ in range(3)]
    progress, told = Progress(), []
    save = progress.save
    progress.save = lambda *a: (told.append(a), save(*a))
    found = device.remaining(tasks, go_on, progress)
    for rows, task in zip(found, tasks, strict=True):
        assert_covered(rows, task)
    launched = device.driver.launched
    assert launched.count("scan") == launched.count("judge") > 1
    assert len(told) == -(-launched.count("scan") // 4)


def test_a_stop_comes_between_batches(emulated):
    task = random_task(np.random.default_rng(0), features=(40, 40), most_r=4)
    with pytest.raises(Stopped):
        emulated.remaining([task], lambda: True, Progress())


def test_too_many_beginnings_are_not_listed(emulated, monkeypatch):
    nothing_is_definite, harmless = Task(-np.eye(30), 4), Task(np.eye(30), 4)
    monkeypatch.setattr(scanner, "_MOST_OF_TASK", 3)
    first, second = emulated.remaining([nothing_is_definite, harmless], go_on, Progress())
    assert first is None
    assert second.shape == (0, 2)


def test_what_does_not_fit_into_the_list_is_not_lost(emulated, monkeypatch):
    monkeypatch.setattr(scanner, "_MOST_KEPT", 3)
    tasks = [Task(-np.eye(30), 4), Task(-np.eye(5), 3)]
    many, few = emulated.remaining(tasks, go_on, Progress())
    assert many is None
    assert few.tolist() == [[0], [1], [2]]


def test_no_memory_is_a_failure_of_the_device(tmp_path):
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    device = Scanner(Emulator(tmp_path, most=1000))
    with pytest.raises(DeviceFailed, match="no memory left"):
        device.remaining([Task(np.eye(5), 3)], go_on, Progress())


@seeds(6)
def test_work_goes_on_where_it_was_stopped(seed, tmp_path, monkeypatch):
    """In batches of any size, by another device, from what a file would hold."""
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    rng = np.random.default_rng([seed, 6])
    tasks = [random_task(rng, features=(15, 24), most_r=5) for _ in range(3)]
    monkeypatch.setattr(scanner, "_MOST_BATCHES", 1)
    monkeypatch.setattr(scanner, "_MOST_BYTES", 2**15)
    first, progress = Scanner(Emulator(tmp_path)), Progress()
    whole = first.remaining(tasks, go_on, Progress())
    looks = iter([False] * (1 + seed) + [True])
    with pytest.raises(Stopped):
        first.remaining(tasks, lambda: next(looks), progress)
    saved = json.loads(json.dumps(progress.saved))
    assert saved["done"] > 0
    monkeypatch.setattr(scanner, "_MOST_BYTES", 2**17)
    second, before = Scanner(Emulator(tmp_path)), len(first.driver.launched)
    again = second.remaining(tasks, go_on, Progress(saved))
    for rows, other in zip(again, whole, strict=True):
        np.testing.assert_array_equal(rows, other)
    assert before > 0
    # Other tasks begin at the beginning.
    (fresh,) = second.remaining(tasks[:1], go_on, Progress(saved))
    np.testing.assert_array_equal(fresh, whole[0])
