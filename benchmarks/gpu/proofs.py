"""Proofs that a device makes possible: a library of dynamics, tables with interactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import bestk
from benchmarks.harness.referee import judge

Data = tuple[np.ndarray, np.ndarray]


class Question(NamedTuple):
    """A problem with the seconds that it may take, and those that were hoped for.

    Some are not verified: that tries as many supports again, in double precision.
    """

    name: str
    data: Callable[[], Data]
    k: int
    alpha: float
    limit: float
    target: float | None
    verify: bool = True


def mhd() -> Data:
    data = bestk.datasets.make_dynamics("mhd", 1.0, noise=1e-3, seed=1)
    return data.X, data.derivatives[:, 0]


def table(name: str, degree: int) -> Callable[[], Data]:
    """All monomials of a table of scikit-learn up to a degree, standardised before and after."""

    def made() -> Data:
        from sklearn import datasets
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        X = PolynomialFeatures(degree, include_bias=False).fit_transform(X)
        X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 1e-12])
        return X, (y - y.mean()) / y.std()

    return made


QUESTIONS = (
    Question("MHD, 462 terms", mhd, 5, 0.0, 60.0, 0.4),
    Question("MHD, 462 terms", mhd, 6, 0.0, 120.0, 12.0),
    Question("breast cancer, degree 2", table("breast_cancer", 2), 5, 1.0, 60.0, 1.0),
    Question("wine, degree 2", table("wine", 2), 10, 1.0, 60.0, 3.0),
    Question("diabetes, degree 2", table("diabetes", 2), 20, 1.0, 60.0, 10.0),
    Question("diabetes, degree 3", table("diabetes", 3), 8, 1.0, 120.0, 60.0, verify=False),
    Question("diabetes, degree 3", table("diabetes", 3), 10, 1.0, 20.0, None, verify=False),
    Question(
        "breast cancer, degree 2", table("breast_cancer", 2), 10, 1.0, 20.0, None, verify=False
    ),
    Question("wine, degree 2", table("wine", 2), 15, 1.0, 20.0, None, verify=False),
)


def claim_of(result: bestk.Result, seconds: float) -> dict[str, object]:
    """What the referee is told."""
    return {
        "seconds": seconds,
        "nodes": result.n_nodes,
        "support": result.support,
        "coef": result.coef[result.support],
        "objective": result.objective,
        "lower_bound": result.lower_bound,
    }


def proof_rows(quick: bool) -> Iterator[dict[str, object]]:
    """Each with the device, verified there, and without it; y has mean zero where X has."""
    for question in QUESTIONS[:3] if quick else QUESTIONS:
        X, y = question.data()
        for device in ("cuda", "cpu"):
            if device == "cpu" and (question.target is None or question.target > 10.0):
                continue  # hours
            start = time.perf_counter()
            result = bestk.solve(
                X, y, question.k, alpha=question.alpha, device=device, time_limit=question.limit
            )
            seconds = time.perf_counter() - start
            claim = claim_of(result, seconds)
            verdict = judge(X, y, k=question.k, alpha=question.alpha, claim=claim)
            row = {
                "problem": question.name, "k": question.k, "on": result.engine,
                "seconds": f"{seconds:.2f}",
                "target": "" if question.target is None or device == "cpu" else question.target,
                "status": result.status.name, "gap": f"{verdict.gap:.2e}",
                "nodes": result.n_nodes, "verified": "", "remarks": verdict.complaint,
            }  # fmt: skip
            if device == "cuda" and question.verify and result.certificate is not None:
                start = time.perf_counter()
                checked = result.certificate.verify(X, y, device="cuda")
                row["verified"] = f"{bool(checked)}, {time.perf_counter() - start:.1f} s"
            yield row
