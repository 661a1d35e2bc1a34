"""The searches that are sent to workers, and smaller ones of the same kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import bestk
from benchmarks.gpu.proofs import Data, mhd, table
from benchmarks.harness.process import claim
from benchmarks.harness.referee import Verdict, judge


class Search(NamedTuple):
    """A problem; its tree has units, or it is one long enumeration."""

    name: str
    data: Callable[[], Data]
    k: int
    alpha: float
    fit_intercept: bool = False
    has_units: bool = True

    def solve(self, data: Data, client: Any = None, **options: Any) -> bestk.Result:
        """On one thread here, or by workers."""
        terms = {"alpha": self.alpha, "fit_intercept": self.fit_intercept}
        return bestk.solve(*data, self.k, **terms, n_threads=1, client=client, **options)

    def judged(self, data: Data, result: bestk.Result) -> Verdict:
        """What the referee makes of a result; means are taken off where there is an intercept."""
        X, y = data
        if self.fit_intercept:
            X, y = X - X.mean(axis=0), y - y.mean()
        return judge(X, y, k=self.k, alpha=self.alpha, claim=claim(result))


def synthetic(n: int, p: int, rho: float) -> Callable[[], Data]:
    def made() -> Data:
        return bestk.datasets.make_synthetic(n, p, k=10, rho=rho)[:2]

    return made


SEARCHES = (
    Search("synthetic 150, 100, 0.9", synthetic(150, 100, 0.9), 10, 1e-3),
    Search("diabetes, degree 2", table("diabetes", 2), 20, 1.0, fit_intercept=True),
    Search("MHD, 462 terms", mhd, 5, 0.0, has_units=False),
)
SMALL = (
    Search("synthetic 120, 60, 0.9", synthetic(120, 60, 0.9), 8, 1e-3),
    Search("diabetes, degree 2", table("diabetes", 2), 12, 1.0, fit_intercept=True),
    Search("MHD, 462 terms", mhd, 3, 0.0, has_units=False),
)


def solve_small() -> None:
    """Compiled loops are loaded by this, in whatever process it runs."""
    for search in SMALL:
        search.solve(search.data())


def require_same(one: bestk.Result, other: bestk.Result, where: str) -> None:
    """The same tree, the same answer and the same certificate, array by array."""
    names = ("status", "n_nodes", "objective", "lower_bound")
    different = [name for name in names if getattr(one, name) != getattr(other, name)]
    assert one.certificate is not None, f"{where}: no certificate"
    assert other.certificate is not None, f"{where}: no certificate"
    ours, theirs = one.certificate.to_arrays(), other.certificate.to_arrays()
    different += sorted(ours.keys() ^ theirs.keys())
    different += [
        name for name in ours.keys() & theirs.keys() if not _is_same(ours[name], theirs[name])
    ]
    if different:
        raise AssertionError(f"{where}: not the same {', '.join(different)}")


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    same = one.dtype == other.dtype and one.shape == other.shape
    return same and one.tobytes() == other.tobytes()
