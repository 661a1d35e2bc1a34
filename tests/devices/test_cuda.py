"""A real device, where there is one."""

import numpy as np
import pytest
from helpers import instances
from helpers.checks import check_result
from helpers.seeds import seeds

import bestk
from bestk import Status
from bestk.base.device.cuda import Cuda
from bestk.base.device.driver import DeviceUnavailable

pytestmark = pytest.mark.cuda


@seeds(200, chunk=20)
def test_answers_are_those_of_brute_force(seed, cuda, force):
    force.closed_on_device()
    instance = instances.make(seed)
    result = instance.solve(device="cuda", n_threads=1)
    check_result(instance, result, 1e-4)


def test_trees_are_the_same_again(cuda, force):
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    plain = bestk.solve(X, y, 6)
    force.units(nodes=5, in_flight=8, close=0.0)
    force.closed_on_device(most=1e6)
    runs = [bestk.solve(X, y, 6, device="cuda", n_threads=n) for n in (1, 2, 2)]
    for run in runs:
        assert run.status is Status.OPTIMAL
        np.testing.assert_array_equal(run.support, plain.support)
        assert run.n_nodes == runs[0].n_nodes
        assert run.certificate.verify(X, y)
    assert runs[0].engine.startswith("cuda:0 (")


def test_a_number_too_high_is_said(cuda):
    with pytest.raises(DeviceUnavailable, match="there is no device 'cuda:99'"):
        Cuda(99)
