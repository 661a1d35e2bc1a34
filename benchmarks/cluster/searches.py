"""Searches without a cluster, with one worker and with several: seconds of the same tree."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import nullcontext
from statistics import median

import bestk
from benchmarks.cluster.clusters import eager, workers
from benchmarks.cluster.problems import SEARCHES, SMALL, Search, require_same, solve_small
from benchmarks.harness.tables import Table, announced, met_or_missed
from bestk.base.threads import blas_threads

LONG = 10.0
"""Seconds without a cluster from which on one worker has a target."""
ONE_WORKER = 1.1
"""Target of one worker: seconds over those without a cluster."""
SPEED_UPS = {2: 1.8, 16: 11.0}
"""Targets of several workers: how many times as fast as one."""

Times = dict[tuple[Search, int], list[float]]


def searches(counts: list[int], rounds: int, quick: bool) -> Table:
    """The same searches, in turn on one thread here (0 workers) and by workers."""
    questions = SMALL if quick else SEARCHES
    seconds: Times = defaultdict(list)
    first: dict[Search, bestk.Result] = {}
    data = {search: search.data() for search in questions}
    solve_small()
    with eager() if quick else nullcontext(), blas_threads(1):
        for number in announced(range(rounds)):
            order = [0, *counts]
            for n in announced(order[::-1] if number % 2 else order):
                with workers(n) if n else nullcontext() as client:
                    for search in questions:
                        start = time.perf_counter()
                        result = search.solve(data[search], client)
                        seconds[search, n].append(time.perf_counter() - start)
                        first.setdefault(search, result)
                        require_same(first[search], result, f"{search.name}, {n} workers")
    columns = ("problem", "k", "by", "seconds", "times none", "one worker over it", "nodes", "gap")
    table = Table(name="searches", columns=[*columns, "remarks"])
    for search in questions:
        verdict = search.judged(data[search], first[search])
        tail = [str(verdict.nodes), f"{verdict.gap:.2e}", verdict.complaint]
        for row in _rows(search, [0, *counts], seconds):
            table.rows.append([search.name, str(search.k), *row, *tail])
    table.notes.append(
        f"median of {rounds}, in turn, with fresh workers each time: processes with one thread, "
        "compiled loops loaded before; BLAS on one thread everywhere; nodes, answers and all "
        f"arrays of certificates were the same; targets: one worker {ONE_WORKER} times the time "
        f"without a cluster where that is over {LONG:g} s; "
        + ", ".join(f"{n} workers {x} times as fast as one" for n, x in SPEED_UPS.items())
    )
    return table


def _rows(search: Search, counts: list[int], seconds: Times) -> list[list[str]]:
    """(by, seconds, times those without a cluster, how many times as fast as one worker)."""
    none, one = (median(seconds[search, n]) if n in counts else None for n in (0, 1))
    rows = []
    for n in counts:
        now = median(seconds[search, n])
        times = "" if n == 0 or none is None else f"{now / none:.2f}"
        if n == 1 and none is not None and none > LONG:
            times += f" {met_or_missed(now <= ONE_WORKER * none)}"
        faster = "" if n < 2 or one is None else f"{one / now:.2f}"
        if faster and one is not None and n in SPEED_UPS:
            faster += f" {met_or_missed(one >= SPEED_UPS[n] * now)}"
        name = "no cluster" if n == 0 else "1 worker" if n == 1 else f"{n} workers"
        rows.append([name, f"{now:.2f}", times, faster])
    return rows
