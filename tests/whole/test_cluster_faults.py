"""Workers that die, hang or come late, and schedulers that are lost: nothing is, and nobody waits.

All with real processes, killed at random moments.
"""

import multiprocessing
import os
import signal
import time

import dask.array as da
import numpy as np
import pytest
from helpers.checks import assert_same, assert_same_run
from helpers.clusters import Killer, cluster, wait_until, workers_of

import bestk
from bestk import Problem, Status
from bestk.base.cluster import calls as calls_module
from bestk.base.cluster import client as cluster_module
from bestk.base.cluster.calls import Call
from bestk.base.cluster.client import Cluster, ClusterLost

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

processes = multiprocessing.get_context("spawn")


@pytest.fixture(scope="module")
def mortal():
    """Workers to be killed; new ones take their places."""
    with cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def hard():
    X, y, _ = bestk.datasets.make_synthetic(60, 36, k=9, rho=0.9, seed=4)
    return X, y


def explored_by_units(force, call=0.02):
    """Trees of many small units, none of which is closed by enumeration."""
    force.units(nodes=4, close=0.0)
    force.units_from(0)  # in other processes, too
    force.closed_in_units_only()
    force.on_cluster(call=call)


def test_kills_during_searches(hard, mortal, force):
    X, y = hard
    explored_by_units(force)
    undisturbed = bestk.solve(X, y, 8, n_threads=1)
    with Killer(mortal, 8, seed=1) as killer:
        while killer.n_killed < killer.most:
            assert_same_run(bestk.solve(X, y, 8, n_threads=1, client=mortal), undisturbed)


def test_kills_during_enumerations(mortal, force):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 50))
    X[:, 25:] = X[:, :25] + 1e-3 * rng.standard_normal((200, 25))
    y = X[:, [0, 5, 11]].sum(axis=1) + rng.standard_normal(200)
    force.on_cluster(call=2e-4)
    undisturbed = bestk.solve(X, y, 5, gap_tol=0.0, n_threads=1)
    with Killer(mortal, 8, seed=2) as killer:
        while killer.n_killed < killer.most:
            result = bestk.solve(X, y, 5, gap_tol=0.0, n_threads=1, client=mortal)
            assert_same_run(result, undisturbed)


def slowly(block):
    time.sleep(0.1)
    return block


def test_kills_during_sums(mortal):
    X, y, _ = bestk.datasets.make_synthetic(1200, 20, k=3)
    parts = da.from_array(X, chunks=(40, 20)).map_blocks(slowly), da.from_array(y, chunks=40)
    undisturbed = Problem.from_data(*parts, client=mortal, fit_intercept=True)
    with Killer(mortal, 8, seed=3) as killer:
        while killer.n_killed < killer.most:
            problem = Problem.from_data(*parts, client=mortal, fit_intercept=True)
            assert problem.digest == undisturbed.digest
            assert_same(problem.moments, undisturbed.moments)


def test_kills_during_independent_searches(mortal):
    X, y, _ = bestk.datasets.make_synthetic(120, 10, k=3, rho=0.5)
    options = {"ks": [2, 3, 4], "alphas": [0.1, 1.0], "cv": 4}
    undisturbed = bestk.SparseRidgeCV(**options).fit(X, y)
    with Killer(mortal, 4, seed=4, longest_pause=0.4) as killer:
        while killer.n_killed < killer.most:
            model = bestk.SparseRidgeCV(**options, client=mortal).fit(X, y)
            assert_same(model.cross_validation_.errors, undisturbed.cross_validation_.errors)


def test_workers_may_come_and_go(hard, force):
    X, y = hard
    explored_by_units(force)
    undisturbed = bestk.solve(X, y, 8, n_threads=1)
    seen = []

    with cluster(1) as client:

        def more(snapshot):
            seen.append(snapshot.n_nodes)
            if len(seen) == 5:
                client.cluster.scale(2)

        result = bestk.solve(X, y, 8, n_threads=1, client=client, callback=more)
        assert_same_run(result, undisturbed)
        assert len(seen) > 10
        wait_until(lambda: len(client.nthreads()) == 2)
        # Without any, this process goes on by itself.
        client.cluster.scale(0)
        wait_until(lambda: not client.nthreads())
        patch = pytest.MonkeyPatch()
        with patch.context() as quick:
            quick.setattr(calls_module, "_PATIENCE", 0.3)
            alone = bestk.solve(X, y, 8, n_threads=1, client=client, node_limit=60)
        assert_same_run(alone, bestk.solve(X, y, 8, n_threads=1, node_limit=60))


