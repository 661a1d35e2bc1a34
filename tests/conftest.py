"""Data and conditions that tests of several folders share."""

import signal
import tempfile
from collections.abc import Iterator

import numpy as np
import pytest
from helpers.blas import blas_now, set_blas
from helpers.dense import HostDense
from helpers.forcing import Force, forced

import bestk
from bestk.base.device.dense import CudaDense
from bestk.base.device.driver import DeviceUnavailable

# Shells start what runs in the background deaf to Ctrl-C, and programs that tests start inherit it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def client():
    """Two workers on this machine: processes of their own, one thread each."""
    from helpers.clusters import cluster

    with cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def easy_data():
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=3, rho=0.6, seed=3)
    return X, y


@pytest.fixture(scope="module")
def hard_data():
    """Data whose best model takes more than one node to prove."""
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    return X, y


@pytest.fixture(scope="module")
def trap():
    """(X, y): two columns whose tiny difference is y, and two that a greedy search prefers."""
    rng = np.random.default_rng(1)
    z, a, f, g = np.linalg.qr(rng.standard_normal((40, 4)))[0].T
    X = np.column_stack([a, a + 1e-3 * z, f + 0.8 * z, g + 0.8 * z])
    return X, z + 0.01 * rng.standard_normal(40)


@pytest.fixture
def nothing_is_left(tmp_path, monkeypatch):
    """BLAS has three threads before and after; no new files in the temporary or current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    for variable in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(variable, str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = blas_now()
    set_blas([3] * len(before))
    try:
        yield
        assert set(blas_now()) == {3}
    finally:
        set_blas(before)
    assert [path.name for path in tmp_path.rglob("*")] == ["temporary"]


@pytest.fixture
def force() -> Iterator[Force]:
    """Changes to the tuning constants of the package, for one test."""
    with forced() as force:
        yield force


@pytest.fixture(autouse=True)
def units_at_once(force) -> None:
    """Trees of tests are small: their subtrees are units all the same, unless a test says more."""
    force.units_from(0)


@pytest.fixture
def wide_search(force) -> None:
    """The search takes every problem for wide and works by rows."""
    force.wide_search()


@pytest.fixture
def tiny_cores(force) -> None:
    """The search works by rows, on cores that have to grow."""
    force.tiny_cores()


@pytest.fixture
def wide_verifier(force) -> None:
    """The verifier takes every problem for wide, in parts as small as they can be."""
    force.wide_verifier()


@pytest.fixture
def cluster_bounds(force) -> None:
    """Bounds by clusters take over, however little they gain."""
    force.cluster_bounds()


@pytest.fixture
def narrowed_at_once(force) -> None:
    """Boxes are narrowed after the first batch, whatever that costs."""
    force.narrowed_at_once()


@pytest.fixture
def no_triangles(force) -> None:
    """Batches are summed up as products alone."""
    force.no_triangles()


@pytest.fixture
def long_methods(force) -> None:
    """Bounds run until they have converged."""
    force.methods(admm=3000, subgradient=3000, closeness=1e-4, sweeps=5000)


@pytest.fixture
def cuda_dense():
    """Dense work of a real device."""
    try:
        return CudaDense(0)
    except DeviceUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(params=["host", pytest.param("cuda", marks=pytest.mark.cuda)])
def dense(request):
    """Dense work of a device, in NumPy and of a real one."""
    return HostDense() if request.param == "host" else request.getfixturevalue("cuda_dense")
