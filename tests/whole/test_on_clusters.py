"""Searches on a cluster of real processes: same tree, same answer, same certificate."""

import asyncio

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from helpers.checks import assert_same, assert_same_run
from helpers.clusters import wait_until
from sklearn.base import clone

import bestk
from bestk import Advanced, Problem, Status
from bestk.base.cluster import calls as calls_module
from bestk.base.cluster.calls import Call
from bestk.base.cluster.client import Cluster
from bestk.sindy import OKRidge, discover
from bestk.subtrees import on_cluster
from bestk.supports import pieces

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

KINDS = {
    "plain": {},
    "intercept": {"fit_intercept": True},
    "box": {"bounds": (-1.0, 2.0)},
    "signs": {"bounds": (0.0, np.inf)},
    "include": {"include": [20, 3], "exclude": [1, 4]},
    "no penalty": {"alpha": 0.0},
    "depth-first": {"search": "depth-first"},
    "breadth-first": {"search": "breadth-first"},
    "no enumeration": {"advanced": Advanced(enumeration=False)},
    "three in flight": {"advanced": Advanced(batch_size=3)},
}


@pytest.fixture(scope="module")
def hard():
    """Data whose tree has some hundred nodes."""
    X, y, _ = bestk.datasets.make_synthetic(60, 36, k=9, rho=0.9, seed=4)
    return X, y


@pytest.fixture
def sent(monkeypatch):
    """The calls that go to workers."""
    calls = []
    put = calls_module.Calls.put

    def counted(self, call, shared=None):
        calls.append(call)
        put(self, call, shared)

    monkeypatch.setattr(calls_module.Calls, "put", counted)
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_the_tree_is_that_of_one_thread(kind, hard, client, force, sent):
    X, y = hard
    options = {"alpha": 0.01, "n_threads": 1, **KINDS[kind]}
    force.units(nodes=4, close=0.0)
    force.closed_in_units_only()
    force.on_cluster(units_here=5, call=0.05)
    alone = bestk.solve(X, y, 7, **options)
    many = bestk.solve(X, y, 7, **options, client=client)
    assert_same_run(many, alone)
    assert sum(call.function is on_cluster.explore_all for call in sent) > 3
    assert (alone.engine, many.engine) == ("1 thread", "dask, 2 workers")
    assert many.certificate.verify(X, y)


def test_threads_here_and_workers_there_grow_the_same_tree(hard, client, force):
    X, y = hard
    force.units(nodes=4, close=0.0)
    force.closed_in_units_only()
    force.on_cluster(units_here=20, call=0.02)
    alone = bestk.solve(X, y, 8, n_threads=1)
    assert_same_run(bestk.solve(X, y, 8, n_threads=2, client=client), alone)


@pytest.mark.parametrize("k", [4, 5])
def test_enumerations_are_cut_into_calls(k, client, force, sent):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 40))
    X[:, 20:] = X[:, :20] + 1e-3 * rng.standard_normal((200, 20))  # bounds prove nothing
    X[:, 7], X[:, 30] = 2.0 * X[:, 8], X[:, 2] + X[:, 3]  # nor do products
    y = X[:, [0, 5, 11]].sum(axis=1) + rng.standard_normal(200)
    force.on_cluster(call=1e-3 if k == 4 else 1e-5)
    alone = bestk.solve(X, y, k, gap_tol=0.0, n_threads=1)
    many = bestk.solve(X, y, k, gap_tol=0.0, n_threads=1, client=client)
    assert_same_run(many, alone)
    kinds = {call.function.__name__ for call in sent}
    assert "scan_span" in kinds
    if k == 5:  # calls so short that single features are cut as well
        assert any(call.arguments[0].before for call in sent if call.function is pieces.scan_span)


def test_small_problems_never_leave_this_process(easy_data, client, sent):
    X, y = easy_data
    assert bestk.solve(X, y, 3, client=client).status is Status.OPTIMAL
    assert not sent


def test_wide_data_are_searched_here(client):
    X, y, _ = bestk.datasets.make_synthetic(60, 400, k=3, rho=0.1)
    options = {"alpha": 1.0, "bounds": (-1.5, 1.5), "n_threads": 1}
    ours = bestk.solve(X, y, 3, **options, client=client)
    assert_same_run(ours, bestk.solve(X, y, 3, **options))


