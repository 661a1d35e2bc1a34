"""How far a search scales: the engine of bestk.subtrees.on_cluster, call by call, simulated.

One client forms and merges units and handles calls, one after the other; workers answer calls in
the order in which they were sent. Rules are those of the engine, costs were measured. The tree is
taken to be wide enough: units are open whenever there is room for them in flight.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heapreplace
from math import ceil
from typing import NamedTuple

from benchmarks.harness.tables import Table, percent
from bestk.base.tuning import tuning

HOURS = (1.0, 100.0)
WORKERS = (1, 2, 16, 64, 256, 1000, 10_000)
GOOD = 0.9
"""Efficiency from which on nothing is called a bottleneck."""


class Costs(NamedTuple):
    """Seconds, measured on diabetes with products of two features, k = 20, on one core."""

    unit: float = 6.5e-3
    """Of a worker for a unit."""
    merging: float = 3.1e-4
    """Of the client for a unit: forming it, and taking over what it has found."""
    call: float = 5e-3
    """Of the client and the scheduler for a call, with its units on their way and back."""
    latency: float = 5e-4
    """Of a way between two machines: assumed."""


class Run(NamedTuple):
    """What a simulated search took."""

    n_units: int
    n_calls: int
    seconds: float
    work: float
    merging: float
    calling: float

    @property
    def speed_up(self) -> float:
        return self.work / self.seconds

    def bottleneck(self, n_workers: int) -> str:
        if self.speed_up >= GOOD * n_workers:
            return "none"
        shares = {"merging": self.merging / self.seconds, "calls": self.calling / self.seconds}
        name = max(shares, key=lambda part: shares[part])
        busy = sum(shares.values())
        return f"client, {name}" if busy > GOOD else "units in flight"


def simulated(n_workers: int, hours: float, costs: Costs) -> Run:
    """A tree of so many hours of one worker, explored by several."""
    now, n_units = tuning(), ceil(3600.0 * hours / costs.unit)
    most, longest = int(now.calls_per_thread * n_workers), int(now.call_seconds / costs.unit)
    free = [0.0] * n_workers
    heapify(free)
    calls: deque[tuple[float, int]] = deque()
    clock, landed, sent, n_calls = 0.0, 0, 0, 0
    while landed < n_units:
        in_flight = max(now.units_in_flight, int(now.flight_share * landed))
        allowed = min(landed + in_flight, n_units)
        while sent < allowed and len(calls) < most:
            size = max(1, min(ceil((allowed - landed) / most), longest, allowed - sent))
            clock += 0.5 * costs.call
            end = max(free[0], clock + costs.latency) + size * costs.unit
            heapreplace(free, end)
            calls.append((end, size))
            sent, n_calls = sent + size, n_calls + 1
        end, size = calls.popleft()
        clock = max(clock, end + costs.latency) + 0.5 * costs.call + size * costs.merging
        landed += size
    work, merging = n_units * costs.unit, n_units * costs.merging
    return Run(n_units, n_calls, clock, work, merging, n_calls * costs.call)


def simulation() -> Table:
    """Speed-ups of the engine as it is, and of units that are larger or merged faster."""
    plain = Costs()
    kinds = {
        "as it is": plain,
        "units x 4": plain._replace(unit=4 * plain.unit),
        "units x 64": plain._replace(unit=64 * plain.unit),
        "merging x 1/4": plain._replace(merging=plain.merging / 4),
    }
    table = Table(
        name="simulation",
        columns=["tree, CPU hours", "engine", "workers", "speed-up", "efficiency", "bottleneck"],
    )
    for hours in HOURS:
        for name, costs in kinds.items():
            for n in WORKERS:
                run = simulated(n, hours, costs)
                shown = f"{run.speed_up:.1f}", percent(run.speed_up / n), run.bottleneck(n)
                table.rows.append([f"{hours:g}", name, str(n), *shown])
    table.notes.append(
        f"simulated call by call; measured: {1e3 * plain.unit:g} ms for a unit, "
        f"{1e3 * plain.merging:g} ms of the client to form and merge it, {1e3 * plain.call:g} ms "
        f"of client and scheduler for a call; assumed: {1e3 * plain.latency:g} ms for a way, a "
        "tree that always has enough open nodes, and larger units that take no more work in all"
    )
    return table
