"""A process that measures: its arguments, its time, its memory and its answer.

Only the standard library is imported with it, for one of them measures how long imports take.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

BRIEF = 2.0
"""Seconds below which a call is noisy: the median of three counts, for every solver."""
MIB = 2**20


def answer(main: Callable[..., dict[str, Any]]) -> None:
    """Call ``main`` with the words of the command line; the last one is the file of the answer."""
    *words, file = sys.argv[1:]
    content = json.dumps(main(*map(_number, words)))
    with open(file, "w") as out:
        out.write(content)


def _number(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def timed(call: Callable[[], Any], brief: float = BRIEF) -> tuple[float, Any]:
    """Median seconds of three calls, or of fewer that are long; and the last result."""
    from statistics import median

    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and seconds[-1] < brief):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return median(seconds), result


def solve_to(gap: float, X: Any, y: Any, **options: Any) -> Any:
    """bestk to the paper's gap."""
    import bestk

    def stop(state: Any) -> bool:
        return state.explained_gap <= gap

    return bestk.solve(X, y, gap_tol=gap, callback=stop, **options)


def claim(result: Any) -> dict[str, Any]:
    """What a result of bestk claims, as the referee wants it."""
    return {
        "k": result.k,
        "seconds": result.seconds,
        "nodes": result.n_nodes,
        "support": result.support.tolist(),
        "coef": result.coef[result.support].tolist(),
        "objective": result.objective,
        "lower_bound": result.lower_bound,
    }


def resident(field: str) -> float:
    """VmRSS (now) or VmHWM (highest since the last reset) in MiB; nan where /proc has none."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))
    except (OSError, StopIteration):
        return float("nan")


def peak_memory() -> float:
    """MiB that this process has held at most: interpreter, packages and X included.

    Linux counts the highest resident size of the parent into ru_maxrss of a process that it has
    started, so that of the process itself is preferred.
    """
    import resource

    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    own = resident("VmHWM")
    return own if own == own else highest / (MIB if sys.platform == "darwin" else 1024)