def test_limits_leave_a_bound_that_holds(hard, client, force):
    X, y = hard
    force.units(nodes=4, close=0.0)
    force.closed_in_units_only()
    force.on_cluster(call=0.02)
    whole = bestk.solve(X, y, 8, n_threads=1)
    few = bestk.solve(X, y, 8, n_threads=1, client=client, node_limit=60)
    assert_same_run(few, bestk.solve(X, y, 8, n_threads=1, node_limit=60))
    assert few.status is Status.NODE_LIMIT
    calls = 0

    def third_look(snapshot):
        nonlocal calls
        calls += 1
        return calls > 30

    stopped = bestk.solve(X, y, 8, n_threads=1, client=client, callback=third_look)
    late = bestk.solve(X, y, 8, n_threads=1, client=client, time_limit=0.05)
    for result in (few, stopped, late):
        assert result.lower_bound <= whole.objective * (1 + 1e-12)
        assert result.certificate.verify(X, y)


def test_a_run_goes_on_with_another_cluster_or_none(hard, client, force, tmp_path):
    X, y = hard
    force.units(nodes=4, close=0.0)
    force.closed_in_units_only()
    force.on_cluster(call=0.02)
    whole = bestk.solve(X, y, 8, n_threads=1)
    for first, second in ((client, None), (None, client)):
        path = tmp_path / "run.ckpt"
        bestk.solve(X, y, 8, n_threads=1, client=first, node_limit=100, checkpoint=path)
        assert_same_run(bestk.resume(path, X, y, client=second), whole)


def test_data_of_dask_bring_their_client(client):
    X, y, _ = bestk.datasets.make_synthetic(400, 10, k=3, rho=0.5)
    parts = da.from_array(X, chunks=(90, 10)), da.from_array(y, chunks=90)
    with client.as_current():
        result = bestk.solve(*parts, 3)
        path = bestk.solve_path(*parts, ks=[2, 3])
    assert result.engine == path[2].engine == "dask, 2 workers"
    given = bestk.solve(*parts, 3, client=client)
    here = bestk.solve(*parts, 3)
    assert here.engine != given.engine == result.engine
    assert_same(here.certificate, given.certificate)
    assert_same(result.certificate, given.certificate)
    assert result.certificate.verify(X, y)


def frame_of(X, y, npartitions=5):
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = dd.from_pandas(pd.DataFrame(X, columns=names).assign(y=y), npartitions=npartitions)
    return frame[names], frame["y"]


def test_estimators_take_collections_and_clients(client):
    X, y, _ = bestk.datasets.make_synthetic(300, 8, k=3, rho=0.5)
    X_frame, y_frame = frame_of(X, y)
    plain = bestk.SparseRidge(k=3, alpha=0.1).fit(pd.DataFrame(X, columns=X_frame.columns), y)
    model = bestk.SparseRidge(k=3, alpha=0.1, client=client).fit(X_frame, y_frame)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    assert model.feature_names_in_.tolist() == plain.feature_names_in_.tolist()
    assert model.result_.certificate.verify(X, y)
    predicted = model.predict(X_frame)
    assert predicted.npartitions == 5
    np.testing.assert_allclose(predicted.compute(scheduler="synchronous"), plain.predict(
        pd.DataFrame(X, columns=X_frame.columns)), rtol=1e-9)  # fmt: skip
    twin = clone(model)
    assert twin.client is client
    assert not hasattr(twin, "coef_")
    assert twin.get_params()["k"] == 3


def test_several_targets_are_shared_out(client, sent):
    X, y, _ = bestk.datasets.make_synthetic(80, 12, k=3, rho=0.5)
    Y = np.column_stack([y, -y + X[:, 1], X[:, 2] + 0.1 * y])
    ours = bestk.SparseRidge(k=3, client=client).fit(X, Y)
    theirs = bestk.SparseRidge(k=3).fit(X, Y)
    assert len(sent) == 3
    assert_same(ours.coef_, theirs.coef_)
    for one, other in zip(ours.result_, theirs.result_, strict=True):
        assert_same(one.certificate, other.certificate)


def test_folds_and_penalties_are_shared_out(client, sent):
    X, y, _ = bestk.datasets.make_synthetic(120, 10, k=3, rho=0.5)
    options = {"ks": [2, 3, 4], "alphas": [0.1, 1.0], "cv": 4}
    ours = bestk.SparseRidgeCV(**options, client=client).fit(X, y)
    theirs = bestk.SparseRidgeCV(**options).fit(X, y)
    assert len(sent) == 8
    assert_same(ours.cross_validation_.errors, theirs.cross_validation_.errors)
    assert (ours.k_, ours.alpha_) == (theirs.k_, theirs.alpha_)
    pairs = zip(ours.cross_validation_.paths, theirs.cross_validation_.paths, strict=True)
    for row, other in pairs:
        for path, same in zip(row, other, strict=True):
            assert_same(path[3].certificate, same[3].certificate)


