"""The simulated engine: nothing is lost, and nothing is faster than it can be."""

import pytest

from benchmarks.cluster.simulation import Costs, simulated

FREE = Costs(merging=0.0, call=0.0, latency=0.0)


@pytest.mark.parametrize("n_workers", [1, 2, 7, 100])
@pytest.mark.parametrize("costs", [Costs(), FREE])
def test_work_is_done_once_and_never_faster_than_workers_can(n_workers, costs):
    run = simulated(n_workers, 0.02, costs)
    assert run.work == pytest.approx(72.0, rel=1e-3)
    assert run.n_calls <= run.n_units
    assert run.seconds >= max(run.work / n_workers, run.merging) * (1 - 1e-9)
    assert run == simulated(n_workers, 0.02, costs)


def test_one_worker_takes_the_sum_of_work_where_nothing_else_costs():
    run = simulated(1, 0.01, FREE)
    assert run.seconds == pytest.approx(run.work)
    assert run.bottleneck(1) == "none"


def test_a_client_that_merges_slowly_is_the_bottleneck():
    slow = FREE._replace(merging=FREE.unit)
    run = simulated(50, 0.05, slow)
    assert run.speed_up <= 1.0 + 1e-9
    assert run.bottleneck(50) == "client, merging"


def test_few_units_in_flight_keep_few_workers_busy():
    run = simulated(1000, 0.01, FREE)
    assert run.bottleneck(1000) == "units in flight"
