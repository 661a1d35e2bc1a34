"""Compile the inner loops before they are needed: one small problem of every kind."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as Folder
from time import perf_counter
from typing import Any

import numpy as np
from numba import config
from scipy.optimize import LinearConstraint

from bestk.base.compiling import compilations
from bestk.base.settings import Advanced
from bestk.base.tuning import tuned, tuning
from bestk.datasets import make_synthetic
from bestk.results.result import Result
from bestk.rivals.near_optimal import near_optimal
from bestk.search.solve import solve
from bestk.selection.path import solve_path
from bestk.structure.rules import at_most, implies
from bestk.supports.scan import scan


@dataclass(frozen=True, kw_only=True)
class Warmup:
    """What :func:`warmup` did.

    Attributes
    ----------
    n_compiled : int
        Inner loops that were compiled; 0 if all were in the cache.
    seconds : float
        How long it took, small problems included.
    cache : str
        The folder that keeps compiled loops for later processes, in folders ``__pycache__`` where
        it is the folder of the package.
    """

    n_compiled: int
    seconds: float
    cache: str

    def __str__(self) -> str:
        if self.n_compiled:
            done = f"compiled {self.n_compiled} inner loops in {self.seconds:.1f} s"
        else:
            done = f"all inner loops were compiled before; loaded in {self.seconds:.1f} s"
        return f"{done}; they are kept in {self.cache}"


def warmup() -> Warmup:
    """Compile all inner loops now, and keep them: later calls, in any process, begin at once.

    It takes up to two minutes where nothing is compiled yet, and seconds elsewhere. Call it after
    an installation, when an image of a container is built, or before time is measured. Loops for
    devices are not among them: these are compiled by their driver.

    Returns
    -------
    Warmup
        How many loops were compiled, how long that took and where they are kept; ``print`` it.
    """
    began, before = perf_counter(), compilations.count
    for units_from in (0, tuning().units_from):  # small trees do without units, others do not
        with tuned(units_from=units_from):
            for result, X, y in _one_of_each():
                if result.certificate is not None:
                    result.certificate.verify(X, y, n_threads=1)
    return Warmup(
        n_compiled=compilations.count - before,
        seconds=perf_counter() - began,
        cache=_cache(),
    )


def _one_of_each() -> Iterator[tuple[Any, Any, Any]]:
    """Problems that use every loop: short ones, since compiling takes far longer than they do."""
    tall, wide = make_synthetic(120, 30, k=6, rho=0.9, snr=2.0), make_synthetic(30, 300, k=3)
    tree: dict[str, Any] = {"advanced": Advanced(enumeration=False), "node_limit": 60}
    pairs: dict[str, Any] = {"groups": [j // 2 for j in range(30)]}
    rules: dict[str, Any] = {"rules": [at_most(1, [0, 1, 2]), implies(3, 4)]}
    sums: dict[str, Any] = {
        "constraints": LinearConstraint(np.eye(1, 30) + np.eye(1, 30, 1), 0.0, 0.0)
    }

    def solved(data: tuple, k: int, **options: Any) -> tuple[Result, Any, Any]:
        X, y, _ = data
        return solve(X, y, k, **{"alpha": 1e-3, "n_threads": 1, **options}), X, y

    for k in (1, 2, 4):
        yield solved(tall, k)
    # Too many supports to enumerate, and a gap that the diagonal leaves: clusters, whole trees.
    yield solved(make_synthetic(300, 200, k=10, rho=0.9, snr=2.0), 10, node_limit=20)
    for k in (4, 10):
        yield solved(tall, k, **tree)
        yield solved(tall, k, bounds=(-0.3, 0.3), **tree)
        yield solved(wide, k, bounds=(-1.0, 1.0), node_limit=20)
        for structure in (pairs, rules, sums):
            yield solved(tall, k, node_limit=60, **structure)
    X, y, _ = tall
    for options in ({}, rules):
        found = near_optimal(X, y, 3, alpha=1e-3, within=0.05, n_threads=1, **options)
        yield found, X, y
    solve_path(X, y, [2, 3], alpha=1e-3, n_threads=1)


def _cache() -> str:
    """The folder below which Numba keeps compiled loops."""
    package, kept = Folder(__file__).parents[1], Folder(scan.stats.cache_path)
    chosen = getattr(config, "CACHE_DIR", "")
    if chosen:
        return str(chosen)
    return str(package if package in kept.parents else kept.parent)