def test_a_worker_that_hangs_holds_nobody_up(hard, force, monkeypatch):
    X, y = hard
    explored_by_units(force)
    undisturbed = bestk.solve(X, y, 8, n_threads=1)
    monkeypatch.setattr(calls_module, "_PATIENCE", 0.5)
    with cluster(2) as client:
        pids = list(client.run(os.getpid).values())
        os.kill(pids[0], signal.SIGSTOP)
        try:
            result = bestk.solve(X, y, 8, n_threads=1, client=client)
        finally:
            os.kill(pids[0], signal.SIGCONT)
    assert_same_run(result, undisturbed)


def out_of_memory(numbers):
    raise MemoryError


def dies(pid):
    if os.getpid() != pid:
        os.kill(os.getpid(), signal.SIGKILL)
    return pid


def test_a_call_that_workers_die_of_is_answered_here(mortal):
    calls = Cluster(mortal).calls("test")
    calls.put(Call(dies, os.getpid()))
    assert calls.get(lambda: False)[0] == os.getpid()
    calls.put(Call(out_of_memory, np.zeros(3)))
    with pytest.raises(MemoryError):  # it is not the workers' fault
        calls.get(lambda: False)
    calls.end()


def test_limits_hold_while_no_worker_answers(hard, mortal, force):
    X, y = hard
    explored_by_units(force)
    client = mortal
    wait_until(lambda: len(client.nthreads()) == 2)
    pids = list(client.run(os.getpid).values())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        result = bestk.solve(X, y, 8, n_threads=1, client=client, time_limit=1.0)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert result.status is Status.TIME_LIMIT
    assert result.certificate.verify(X, y)


def test_a_lost_scheduler_is_an_error_and_the_checkpoint_goes_on(hard, force, tmp_path):
    X, y = hard
    explored_by_units(force)
    undisturbed = bestk.solve(X, y, 8, n_threads=1)
    path, seen = tmp_path / "run.ckpt", []
    patch = pytest.MonkeyPatch()
    with patch.context() as quick:
        quick.setattr(cluster_module, "_RECONNECT", 0.5)
        with cluster(1) as client:

            def close(snapshot):
                seen.append(snapshot)
                if len(seen) == 10:
                    client.cluster.close()

            with pytest.raises(ClusterLost, match="the scheduler of the cluster is lost"):
                bestk.solve(
                    X, y, 8, n_threads=1, client=client, callback=close,
                    checkpoint=path, checkpoint_interval=1e9,
                )  # fmt: skip
    assert_same_run(bestk.resume(path, X, y, n_threads=1), undisturbed)


def run_with_a_cluster(path):
    """In a process of its own, which will be killed."""
    from helpers.forcing import forced

    X, y, _ = bestk.datasets.make_synthetic(60, 36, k=9, rho=0.9, seed=4)
    with forced() as force, cluster(1) as client:
        explored_by_units(force)
        bestk.solve(X, y, 8, n_threads=1, client=client, checkpoint=path, checkpoint_interval=0.0)


def test_a_killed_client_goes_on_with_another_cluster(hard, mortal, force, tmp_path):
    X, y = hard
    explored_by_units(force)
    undisturbed = bestk.solve(X, y, 8, n_threads=1)
    path = tmp_path / "run.ckpt"
    process = processes.Process(target=run_with_a_cluster, args=(path,))
    process.start()
    wait_until(path.exists)
    time.sleep(0.2)
    process.kill()
    process.join()
    assert_same_run(bestk.resume(path, X, y, n_threads=1, client=mortal), undisturbed)


def test_ctrl_c_gives_the_best_model_so_far(hard, mortal, force):
    X, y = hard
    explored_by_units(force)
    seen = []

    def interrupt(snapshot):
        if snapshot.n_nodes > 0 and not seen:
            seen.append(snapshot)
            signal.raise_signal(signal.SIGINT)

    result = bestk.solve(X, y, 8, n_threads=1, client=mortal, callback=interrupt)
    assert len(seen) == 1
    assert result.status is Status.INTERRUPTED
    assert 0.0 < result.lower_bound <= result.objective
    wait_until(lambda: not any(mortal.processing().values()))


def test_killing_has_an_effect(mortal):
    wait_until(lambda: len(workers_of(mortal)) == 2)
    before = workers_of(mortal)
    with Killer(mortal, 1, seed=5) as killer:
        wait_until(lambda: killer.n_killed == 1)
        wait_until(lambda: len(workers_of(mortal) - before) == 1)