def test_cross_validation_of_collections(client):
    X, y, _ = bestk.datasets.make_synthetic(300, 8, k=3, rho=0.5)
    X_frame, y_frame = frame_of(X, y)
    model = bestk.SparseRidgeCV(ks=[1, 3, 5], alphas=[0.1, 1.0], client=client)
    model.fit(X_frame, y_frame)
    assert model.k_ in (3, 5)
    assert model.cross_validation_.is_proven
    assert model.result_.certificate.verify(X, y)
    alone = bestk.SparseRidgeCV(ks=[1, 3, 5], alphas=[0.1, 1.0]).fit(X_frame, y_frame)
    assert_same(model.cross_validation_.errors, alone.cross_validation_.errors)
    # Every row is held out once, so errors of all folds together are errors of all rows.
    baseline = np.var(y)
    assert 0.0 < model.cross_validation_.mean.min() < baseline
    with pytest.raises(ValueError, match="scoring must be None"):
        clone(model).set_params(scoring="r2").fit(X_frame, y_frame)
    with pytest.raises(ValueError, match="cv must be a number of folds"):
        clone(model).set_params(cv=[([0], [1])]).fit(X_frame, y_frame)


def test_equations_are_shared_out(client, sent):
    data = bestk.datasets.make_dynamics("lorenz", duration=2.0, degree=2)
    ours = OKRidge(k=[2, 3, 2], client=client).fit(data.X, data.derivatives)
    theirs = OKRidge(k=[2, 3, 2]).fit(data.X, data.derivatives)
    assert len(sent) == 3
    assert_same(ours.coef_, theirs.coef_)
    states = bestk.datasets.simulate("lorenz", 2.0, noise=0.002)
    options = {"degree": 2, "ks": [1, 2, 3], "alphas": [1e-3]}
    found = discover(states, 0.002, **options, client=client)
    assert_same(found.scores, discover(states, 0.002, **options).scores)


def test_what_a_client_must_be(hard, client):
    X, y = hard
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client, got 'tcp"):
        bestk.solve(X, y, 2, client="tcp://localhost:1")
    from distributed import Client

    closed = Client(client.scheduler.address, set_as_default=False)
    closed.close()
    with pytest.raises(ConnectionError, match="client is closed; connect a new one"):
        Problem.from_data(X, y).solve(2, client=closed)


def test_another_bestk_on_the_workers_is_refused(hard, client, force, monkeypatch):
    X, y = hard
    force.on_cluster()
    monkeypatch.setattr(bestk, "__version__", "0.0.1")
    with pytest.raises(RuntimeError, match=r"a worker has bestk .*, and this process has 0.0.1;"):
        bestk.solve(X, y, 8, client=client, n_threads=1)


def test_texts_show_no_data(hard, client, force, sent):
    X, y = hard
    force.on_cluster()
    bestk.solve(X, y, 8, client=client, n_threads=1)
    for call in sent:
        assert repr(call) in ("explore_all", "scan_nodes", "scan_span")
    assert repr(Call(np.dot, X, y)) == "dot"


def test_an_error_of_a_call_is_raised_here(client):
    calls = Cluster(client).calls("test")
    calls.put(Call(divmod, 1, 0))
    with pytest.raises(ZeroDivisionError):
        calls.get(lambda: False)
    calls.end()


def test_answers_come_in_order_and_stopping_leaves_nothing(client):
    cluster = Cluster(client)
    calls, shared = cluster.calls("test"), cluster.share(np.arange(5.0))
    for i in range(20):
        calls.put(Call(np.ndarray.__getitem__, i % 5), shared)
    assert [calls.get(lambda: False)[0] for _ in range(15)] == [float(i % 5) for i in range(15)]
    assert calls.get(lambda: True) is None
    assert len(calls.end()) == 5
    assert len(calls) == 0


def test_giving_up_spoils_nothing_that_others_ask_of_the_client(client, monkeypatch):
    gather = client._gather_remote

    async def late(*arguments):
        await asyncio.sleep(0.5)
        return await gather(*arguments)

    monkeypatch.setattr(client, "_gather_remote", late)
    calls = Cluster(client).calls("test")
    calls.put(Call(divmod, 7, 2))
    wait_until(lambda: client._gather_future is not None)
    calls.end()
    assert client.gather(client.submit(divmod, 7, 3, pure=False)) == (2, 1)


def alignment(array, other):
    return [a.flags.aligned and a.flags.writeable for a in (array, other)]


@pytest.mark.parametrize("size", [10, 100, 301])
def test_arrays_arrive_as_compiled_loops_know_them(size, client):
    cluster = Cluster(client)
    calls, shared = cluster.calls("test"), cluster.share(np.zeros((size, size)))
    for n in range(4):
        calls.put(Call(alignment, np.zeros((size + n, 3))), shared)
        assert calls.get(lambda: False)[0] == [True, True]
    calls.end()
